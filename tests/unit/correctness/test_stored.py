"""Claims, sorting and verdicts that are on file are not asked again."""

import pytest

from isograde import Judge
from isograde.correctness import AnswerCorrectness
from isograde.store import Store
from servers.scripted import ScriptedModel, kind, written
from servers.stub import StubServer

ITEM = {"input": "q", "output": "one", "expected": "two"}
MODEL = ScriptedModel({"one": ["A.", "B."], "two": ["A!"]}, ["A.", "A!"])


@pytest.mark.parametrize("verdicts", ["logprobs", "generated"])
def test_a_second_run_asks_nothing(tmp_path, verdicts):
    results, asked = [], []
    with StubServer(MODEL) as server:
        for _ in range(2):
            with Store(tmp_path / "answers.sqlite") as store:
                judge = Judge(model="stub-1", base_url=server.base_url, store=store)
                results.append(AnswerCorrectness(judge, weights=(1, 0), verdicts=verdicts).score(ITEM))
            asked.append(len(server.requests))
    assert asked[0] == asked[1] > 0
    first, second = results
    assert first.value == second.value == pytest.approx(2 / 3)
    assert first.response_claims == second.response_claims
    assert first.usage == second.usage


def test_references_stay_split_for_new_answers(tmp_path):
    with StubServer(MODEL) as server:
        for output in ("one", "three"):
            with Store(tmp_path / "answers.sqlite") as store:
                judge = Judge(model="stub-1", base_url=server.base_url, store=store)
                AnswerCorrectness(judge, weights=(1, 0)).score({**ITEM, "output": output})
        assert sum(kind(request) == "claims" for request in server.requests) == 3  # one, two, three


def test_what_could_not_be_read_is_not_kept_and_what_was_repaired_is(tmp_path):
    replies = ["no", "no", "no"]

    def answer(request):
        return written(replies.pop(0)) if replies and kind(request) == "claims" else MODEL(request)

    with StubServer(answer) as server:
        outcomes = []
        for _ in range(3):
            with Store(tmp_path / "answers.sqlite") as store:
                judge = Judge(model="stub-1", base_url=server.base_url, store=store)
                outcomes.append(getattr(AnswerCorrectness(judge, weights=(1, 0)).score(ITEM), "value", None))
            asked = len(server.requests)
        assert outcomes[-1] == pytest.approx(2 / 3)
        assert outcomes[0] is None
        assert asked == len(server.requests)


def test_a_loosened_schema_finds_its_answers_again(tmp_path):
    def answer(request):
        if request.get("response_format", {}).get("type") == "json_schema":
            return 400, {"error": {"message": "response_format is not supported"}}
        return MODEL(request)

    with StubServer(answer) as server:
        for _ in range(2):
            with Store(tmp_path / "answers.sqlite") as store:
                judge = Judge(model="stub-1", base_url=server.base_url, store=store)
                assert AnswerCorrectness(judge, weights=(1, 0)).score(ITEM).value == pytest.approx(2 / 3)
            n = len(server.requests)
        assert n == len(server.requests)
        assert sum("response_format" in request for request in server.requests) <= 4  # all of the first run
