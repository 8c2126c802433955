"""The judge: from items to grades, one and many, in every kind of loop."""

import asyncio

import pytest

import isograde
from isograde import DataError, Grade, GradeFailure, Item, Judge, UserError, evaluate
from isograde.flow import bounded
from servers.stub import LEVELS, StubServer, completion

KEY = {
    "input": "A key was created on 2026-09-22 with a 90-day expiry. When does it expire?",
    "expected": "2026-12-21",
}


def by_output(request):
    """Answer as a capable model would: level 4 for the right date, level 0 for a month off, by what the answer's fence holds."""
    answer = request["messages"][1]["content"].split("<answer>\n")[1].split("\n</answer>")[0]
    if answer == "December 21, 2026":
        return completion({"4": 0.9, "3": 0.06, "2": 0.02, "1": 0.01, "0": 0.01})
    if answer.startswith("level "):
        level = answer.removeprefix("level ")
        return completion({level: 0.96, **{other: 0.01 for other in "01234" if other != level}})
    return completion({"0": 0.9, "1": 0.06, "2": 0.02, "3": 0.01, "4": 0.01})


@pytest.fixture
def server():
    with StubServer(by_output) as running:
        yield running


@pytest.fixture
def judge(server):
    with Judge(model="stub-1", base_url=server.base_url, max_retries=0) as mine:
        yield mine


def test_the_hosted_evaluators_shape(judge):
    request = {"evaluators": ["answer_correctness"], **KEY}
    wrong = evaluate({**request, "output": "November 21, 2026."}, judge=judge)["answer_correctness"]
    assert set(wrong) == {"score", "label", "level", "confidence", "probabilities", "passed"}
    # 0·.9 + 1·.06 + 2·.02 + 3·.01 + 4·.01 = 0.17
    assert (wrong["level"], wrong["label"], wrong["passed"]) == (0, "0.2 / 4", False)
    assert wrong["score"] == pytest.approx(0.17 / 4)
    right = evaluate({**request, "output": "December 21, 2026"}, judge=judge)["answer_correctness"]
    assert (right["level"], right["label"], right["passed"]) == (4, "3.8 / 4", True)


def test_evaluate_says_what_failed_without_a_score(judge):
    result = evaluate({"evaluators": ["answer_correctness"], "input": "q", "output": "a"}, judge=judge)
    assert result == {
        "answer_correctness": {"status": "invalid_item", "message": "field 'expected' is missing; the rubric needs it"}
    }
    with pytest.raises(UserError, match="evaluators"):
        evaluate({"input": "q"}, judge=judge)


@pytest.mark.parametrize(
    "names",
    [("input", "output", "expected"), ("user_input", "response", "reference"), ("question", "answer", "ground_truth"),
     ("query", "response", "expected_response"), ("query", "response", "ground_truth"), ("inputs", "outputs", "reference_outputs"),
     ("input", "actual_output", "expected_output")],
)  # fmt: skip
def test_every_neighbours_names(judge, names):
    fields = dict(zip(names, ("q", "level 3", "r"), strict=True))
    assert judge.score(**fields).level == 3
    assert judge.score(fields).item == Item(input="q", output="level 3", expected="r", id="0")


def test_batch_keeps_the_order_and_stream_gives_the_index(judge):
    items = [{**KEY, "output": f"level {i % 5}"} for i in range(40)]
    grades = judge.score_batch(items)
    assert [grade.level for grade in grades] == [i % 5 for i in range(40)]
    assert [grade.index for grade in grades] == list(range(40))

    async def collect():
        return [grade async for grade in judge.stream(item for item in items)]

    streamed = asyncio.run(collect())
    assert sorted(grade.index for grade in streamed) == list(range(40))
    assert all(grade.level == grade.index % 5 for grade in streamed)


def test_sync_call_within_a_running_loop(judge):
    async def notebook():
        sync = judge.score(**KEY, output="level 2")
        awaited = await judge.ascore(**KEY, output="level 2")
        return sync, awaited

    for _ in range(2):  # a second loop, on the same judge
        sync, awaited = asyncio.run(notebook())
        assert sync.probabilities == awaited.probabilities


