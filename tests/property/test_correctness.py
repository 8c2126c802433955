"""Answer correctness on whatever comes: replies, texts, counts."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isograde.correctness import Counts, expected_f_beta
from isograde.correctness.combine import Settings, combined
from isograde.correctness.reading import claims_of, read_reply
from isograde.correctness.rules import refuses, same
from isograde.correctness.verdicts import _sorting

COUNT = st.integers(0, 50)
CHANCE = st.floats(0, 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["claims", "text", "TP", "FP", "FN", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.text(alphabet='{}[]",:\\ntrue1 `claims\n', max_size=200))
@settings(deadline=None)
def test_any_reply_is_read_or_refused(text):
    try:
        claims = read_reply(text, claims_of)
    except ValueError:
        return
    assert all(isinstance(claim, str) and claim for claim in claims)


@given(JSON)
@settings(deadline=None)
def test_any_json_is_claims_or_refused(value):
    for read in (claims_of, lambda each: _sorting(each, ["A.", "B."], ["C."])):
        try:
            read(value)
        except ValueError:
            continue


@given(st.lists(st.text(alphabet=st.characters(categories=["L", "N", "Zs", "P"]), min_size=1, max_size=20), max_size=6))
@settings(deadline=None)
def test_claims_come_back_as_they_were_sent(claims):
    wanted = [" ".join(claim.split()) for claim in claims]
    found = read_reply(f"```json\n{json.dumps({'claims': claims})}\n```", claims_of)
    assert found == [
        claim
        for i, claim in enumerate(wanted)
        if any(map(str.isalnum, claim)) and not any(same(claim, other) for other in wanted[:i])
    ]


@given(st.tuples(COUNT, COUNT, COUNT, COUNT), st.none() | CHANCE, st.floats(0, 10), st.sampled_from(["reference", "response"]))
@settings(deadline=None)
def test_values_lie_between_0_and_1(counted, similarity, beta, over):
    counts = Counts(**dict(zip(("tp_response", "fp", "tp_reference", "fn"), counted, strict=True)))
    found = combined(counts, similarity, Settings(beta=beta, recall_over=over))
    for value in (found.value, found.f_beta, found.precision, found.recall):
        assert value is None or -1e-12 <= value <= 1 + 1e-12
    assert (found.value is None) == (similarity is None or found.f_beta is None)


@given(st.lists(CHANCE, max_size=12), st.lists(CHANCE, max_size=12), st.sampled_from(["reference", "response"]))
@settings(deadline=None)
def test_the_expectation_is_one_of_what_can_be(response, reference, over):
    found = expected_f_beta(response, reference, recall_over=over)
    if not response and not reference:
        assert found is None
        return
    mean, deviation = found
    assert -1e-9 <= mean <= 1 + 1e-9
    assert 0 <= deviation <= 0.5 + 1e-9  # of anything in [0, 1]


@given(st.text(max_size=300))
@settings(deadline=None)
def test_no_letter_is_lost_between_sentences(text):
    pytest.importorskip("sentencex")
    from isograde.correctness.sentences import sentences

    text = text.replace("|", "/")  # a table's head is left out on purpose
    assert "".join(filter(str.isalnum, "".join(sentences(text)))) == "".join(filter(str.isalnum, text))


@given(st.text(alphabet="I don't know. sorry,cannot answer ,的わかりません", max_size=200))
@settings(deadline=None)
def test_rules_take_any_text(text):
    refuses(text)
    assert same(text, text) or not text.strip(" .。।۔．…")
