"""Reading a response: the recorded bodies with their right readings, and the corners between them."""

import copy
import json
import math
from pathlib import Path

import pytest

from isograde import GradeFailure, LevelDistribution, read_response

CASES = json.loads((Path(__file__).parents[1] / "recorded" / "answer_token.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_recorded_case(case):
    before = copy.deepcopy(case["response"])
    options = {name: case[name] for name in ("method", "cue") if name in case}
    seen = read_response(case["response"], case["levels"], **options)
    expect = case["expect"]
    if "failure" in expect:
        assert isinstance(seen, GradeFailure)
        assert seen.status == expect["failure"]
    else:
        assert isinstance(seen, LevelDistribution), seen
        assert seen.probabilities == pytest.approx(expect["probabilities"], abs=1e-9)
        assert seen.observed_mass == pytest.approx(expect["observed_mass"], abs=1e-9)
        assert list(seen.missing_levels) == expect["missing_levels"]
        assert seen.expected_level == pytest.approx(expect["expected_level"], abs=1e-9)
        assert seen.expected_level_bounds == pytest.approx(expect["expected_level_bounds"], abs=1e-9)
    assert case["response"] == before


def entry(token, p, top=None, **more):
    """One position: the chosen token and what was listed, by probability."""
    listed = [{"token": t, "logprob": math.log(q)} for t, q in (top or {}).items()]
    return {"token": token, "logprob": math.log(p), "top_logprobs": listed, **more}


def body(positions, content, finish_reason="stop", **choice):
    message = {"role": "assistant", "content": content}
    return {"choices": [{"message": message, "finish_reason": finish_reason, "logprobs": {"content": positions}, **choice}]}


LEVELS = {"0": 0.1, "1": 0.1, "2": 0.2, "3": 0.4, "4": 0.2}
EXPECTED = 2.5  # 0·0.1 + 1·0.1 + 2·0.2 + 3·0.4 + 4·0.2
ANSWER = entry("3", 0.4, LEVELS)


def status(*arguments, **options):
    seen = read_response(*arguments, **options)
    return seen.status if isinstance(seen, GradeFailure) else seen


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (None, "server_error"),
        ([], "server_error"),
        ("<html>", "server_error"),
        ({}, "server_error"),
        ({"choices": None}, "server_error"),
        ({"choices": [None]}, "server_error"),
        ({"error": {"message": "overloaded", "code": 503}}, "server_error"),
        ({**body([ANSWER], "3"), "error": {"message": "overloaded"}}, "server_error"),
        (body([ANSWER], "3", error={"code": 502}), "server_error"),
        (body([ANSWER], "3", finish_reason="content_filter"), "filtered"),
        (body([ANSWER], " \n"), "no_answer"),
        (body([ANSWER], "▁"), "no_answer"),
        (body([ANSWER], "<think>3 errors, so"), "no_answer"),
        (body([ANSWER], "<think>3</think>\n"), "no_answer"),
        (body([], "3"), "no_logprobs"),
        (body([{"logprob": -1.0}], "3"), "no_logprobs"),
        (body(["3"], "3"), "no_logprobs"),
        (body([entry("3", 0.4) | {"top_logprobs": None}], "3"), "no_logprobs"),
        (body([entry("3", 0.4) | {"top_logprobs": {"3": -1}}], "3"), "no_logprobs"),
        (body([entry("3", 0.4, LEVELS) | {"logprob": "high"}], "3"), "no_logprobs"),
        (body([entry("3", 0.9, {**LEVELS, "3": 0.9})], "3"), "no_logprobs"),  # adds up to 1.5
        (body([entry("3", 0.4, LEVELS) | {"logprob": 1e400}], "3"), None),  # the list holds the chosen token's value
        (body([entry("3", 0.3, {"3": 0.3, "x": 0.6})], "3"), "low_mass"),
    ],
)  # fmt: skip
def test_failures(wrong, expected):
    seen = read_response(wrong)
    assert (seen.status if isinstance(seen, GradeFailure) else None) == expected


def test_the_first_status_that_applies_wins():
    # the order of the design: error body, filter, blank, logprobs, mass
    blank_and_none = {"choices": [{"message": {"content": ""}, "logprobs": None, "finish_reason": "content_filter"}]}
    assert status(blank_and_none) == "filtered"
    blank_and_none["choices"][0]["finish_reason"] = "length"
    assert status(blank_and_none) == "no_answer"


@pytest.mark.parametrize("reasoning", [["I", " see", " 2", " faults"], [" 3", ".", "5", "\n"], ["3", " ", "4"]])
@pytest.mark.parametrize("end", [[], ["<|im_end|>"], ["</s>"], ["\n", "<|eot_id|>"]])
def test_reasoning_without_tags_ends_where_the_content_begins(reasoning, end):
    positions = [entry(t, 0.9, {t: 0.9}) for t in reasoning] + [ANSWER] + [entry(t, 0.9, {t: 0.9}) for t in end]
    assert read_response(body(positions, "3")).expected_level == pytest.approx(EXPECTED)