def test_the_best_of_several_references_is_kept():
    def by_reference(request):
        return completion(LEVELS if "<reference>\nright\n" in request["messages"][1]["content"] else {"0": 0.9, "1": 0.1})

    with StubServer(by_reference) as server, Judge(model="x", base_url=server.base_url, max_retries=0) as judge:
        grade = judge.score(input="q", output="a", expected=["wrong", "right", "wrong too"])
        assert (grade.reference_index, grade.level) == (1, 4)
        assert len(server.requests) == 3
        assert judge.score(input="q", output="a", expected="right").reference_index is None


def test_blank_outputs_follow_the_rubric(judge, server):
    for blank in ("", " \n", "\u200b\ufeff"):
        zero = judge.score(**KEY, output=blank)
        assert (zero.level, zero.score, zero.method) == (0, 0.0, "blank_output")
        failed = judge.with_rubric("faithfulness").score(context="c", input="q", output=blank)
        assert failed.status == "blank_output"
    assert server.requests == []
    missing = judge.score(input="q", expected="e", output=None)
    assert (missing.status, missing.message) == ("invalid_item", "field 'output' is missing; the rubric needs it")


def test_an_invalid_item_costs_no_call_and_no_other_item(judge, server):
    grades = judge.score_batch(
        [{**KEY, "output": "level 1"}, {"input": "q", "output": "a", "expected": None}, {**KEY, "output": "level 2"}]
    )
    assert [type(grade) for grade in grades] == [Grade, GradeFailure, Grade]
    assert len(server.requests) == 2


def test_a_generator_is_read_no_further_than_the_window(judge):
    read = 0

    def items():
        nonlocal read
        for _ in range(100_000):
            read += 1
            yield {**KEY, "output": "level 1"}

    async def some():
        seen = 0
        async for _ in judge.stream(items()):
            seen += 1
            if seen == 10:
                break

    asyncio.run(some())
    assert read <= 10 + 17 * judge.concurrency


def test_an_error_of_the_source_comes_after_what_was_graded(judge):
    def items():
        yield {**KEY, "output": "level 1"}
        yield {**KEY, "output": "level 2"}
        yield {"output": {"not": "text"}}

    async def collect():
        levels = []
        with pytest.raises(DataError, match="output"):
            async for grade in judge.stream(items()):
                levels.append(grade.level)  # noqa: PERF401 - what came before the error is what is tested
        return levels

    assert sorted(asyncio.run(collect())) == [1, 2]


@pytest.mark.parametrize("ordered", [True, False])
def test_bounded_never_exceeds_its_concurrency(ordered):
    running = most = 0

    async def work(i):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001 * (7 - i % 7))
        running -= 1
        return i

    async def collect():
        return [i async for i in bounded(range(60), work, concurrency=5, ordered=ordered)]

    results = asyncio.run(collect())
    assert most == 5
    assert results == list(range(60)) if ordered else sorted(results) == list(range(60))


def test_wrong_combinations_are_named():
    for options, said in [
        ({"base_url": "http://x/v1"}, "model is missing"),
        ({"model": "x", "base_url": "http://x/v1", "colour": 1}, "colour"),
        ({"timeout": 3}, "timeout: only for a model at a server"),
        ({"model": "x", "base_url": "http://x/v1", "concurrency": 0}, "at least 1"),
        ({"model": "x", "backend": object()}, "backend stands in place"),
        ({"modle": "x"}, "no argument 'modle'"),
        ({"model": 5}, "model must be a name or a path"),
        ({"rubric": 7}, "by its name or its path"),
        ({"model": "x", "base_url": "localhost/v1"}, "begins with http"),
    ]:
        with pytest.raises(UserError, match=said):
            Judge(**options)
    with pytest.raises(UserError, match="no field is named 'ouput'"):
        Judge(model="x", base_url="http://x/v1").score(input="q", ouput="a", expected="e")
    with pytest.raises(UserError, match="evaluators"):
        evaluate(None)
    with pytest.raises(UserError, match="not both"):
        Judge(model="x", base_url="http://x/v1").score({"input": "q"}, output="a")


def test_at_most_twenty_public_names_and_all_are_there():
    assert len(isograde.__all__) <= 20
    assert all(hasattr(isograde, name) for name in isograde.__all__)
