"""What the first answers show of a server, the forms that are tried, and what is remembered from run to run."""

import json
import math

import pytest

from isograde import Judge
from isograde.backends.chat import ChatBackend
from isograde.backends.learning import Learnt, same_values
from isograde.backends.rejections import Parameters, mend
from servers.stub import LEVELS, StubServer, completion

ITEM = {"input": "q", "output": "a", "expected": "b"}


class Kept:
    """A memory that can be looked into."""

    def __init__(self):
        self.rows = {}

    def facts(self, server, model):
        return json.loads(self.rows[server, model]) if (server, model) in self.rows else None

    def remember(self, server, model, facts):
        self.rows[server, model] = json.dumps(facts)


def backend(server, memory=None, **options):
    return ChatBackend("stub-1", base_url=server.base_url, max_retries=0, memory=memory, **options)


def position(probabilities):
    return completion(probabilities)["choices"][0]["logprobs"]["content"][0]


def thinking(request, *, scaled):
    """A model that thinks first; with ``scaled``, a server whose logprobs follow the temperature."""
    first = {"<think>": 0.97, "4": 0.02, "3": 0.01}
    if scaled and request["temperature"] == 0:
        first = {"<think>": 1.0}
    if request["max_tokens"] < 100:
        return completion(first, content="<think>")
    level = {"4": 1.0} if scaled and request["temperature"] == 0 else LEVELS
    body = completion(level, content="<think>hm</think>4", finish_reason="stop")
    middle = [position({text: 1.0}) for text in ("hm", "</think>")]
    body["choices"][0]["logprobs"]["content"] = [position(first), *middle, position(level)]
    return body


@pytest.mark.parametrize("scaled", [False, True])
def test_thinking_that_cannot_be_switched_off_gets_room_and_a_temperature_that_keeps_the_distribution(scaled):
    with StubServer(lambda r: thinking(r, scaled=scaled)) as server, Judge(backend=backend(server)) as judge:
        grades = judge.score_batch([ITEM] * 4)
        forms = [(r["max_tokens"], r["temperature"]) for r in server.requests]
    assert [grade.score for grade in grades] == pytest.approx([0.855] * len(grades))
    tried = [(1, 1), (16, 1), (2048, 1), (2048, 0)]  # the last shows whether temperature 0 keeps the logprobs
    assert forms == [*tried, *[(2048, 1 if scaled else 0)] * 3]


def test_more_tokens_are_listed_where_levels_stay_unseen():
    def answer(request):
        listed = {"4": 0.3, "w0": 0.2, "3": 0.1} if request["top_logprobs"] == 20 else {**LEVELS, "w": 1e-9}
        return completion(listed)

    with StubServer(answer) as server, Judge(backend=backend(server), min_mass=0.1) as judge:
        grades = judge.score_batch([ITEM] * 3)
        assert [r["top_logprobs"] for r in server.requests] == [20, 100, 100, 100]
    assert [grade.score for grade in grades] == pytest.approx([0.855] * len(grades))


def test_a_server_that_rejects_more_costs_one_request_and_no_row():
    def answer(request):
        if request["top_logprobs"] > 20:
            return 400, {"error": {"message": "top_logprobs must be at most 20"}}
        return completion({"4": 0.6, "w0": 0.1})

    with StubServer(answer) as server, Judge(backend=backend(server)) as judge:
        grades = judge.score_batch([ITEM] * 3)
        assert [r["top_logprobs"] for r in server.requests] == [20, 100, 20, 20]
    assert [grade.level for grade in grades] == [4, 4, 4]


def test_an_answer_that_comes_first_and_is_whole_costs_nothing_more():
    with StubServer() as server, Judge(backend=backend(server)) as judge:
        judge.score_batch([ITEM] * 3)
        assert len(server.requests) == 3


