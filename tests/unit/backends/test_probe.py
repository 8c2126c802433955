"""What the examination finds at servers that behave as real ones were seen to."""

import math
import random

import pytest

from isograde import Judge, ServerError
from isograde.backends import probe
from isograde.backends.chat import ChatBackend
from isograde.runs.doctor import diagnosed
from servers.fault import FaultServer
from servers.stub import LEVELS, StubServer, completion

ANIMALS = {f" animal{i}": 0.5**i for i in range(1, 12)}


def tempered(probabilities, temperature):
    powered = {token: p ** (1 / temperature) for token, p in probabilities.items()}
    total = sum(powered.values())
    return {token: p / total for token, p in powered.items()}


def answering(*, scaled=False, first=LEVELS, largest=20, thinks="no", prefill=True, ids=False, limit="max_tokens", cut=False):
    """A server with these ways."""

    def answer(request):
        if limit not in request:
            return 400, {
                "error": {"message": f"Unsupported parameter: use '{limit}' instead of max_tokens / max_completion_tokens"}
            }
        if request["top_logprobs"] > largest:
            return 400, {"error": {"message": f"top_logprobs must be between 0 and {largest}"}}
        if request["messages"][-1]["role"] == "assistant" and not prefill:
            return 400, {"error": {"message": "Cannot continue: add_generation_prompt"}}
        spread = "animal" in request["messages"][-1]["content"]
        probabilities = dict(ANIMALS if spread else first)
        if scaled:
            probabilities = tempered(probabilities, request["temperature"] or 1e-3)
        if not cut and not spread:
            probabilities |= {f"w{i}": 1e-6 for i in range(request["top_logprobs"] - len(probabilities))}
        if ids and "logprob_token_ids" in request:
            probabilities = {f"t{i}": 0.01 for i in request["logprob_token_ids"]}
        else:
            probabilities = dict(list(probabilities.items())[: request["top_logprobs"]])
        on = request.get("chat_template_kwargs", {}).get("enable_thinking", True)
        if not spread and (thinks == "always" or (thinks == "unless told" and on)):
            return thought(probabilities, request)
        return completion(probabilities)

    return answer


def thought(probabilities, request):
    if request["max_tokens"] < 100:
        return completion({"<think>": 0.9, "4": 0.1}, content="<think>")
    body = completion(probabilities, content="<think>hm</think>4", finish_reason="stop")
    level = body["choices"][0]["logprobs"]["content"][0]
    before = [
        completion(p)["choices"][0]["logprobs"]["content"][0]
        for p in ({"<think>": 0.9, "4": 0.1}, {"hm": 1.0}, {"</think>": 1.0})
    ]
    body["choices"][0]["logprobs"]["content"] = [*before, level]
    return body


def found(answer):
    with StubServer(answer) as server:
        with Judge(backend=ChatBackend("stub-1", base_url=server.base_url, max_retries=0)) as judge:
            diagnosis = diagnosed(judge)
        return diagnosis, {each.name: each for each in diagnosis.findings}, server.requests


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        ((200, "<html>welcome</html>"), "is the address right up to /v1?"),
        ((500, {"error": {"message": "out of memory"}}), "the server is failing: look at its log"),
    ],
)
def test_advice_for_a_server_that_gives_no_answer(answer, advice):
    diagnosis, by_name, _ = found(lambda _: answer)
    assert not diagnosis.usable
    assert by_name["answer"].advice == advice


def test_advice_for_a_server_that_is_slow():
    with FaultServer(script=lambda _content, _before: "hang") as server:
        with Judge(backend=ChatBackend("m", base_url=server.base_url, max_retries=0, timeout=0.2)) as judge:
            [finding] = diagnosed(judge).findings
    assert finding.value == "timeout"
    assert finding.advice.startswith("a larger --timeout")