def test_reasoning_split_over_tags_and_bytes():
    thinking = ["<", "think", ">", "4", "</", "think", ">", "\n\n"]
    positions = [entry(t, 0.9, {t: 0.9}) for t in thinking] + [ANSWER]
    assert read_response(body(positions, "<think>4</think>\n\n3")).expected_level == pytest.approx(EXPECTED)
    # an emoji that the list splits into bytes, in the answer and in the reasoning
    tail = [entry(t, 0.9, {t: 0.9}) for t in (" ", "\ufffd", "\ufffd")]
    positions = [entry(t, 0.9, {t: 0.9}) for t in ("\ufffd", "\ufffd", "4")] + [ANSWER] + tail
    assert read_response(body(positions, "3 🙂")).expected_level == pytest.approx(EXPECTED)


@pytest.mark.parametrize(
    ("content", "rest", "is_level"),
    [("35", ["5"], False), ("3.5", [".", "5"], False), ("3,5", [",5"], False), ("3.", ["."], True), ("3/4", ["/4"], True),
     ("3 4", [" 4"], True), ("3, 4", [",", " 4"], True), ("3٣", ["٣"], False), ("3rd", ["rd"], True)],
)  # fmt: skip
def test_a_label_that_goes_on_as_a_number_is_no_level(content, rest, is_level):
    positions = [ANSWER] + [entry(t, 0.9, {t: 0.9}) for t in rest]
    seen = read_response(body(positions, content))
    assert isinstance(seen, LevelDistribution) if is_level else seen.status == "no_answer"


def test_a_number_that_only_the_content_continues():
    assert status(body([ANSWER], "3.5")) == "no_answer"


def test_chosen_token_is_told_from_a_listed_one_of_the_same_text_by_its_bytes():
    # the chosen U+FFFD is other bytes than the listed one, so its 0.1 is other mass beside it: 0.1 + 0.2 + 0.7 = 1
    listed = [
        {"token": "\ufffd", "logprob": math.log(0.2), "bytes": [240]},
        {"token": "3", "logprob": math.log(0.7), "bytes": [51]},
    ]
    chosen = {"token": "\ufffd", "logprob": math.log(0.1), "bytes": [226], "top_logprobs": listed}
    seen = read_response(body([chosen], "\ufffd"))
    assert (seen.observed_mass, seen.unseen_mass) == (pytest.approx(0.7), pytest.approx(0, abs=1e-12))


def test_prefix_probability_is_that_of_what_was_sampled_before():
    seen = read_response(body([entry("\n", 0.5, {"\n": 0.5}), entry(" ", 0.5, {" ": 0.5}), ANSWER], "\n 3"))
    assert seen.prefix_probability == pytest.approx(0.25)
    assert read_response(body([ANSWER], "3")).prefix_probability == 1
    unknown = [entry("\n", 0.5, {"\n": 0.5}) | {"logprob": None}, ANSWER]
    assert read_response(body(unknown, "\n3")).prefix_probability is None


def test_reasoning_first_needs_its_cue_and_takes_the_last():
    def ask(tokens, content, cue="Level:"):
        positions = [entry(t, 0.9, {t: 0.9}) if t != "3" else ANSWER for t in tokens]
        return read_response(body(positions, content), method="reasoning_first", cue=cue)

    assert (
        status({"choices": [{"message": {"content": "it is 3"}, "logprobs": {"content": [ANSWER]}}]}, method="reasoning_first")
        == "no_answer"
    )
    twice = ["Level", ":", " ", "1", "?", " No", ".", "▁Level", ":", "▁", "3"]
    assert ask(twice, "Level: 1? No. Level: 3").expected_level == pytest.approx(EXPECTED)
    assert ask(["Level", ":"], "Level:").status == "no_answer"
    assert ask(["Note", " final", ":3"], "Note final:3", cue="Note final:").status == "low_mass"  # the cue ends within a token


def test_letters_as_labels():
    top = {"A": 0.2, " B": 0.5, "b": 0.2, "AB": 0.1}
    seen = read_response(body([entry(" B", 0.5, top)], "B"), labels=("A", "B", "C"))
    assert seen.observed_mass == pytest.approx(0.7)
    assert seen.missing_levels == ("C",)
    assert seen.probabilities == pytest.approx((2 / 7, 5 / 7, 0))


def test_content_in_parts_and_text_in_place_of_a_message():
    parts = body([ANSWER], [{"type": "text", "text": "3"}])
    assert read_response(parts).expected_level == pytest.approx(EXPECTED)
    legacy = {"choices": [{"text": " 3", "finish_reason": "length", "logprobs": {"content": [ANSWER]}}]}
    assert read_response(legacy).expected_level == pytest.approx(EXPECTED)
