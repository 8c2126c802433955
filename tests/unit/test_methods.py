"""Sampling and reasoning first: how answers are asked for, counted, averaged, and what stands on the grade."""

import itertools
import math
import statistics

import numpy as np
import pytest
from scipy import stats

from isograde import Grade, GradeFailure, Item, Judge, UserError, load_rubric
from isograde.applied import judge_of
from isograde.errors import CalibrationError
from isograde.logprobs import read_answer
from isograde.methods import Way, dirichlet
from isograde.prompt import render
from isograde.records import Samples
from servers.stub import LEVELS, StubServer, completion

ITEM = {"input": "q", "output": "a", "expected": "b"}
LABELS = ("0", "1", "2", "3", "4")


def judge(server, **options):
    return Judge(model="stub-1", base_url=server.base_url, max_retries=0, **options)


def said(texts, **choice):
    """A completion without logprobs, a choice a text."""
    choices = [
        {"index": i, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", **choice}
        for i, text in enumerate(texts)
    ]
    return {"model": "stub-1", "choices": choices, "usage": {"prompt_tokens": 100, "completion_tokens": len(texts)}}


def reasoned(text, probabilities, *, finish="stop"):
    """A completion that reasons in words and ends with a level, with logprobs for each token."""
    words = [f"{word} " for word in text.split()] + ["Level", ":"]
    tokens = [{"token": word, "logprob": -0.5, "top_logprobs": [{"token": word, "logprob": -0.5}]} for word in words]
    level = completion(probabilities)["choices"][0]["logprobs"]["content"][0]
    content = "".join(words) + level["token"]
    body = completion(probabilities, content=content, finish_reason=finish)
    body["choices"][0]["logprobs"]["content"] = [*tokens, level]
    return body


@pytest.mark.parametrize("counts", [[0, 0, 0, 2, 7], [10, 0, 0], [1, 1], [0, 0, 0, 0, 0, 3]])
def test_the_posterior_is_scipys(counts):
    n = len(counts)
    posterior = stats.dirichlet(np.array(counts) + 1 / n)
    p, sd = dirichlet(counts)
    assert p == pytest.approx(posterior.mean())
    levels = np.arange(n)
    assert sd == pytest.approx(math.sqrt(levels @ posterior.cov() @ levels))


@pytest.mark.parametrize(
    ("text", "label"),
    [("4", "4"), (" 3\n", "3"), ("Level: 2", "2"), ("**4**", None), ("4.5", None), ("4. It agrees.", "4"), ("40", None), ("4/4", "4"),
     ("I say 4", None), ("", None), ("<think>0?</think>\n1", "1"), ("<think>0", None), ("0: wrong", "0"), ("4th", None)],
)  # fmt: skip
def test_a_sampled_answer_is_read_by_position(text, label):
    answer = read_answer(said([text]), LABELS)
    assert answer == label if label else answer.status == "no_answer"


def test_sampling_asks_without_logprobs_and_counts():
    with (
        StubServer(lambda r: said(["4", "4", "3", "Sure!", "4"][: r["n"]])) as server,
        judge(server, method="sampling", samples=5) as mine,
    ):
        grade = mine.score(ITEM)
        [sent] = server.requests
    assert (sent["n"], sent["temperature"], sent["max_tokens"]) == (5, 1, 16)
    assert not {"logprobs", "top_logprobs"} & set(sent)
    # three fours and one three out of four answers that name a level: (3 + 1/5) ÷ 5 and (1 + 1/5) ÷ 5
    assert grade.probabilities == pytest.approx({"0": 0.04, "1": 0.04, "2": 0.04, "3": 0.24, "4": 0.64})
    assert grade.distribution.observed_mass == 0.8  # one of five named none
    assert grade.samples == Samples(n=5, n_invalid=1, sd=pytest.approx(dirichlet([0, 0, 0, 1, 3])[1]))
    assert (grade.method, grade.usage.output_tokens) == ("sampling", 5)


def test_a_server_that_ignores_n_is_asked_again_and_again():
    answers = itertools.cycle(["4", "3", "4"])
    with StubServer(lambda _: said([next(answers)])) as server, judge(server, method="sampling", samples=6) as mine:
        grade = mine.score(ITEM)
        assert [r["n"] for r in server.requests] == [6, 5, 4, 3, 2, 1]
    assert grade.samples.n == 6
    assert list(grade.probabilities.values()) == pytest.approx(dirichlet([0, 0, 0, 2, 4])[0])
    assert (grade.usage.input_tokens, grade.usage.output_tokens) == (600, 6)


def test_a_server_that_rejects_n_is_asked_for_one_at_a_time():
    def answer(request):
        return (400, {"error": {"message": "'n' must be 1"}}) if request["n"] > 1 else said(["4"])

    with StubServer(answer) as server, judge(server, method="sampling", samples=3) as mine:
        assert mine.score(ITEM).samples.n == 3
        assert mine.score(ITEM).samples.n == 3
        assert [r["n"] for r in server.requests] == [3, 1, 1, 1, 1, 1, 1]  # rejected once


@pytest.mark.parametrize(
    ("texts", "status"), [(["Hm", "Hm", "4"], "low_mass"), (["Hm", "Hm", "Hm"], "no_answer"), (["", "", ""], "no_answer")]
)
def test_too_few_answers_that_name_a_level_are_a_failure(texts, status):
    with StubServer(lambda _: said(texts)) as server, judge(server, method="sampling", samples=3) as mine:
        failure = mine.score(ITEM)
    assert isinstance(failure, GradeFailure)
    assert failure.status == status
    assert "of 3 sampled answers name a level" in failure.message


def test_filtered_samples_are_that_status():
    with (
        StubServer(lambda _: said(["", ""], finish_reason="content_filter")) as server,
        judge(server, method="sampling", samples=2) as mine,
    ):
        assert mine.score(ITEM).status == "filtered"


def test_hidden_thinking_gets_room_once():
    def answer(request):
        return said(["4", "3"]) if request["max_tokens"] > 100 else said(["", ""], finish_reason="length")

    with StubServer(answer) as server, judge(server, method="sampling", samples=2) as mine:
        assert [grade.level for grade in mine.score_batch([ITEM] * 3)] == [3, 3, 3]  # a tie: the lower
        assert [r["max_tokens"] for r in server.requests] == [16, 2048, 2048, 2048]


def test_reasoning_comes_before_the_level_that_is_read():
    with StubServer(lambda _: reasoned("The dates differ. Level: 9 would be absurd.", LEVELS)) as server:
        with judge(server, method="reasoning_first") as mine:
            grade = mine.score(ITEM)
        first, second = server.requests
    assert grade.score == pytest.approx(0.855)
    assert (grade.method, grade.samples) == ("reasoning_first", Samples(n=1, n_invalid=0, sd=None))
    assert "Reason first" in first["messages"][0]["content"]
    assert (first["max_tokens"], first["logprobs"]) == (1024, True)
    # logprobs that do not change with temperature: the reasoning is made the same every time
    assert (first["temperature"], second["temperature"]) == (1, 0)


def test_several_reasonings_are_averaged_and_their_spread_is_kept():
    tops = [{"4": 0.9, "3": 0.1}, {"2": 0.8, "1": 0.2}, {"4": 1.0 - 1e-9, "0": 1e-9}]
    bodies = [reasoned("So.", top) for top in tops]
    together = {**bodies[0], "choices": [body["choices"][0] for body in bodies]}
    with StubServer(lambda _: together) as server, judge(server, method="reasoning_first", samples=3) as mine:
        grade = mine.score(ITEM)
        assert [r["n"] for r in server.requests] == [3]
    expected = [3.9, 1.8, 4.0]
    assert grade.expected_level == pytest.approx(statistics.mean(expected))
    assert grade.samples == Samples(n=3, n_invalid=0, sd=pytest.approx(statistics.stdev(expected)))
    assert grade.probabilities["2"] == pytest.approx(0.8 / 3)


@pytest.mark.parametrize("cut", ["before a level", "in the middle of a line that quotes one"])
def test_a_reasoning_that_was_cut_off_has_no_level(cut):
    body = reasoned("The answer says so.", LEVELS, finish="length")
    if cut == "before a level":
        del body["choices"][0]["logprobs"]["content"][-3:]
        body["choices"][0]["message"]["content"] = "The answer says so. "
    with StubServer(lambda _: body) as server, judge(server, method="reasoning_first") as mine:
        failure = mine.score(ITEM)
    assert isinstance(failure, GradeFailure)
    assert (failure.status, "cut off" in failure.message) == ("no_answer", True)


def test_reasonings_without_a_level_are_counted_and_too_many_fail():
    good, bad = (
        reasoned("Fine.", LEVELS),
        said(["I cannot say."], logprobs={"content": [{"token": "I", "logprob": -1, "top_logprobs": []}]}),
    )
    for k, (bodies, graded) in enumerate([([good, good, bad], True), ([good, bad, bad], False)]):
        each = iter(bodies)
        with StubServer(lambda _, each=each: next(each)) as server, judge(server, method="reasoning_first", samples=3) as mine:
            grade = mine.score(ITEM)
        assert isinstance(grade, Grade) == graded, k
        if graded:
            assert grade.samples == Samples(n=3, n_invalid=1, sd=0.0)
        else:
            assert grade.message.startswith("2 of 3 reasonings")


def test_methods_are_told_apart_and_calibrated_apart():
    rubric, item = load_rubric("answer_correctness"), Item(**ITEM)
    ways = [Way(method="answer_token"), Way(method="sampling", samples=10), Way(method="sampling", samples=20),
            Way(method="reasoning_first")]  # fmt: skip
    assert ways[0].prompt(rubric, item) == render(rubric, item)
    assert ways[0].fingerprint("shape") == "shape"
    assert len({way.fingerprint("shape") for way in ways}) == 4
    from isograde.calibration import Calibrator

    with StubServer(lambda r: said(["4"] * r["n"]) if "logprobs" not in r else completion(LEVELS)) as server:
        with judge(server) as mine:
            plain = mine.score(ITEM)
        calibrator = Calibrator(judge=judge_of(plain)).fit([list(plain.probabilities.values())] * 4, [4, 4, 3, 4])
        with judge(server, method="sampling", calibrator=calibrator) as other:
            with pytest.raises(CalibrationError, match="method: 'answer_token' and 'sampling'"):
                other.score(ITEM)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"method": "voting"}, "choose one of"), ({"samples": 3}, "only for the methods"), ({"method": "sampling", "samples": 1}, "at least 2"),
     ({"method": "reasoning_first", "samples": 0}, "at least 1"), ({"method": "reasoning_first", "samples": 2.5}, "whole number"),
     ({"method": "reasoning_first", "prefill": True}, "prefill")],
)  # fmt: skip
def test_what_does_not_go_together_is_said(options, message):
    with pytest.raises(UserError, match=message):
        Judge(model="x", base_url="http://localhost:1/v1", **options)


def test_the_embedded_model_is_read_by_its_logprobs():
    with pytest.raises(UserError, match="read by answer_token"):
        Judge(method="sampling")
