"""What holds for every response."""

import math

from hypothesis import given
from hypothesis import strategies as st

from isograde import GradeFailure, LevelDistribution, read_response

LABELS = ("0", "1", "2", "3", "4")
MARKS = ["{}", " {}", "▁{}", "Ġ{}", "{}\n", "{}Ċ", "\t{} "]


@st.composite
def listed(draw):
    """A list of (token, probability): variants of the labels and other tokens, adding up to at most 1, the first chosen."""
    tokens = draw(
        st.lists(
            st.one_of(
                st.tuples(st.sampled_from(LABELS), st.sampled_from(MARKS)).map(lambda pair: pair[1].format(pair[0])),
                st.text(min_size=1, max_size=4),
            ),
            min_size=2,
            max_size=12,
            unique=True,
        )
    )
    weights = draw(st.lists(st.floats(1e-6, 1), min_size=len(tokens), max_size=len(tokens)))
    share = draw(st.floats(0.05, 1))
    return [(token, share * weight / sum(weights)) for token, weight in zip(tokens, weights, strict=True)]


def body(pairs, content="3"):
    entries = [{"token": token, "logprob": math.log(p)} for token, p in pairs]
    positions = [{**entries[0], "top_logprobs": entries}]
    return {"choices": [{"message": {"content": content}, "logprobs": {"content": positions}}]}


def read(pairs, **options):
    # an answer token of blanks only would not be the answer; a visible first token keeps the position
    return read_response(body([("x", 1e-9), *pairs]), LABELS, **{"min_mass": 0.0, **options})


@given(listed())
def test_masses_add_up_and_bounds_hold(pairs):
    seen = read(pairs)
    if isinstance(seen, GradeFailure):
        assert seen.status == "low_mass"
        assert not any(token.strip(" \t\n▁ĠĊ") in LABELS for token, _ in pairs)
        return
    assert math.isclose(sum(seen.probabilities), 1, abs_tol=1e-9)
    assert all(0 <= p <= 1 + 1e-12 for p in seen.probabilities)
    total = sum(p for _, p in pairs) + 1e-9
    assert 0 < seen.observed_mass <= total + 1e-9
    assert math.isclose(seen.unseen_mass, max(0, 1 - total), abs_tol=1e-9)
    low, high = seen.expected_level_bounds
    assert low - 1e-9 <= seen.expected_level <= high + 1e-9
    assert 0 <= low <= high <= 4 + 1e-9


@given(listed(), st.randoms(use_true_random=False))
def test_the_order_of_the_list_does_not_matter(pairs, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    one, other = read(pairs), read(shuffled)
    assert type(one) is type(other)
    if isinstance(one, LevelDistribution):
        assert all(math.isclose(p, q, abs_tol=1e-12) for p, q in zip(one.probabilities, other.probabilities, strict=True))


@given(st.sampled_from(LABELS), st.sampled_from(MARKS), st.floats(0.01, 0.4), st.floats(0.01, 0.4))
def test_variants_of_a_label_are_summed(label, mark, bare, marked):
    pairs = [(label, bare), (mark.format(label), marked)] if mark != "{}" else [(label, bare + marked)]
    seen = read(pairs)
    assert math.isclose(seen.observed_mass, bare + marked, rel_tol=1e-9)
    assert seen.probabilities[LABELS.index(label)] == 1


@given(listed(), st.floats(0, 1))
def test_too_little_mass_is_a_failure_and_never_a_distribution(pairs, min_mass):
    free, bound = read(pairs), read(pairs, min_mass=min_mass)
    if isinstance(free, LevelDistribution) and free.observed_mass >= min_mass:
        assert bound == free
    else:
        assert bound.status == "low_mass"


json_like = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=6) | st.sampled_from(["3", "</think>", -9999.0, 1e400]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "message", "content", "logprobs", "token", "logprob", "top_logprobs", "tokens", "token_logprobs", "bytes",
             "id", "error", "finish_reason", "text"]
        ),
        inner,
        max_size=6,
    ),
    max_leaves=40,
)  # fmt: skip


@given(json_like)
def test_no_body_raises(anything):
    for method in ("answer_token", "reasoning_first"):
        assert isinstance(read_response(anything, method=method), GradeFailure | LevelDistribution)
        wrapped = {"choices": [{"message": {"content": "3"}, "logprobs": {"content": anything}}]}
        assert isinstance(read_response(wrapped, method=method), GradeFailure | LevelDistribution)