def test_what_was_learnt_is_remembered_for_the_next_run():
    def answer(request):
        if request["messages"][0]["role"] == "system":
            return 400, {"error": {"message": "System role not supported"}}
        if "top_k" in request:
            return 400, {"error": {"message": "Unrecognized request argument supplied: top_k"}}
        return thinking(request, scaled=False)

    memory = Kept()
    with StubServer(answer) as server:
        with Judge(backend=backend(server, memory)) as judge:
            first = judge.score(ITEM)
        assert len(server.requests) == 6  # two rejections, and four forms
        with Judge(backend=backend(server, memory)) as judge:
            planned = judge.backend.request(judge.way.prompt(judge.rubric, first.item), judge.rubric.labels)
            second = judge.score(ITEM)
        assert server.requests[-2]["temperature"] == 0
        assert planned == server.requests[-1] == server.requests[-2]
        assert len(server.requests) == 7
        assert (first.probabilities, first.prompt_fingerprint) == (second.probabilities, second.prompt_fingerprint)
        with Judge(backend=backend(server, memory, max_tokens=4000)) as judge:  # what the user asks for comes first
            judge.score(ITEM)
        assert server.requests[-1]["max_tokens"] == 4000
    assert "key" not in json.dumps(list(memory.rows.values()))


def test_what_the_user_asked_for_is_not_remembered_as_the_servers():
    memory = Kept()
    with StubServer() as server:
        for options, sent in [({"max_tokens": 7, "top_logprobs": 9}, (7, 9)), ({}, (1, 20)), ({"max_tokens": 3}, (3, 20))]:
            with Judge(backend=backend(server, memory, **options)) as judge:
                judge.score(ITEM)
            assert (server.requests[-1]["max_tokens"], server.requests[-1]["top_logprobs"]) == sent


def test_methods_do_not_share_their_room():
    learnt = Learnt(
        Parameters.first(hosted=False, openrouter=False, top_logprobs=20, max_tokens=None, prefill=False), server="s", model="m"
    )
    changed = learnt.form("answer_token").with_max_tokens(2048)
    learnt.changed("answer_token", changed)
    assert learnt.form("answer_token").room("answer_token") == 2048
    assert learnt.form("sampling").room("sampling") == 16


@pytest.mark.parametrize("facts", [{}, {"format": 2}, {"format": 1, "at": 0, "forms": {}}, {"format": 1, "at": "x"}, None])
def test_what_is_of_another_kind_or_old_is_not_taken_up(facts):
    class Odd:
        def facts(self, server, model):
            return facts

        def remember(self, server, model, facts):
            raise AssertionError

    first = Parameters.first(hosted=False, openrouter=False, top_logprobs=20, max_tokens=None, prefill=False)
    learnt = Learnt(first, server="s", model="m", memory=Odd())
    assert learnt.form("answer_token") == first
    assert not learnt.settled("answer_token")


def test_nothing_is_remembered_of_a_server_without_logprobs():
    body = completion(LEVELS)
    body["choices"][0]["logprobs"] = None
    memory = Kept()
    with StubServer(lambda _: body) as server, Judge(backend=backend(server, memory)) as judge:
        with pytest.raises(Exception, match="no usable logprobs.*--method sampling"):
            judge.score(ITEM)
    assert memory.rows == {}


def test_the_same_distribution_whatever_was_sampled():
    one, two = completion(LEVELS), completion(LEVELS)
    two["choices"][0]["logprobs"]["content"][0] |= {"token": "2", "logprob": math.log(0.08)}
    assert same_values(one, two)
    assert not same_values(one, completion({"4": 1.0}))
    assert not same_values(completion({"4": 1.0}), completion({"4": 1.0}))  # nothing to compare
    # a token that is nearly certain hides whether the rest was scaled away
    assert not same_values(completion({"<think>": 0.9999, "4": 1e-4}), completion({"<think>": 1.0, "4": 1e-8}))
    assert not same_values({}, one)


def test_what_the_server_cannot_write_is_asked_for_less():
    first = Parameters.first(hosted=False, openrouter=False, top_logprobs=20, max_tokens=None, prefill=False)
    mended = mend(first, 500, "Out of range float values are not JSON compliant: -inf")
    assert mended.top_logprobs == 5
    assert mend(mended, 500, "Out of range float values are not JSON compliant: -inf") is None
    for said in ("'n' must be 1", "n > 1 is not supported", "Only one completion choice is allowed"):
        assert mend(first, 400, said).several is False