def test_a_server_that_says_too_fast_is_not_waited_for_long(monkeypatch):
    monkeypatch.setattr(probe, "_PATIENCE_S", 0.2)
    with FaultServer(script=lambda _content, _before: "too_fast") as server:
        with (
            Judge(backend=ChatBackend("m", base_url=server.base_url)) as judge,
            pytest.raises(ServerError, match="too fast for 0 s"),
        ):
            diagnosed(judge)


def test_a_server_as_it_should_be():
    diagnosis, by_name, requests = found(answering(largest=500))
    assert diagnosis.usable
    assert diagnosis.verdict == "can judge"
    assert by_name["temperature"].value == "raw"
    assert (by_name["listed tokens"].value, by_name["most tokens"].value) == (20, 100)
    assert (by_name["distribution"].value, by_name["thinking"].value, by_name["prefill"].value) == ("whole", "none", True)
    assert by_name["exact token ids"].value is False
    assert len(requests) <= 10
    assert sum(request["max_tokens"] for request in requests) < 40


@pytest.mark.parametrize(
    ("ways", "name", "value", "verdict"),
    [
        ({"scaled": True}, "temperature", "scaled", "fine"),
        ({"largest": 20}, "most tokens", 20, "fine"),
        ({"thinks": "always"}, "thinking", "always", "note"),
        ({"thinks": "unless told"}, "thinking", "switched off", "fine"),
        ({"prefill": False}, "prefill", False, "fine"),
        ({"ids": True}, "exact token ids", True, "fine"),
        ({"cut": True, "first": {"4": 0.9, "3": 0.1}}, "distribution", "cut", "note"),
        ({"first": {"4": 0.9, "Sure": 0.1}}, "labels", {"missing": ["0", "1", "2", "3"]}, "note"),
        ({"first": {"4": 0.3, "Sure": 0.7}}, "mass on levels", pytest.approx(0.3, abs=1e-3), "problem"),
    ],
)
def test_each_way_of_a_server_is_seen(ways, name, value, verdict):
    diagnosis, by_name, _ = found(answering(**ways))
    assert (by_name[name].value, by_name[name].verdict) == (value, verdict), by_name[name]
    assert diagnosis.usable == (verdict != "problem")
    if verdict != "fine":
        assert name in diagnosis.verdict


def test_parameters_that_were_mended_are_named():
    _, by_name, _ = found(answering(limit="max_completion_tokens", largest=5))
    said = by_name["parameters"].said
    assert "max_completion_tokens in place of max_tokens" in said
    assert "top_logprobs up to 5" in said


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (lambda _: (500, {"error": "boom"}), "answer"),
        (lambda _: (400, {"error": {"message": "logprobs are not available"}}), "logprobs"),
        (lambda _: completion({"4": 1.0}), "logprobs"),  # one value, and that 0.0
        (lambda _: {"choices": [{"message": {"content": "4"}}]}, "logprobs"),
        (lambda _: {"choices": [{"message": {"content": "4"}, "logprobs": {"content": [{"token": "4", "logprob": 0.0, "top_logprobs":
         [{"token": t, "logprob": 0.0} for t in "01234"]}]}}]}, "logprobs"),
    ],
)  # fmt: skip
def test_a_server_that_cannot_judge(answer, name):
    diagnosis, by_name, _ = found(answer)
    assert not diagnosis.usable
    assert by_name[name].verdict == "problem"
    assert by_name[name].advice
    assert diagnosis.verdict.startswith("cannot judge as it is")


def test_another_method_can_do_where_logprobs_are_missing():
    rng = random.Random(5)

    def answer(request):
        choices = [
            {"message": {"role": "assistant", "content": rng.choice("34")}, "finish_reason": "stop"} for _ in range(request["n"])
        ]
        return {"choices": choices}

    with StubServer(answer) as server, Judge(model="stub-1", base_url=server.base_url, method="sampling") as judge:
        diagnosis = diagnosed(judge)
    assert diagnosis.usable
    assert diagnosis.findings[-1].name == "sampling"
    assert math.isclose(float(diagnosis.findings[-1].value.split()[0]), 3.5, abs_tol=0.5)
