"""The chat completions wire against a stub that answers as real servers were seen to."""

import asyncio

import openai
import pytest

from isograde import GradeFailure, Item, Judge, UserError, load_rubric
from isograde.backends.chat import ChatBackend
from isograde.backends.loop import run
from isograde.backends.rejections import Parameters, mend
from isograde.errors import NoLogprobsError, ServerError, UnreachableError
from isograde.prompt import render
from servers.stub import LEVELS, StubServer, completion

ITEM = {"input": "q", "output": "a", "expected": "b"}


def judge(server, **options):
    return Judge(model="stub-1", base_url=server.base_url, max_retries=0, **options)


def rejecting(*rules):
    """Answer 400 while a rule finds fault with the request; a rule gives a message or None."""

    def answer(request):
        for rule in rules:
            if message := rule(request):
                return 400, {"error": {"message": message, "type": "invalid_request_error"}}
        return completion(LEVELS)

    return answer


def test_request_says_every_parameter():
    with StubServer() as server:
        with judge(server) as mine:
            grade = mine.score(ITEM)
        [sent] = server.requests
    assert grade.score == pytest.approx(0.855)  # 3.42 ÷ 4
    assert sent["messages"] == render(load_rubric("answer_correctness"), Item(**ITEM)).messages()
    said = (
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "n",
        "stream",
        "presence_penalty",
        "frequency_penalty",
        "logprobs",
        "top_logprobs",
        "max_tokens",
    )
    assert [sent[name] for name in said] == [1, 1, -1, 0, 1, False, 0, 0, True, 20, 1]
    assert grade.usage.input_tokens == 180
    assert grade.server == server.base_url


def test_no_key_goes_to_a_server_of_ones_own(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with StubServer() as server, judge(server) as mine:
        mine.score(ITEM)
        assert "sk-secret" not in str(server.headers)


def test_no_key_for_openai_is_said_before_anything_is_sent(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        Judge(model="gpt-4.1-mini")


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        # messages as the servers word them: OpenAI, vLLM, Ollama, a Gemma template, an unknown parameter
        (lambda r: "max_tokens" in r and "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
         {"max_completion_tokens": 1}),
        (lambda r: r["top_logprobs"] > 5 and "Invalid value for 'top_logprobs': integer above maximum value. Expected a value <= 5, but got 20 instead.",
         {"top_logprobs": 5}),
        (lambda r: r["top_logprobs"] > 10 and "Requested sample logprobs of 20, which is greater than max allowed: 10", {"top_logprobs": 10}),
        (lambda r: r["top_logprobs"] > 8 and "top_logprobs must be between 0 and 8", {"top_logprobs": 8}),
        (lambda r: r["messages"][0]["role"] == "system" and "System role not supported", {}),
        (lambda r: "top_k" in r and "Unrecognized request argument supplied: top_k", {}),
        (lambda r: "chat_template_kwargs" in r and "Unknown parameter: 'chat_template_kwargs'.", {}),
        (lambda r: "reasoning_effort" not in r and "logprobs are not supported with reasoning models unless reasoning effort is none",
         {"reasoning_effort": "none"}),
    ],
)  # fmt: skip
def test_a_rejected_parameter_is_mended_once_and_remembered(rule, changed):
    with StubServer(rejecting(rule)) as server:
        with judge(server) as mine:
            grades = mine.score_batch([ITEM] * 5)
        assert len(server.requests) == 6  # the one that was rejected, and five
        assert not rule(server.requests[-1])
        assert changed.items() <= server.requests[-1].items()
    assert {grade.level for grade in grades} == {4}


def test_several_rejections_in_a_row():
    rules = [
        lambda r: "top_k" in r and "unknown field top_k",
        lambda r: "min_p" in r and "unknown field min_p",
        lambda r: r["top_logprobs"] > 5 and "top_logprobs: at most 5",
        lambda r: r["messages"][0]["role"] == "system" and "Conversation roles must alternate; system role is not supported",
    ]
    with StubServer(rejecting(*rules)) as server, judge(server) as mine:
        grade = mine.score(ITEM)
        assert grade.level == 4
        assert grade.prompt_fingerprint == mine.backend.prompt_fingerprint
        assert len(server.requests) == 5


def test_a_message_that_names_nothing_is_the_items_status():
    with StubServer(lambda _: (400, {"error": {"message": "I do not like it"}})) as server, judge(server) as mine:
        failure = mine.score(ITEM)
    assert isinstance(failure, GradeFailure)
    assert (failure.status, failure.message) == ("server_error", "HTTP 400: I do not like it")


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ((400, {"error": {"message": "filtered", "code": "content_filter"}}), "filtered", "content filter"),
        ((400, {"error": {"message": "This model's maximum context length is 8192 tokens", "code": "context_length_exceeded"}}), "too_long", "8192"),
        ((413, {"error": "Payload too large"}), "too_long", "Payload"),
        ((500, "<html>boom</html>"), "server_error", "HTTP 500"),
        ((502, "<html>bad gateway</html>"), "server_error", "HTTP 502"),
        ((200, "<html>a login page</html>"), "server_error", "no JSON"),
        ((200, {"choices": []}), "server_error", "without any choice"),
        ((200, {"error": {"message": "upstream died"}}), "server_error", "upstream died"),
        ((200, [1, 2]), "server_error", "list"),
        ((429, {"error": {"message": "slow down"}}), "server_error", "HTTP 429"),
        (completion({"Sure": 0.9, "3": 0.01}), "low_mass", "Sure"),
        (completion(LEVELS, finish_reason="content_filter"), "filtered", "content filter"),
    ],
)  # fmt: skip
def test_what_befalls_one_item_is_its_status_and_never_a_score(answer, status, said):
    with StubServer(lambda _: answer) as server, judge(server) as mine:
        failure = mine.score(ITEM)
    assert isinstance(failure, GradeFailure)
    assert failure.status == status
    assert said in failure.message
    assert failure.item.output == "a"


def test_without_logprobs_the_run_stops_at_its_first_answer():
    body = completion(LEVELS)
    body["choices"][0]["logprobs"] = None
    with StubServer(lambda _: body) as server, judge(server) as mine:
        with pytest.raises(NoLogprobsError, match="use a model or a server that shows them"):
            mine.score_batch([ITEM] * 50)
        assert len(server.requests) == 1


def test_one_item_without_logprobs_is_its_status():
    def answer(request):
        body = completion(LEVELS)
        if "odd" in request["messages"][1]["content"]:
            body["choices"][0]["logprobs"] = None
        return body

    with StubServer(answer) as server, judge(server) as mine:
        grades = mine.score_batch([ITEM, {**ITEM, "output": "odd"}, ITEM])
    assert [getattr(grade, "status", "graded") for grade in grades] == ["graded", "no_logprobs", "graded"]


def test_blank_first_token_makes_room_for_the_answer_once():
    def answer(request):
        if request["max_tokens"] == 1:
            return completion({"\n": 0.9, "4": 0.1}, content="\n")
        blank, level = (completion(p)["choices"][0]["logprobs"]["content"][0] for p in ({"\n": 0.9, "4": 0.1}, LEVELS))
        body = completion(LEVELS, content="\n4", finish_reason="stop")
        body["choices"][0]["logprobs"]["content"] = [blank, level]
        return body

    with StubServer(answer) as server, judge(server) as mine:
        grades = mine.score_batch([ITEM] * 4)
        # one token, then room; then, since a blank comes first, temperature 0, which this server's logprobs do not change with
        assert [(r["max_tokens"], r["temperature"]) for r in server.requests] == [(1, 1), (16, 1), *[(16, 0)] * 4]
    assert grades[0].distribution.prefix_probability == pytest.approx(0.9)
    assert grades[3].level == 4


@pytest.mark.parametrize("listed", [True, False])
def test_what_was_sampled_by_chance_is_sampled_again_for_its_own_item_only(listed):
    odd = 0

    def answer(request):
        nonlocal odd
        if "odd" not in request["messages"][1]["content"]:
            return completion(LEVELS)
        odd += 1
        if odd > 2:
            return completion(LEVELS)
        body = completion({**LEVELS, "4": 0.6, "\n": 0.02}, content="Level: ")  # llama.cpp repeats the prefilled turn
        if listed:
            body["choices"][0]["logprobs"]["content"][0] |= {"token": "\n", "logprob": -3.9}
        else:  # the end of the turn was sampled
            body["choices"][0] |= {"logprobs": None, "finish_reason": "stop", "message": {"role": "assistant", "content": ""}}
        return body

    with StubServer(answer) as server, judge(server) as mine:
        grades = mine.score_batch([{**ITEM, "output": "odd"}, ITEM, ITEM])
        assert [request["max_tokens"] for request in server.requests] == [1] * 5
    assert {grade.level for grade in grades} == {4}


def test_nobody_at_the_address():
    with StubServer() as server:
        address = server.base_url
    with pytest.raises(UnreachableError, match="nothing answers at http://127.0.0.1"):
        Judge(model="x", base_url=address, max_retries=0).score(ITEM)


@pytest.mark.parametrize("address", ["localhost:8000", "not an address", "http://"])
def test_an_address_that_is_none(address):
    with pytest.raises((UserError, ServerError)) as caught:
        Judge(model="x", base_url=address, max_retries=0).score(ITEM)
    assert "\n" not in str(caught.value)


def test_wrong_model_name_lists_what_is_served():
    answer = (404, {"error": {"message": "The model `x` does not exist."}})
    with StubServer(lambda _: answer, models=["qwen", "llama"]) as server:
        with pytest.raises(ServerError, match="no model 'x'.*it serves llama, qwen"):
            Judge(model="x", base_url=server.base_url, max_retries=0).score(ITEM)


def test_refused_key():
    with (
        StubServer(lambda _: (401, {"error": {"message": "bad key"}})) as server,
        pytest.raises(ServerError, match="refuses the key"),
    ):
        judge(server).score(ITEM)


def test_used_up_quota_stops_the_run():
    answer = (429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
    with StubServer(lambda _: answer) as server, pytest.raises(ServerError, match="quota") as caught:
        judge(server).score(ITEM)
    assert caught.value.retryable


def test_a_server_that_only_fails_is_given_up():
    with StubServer(lambda _: (500, {"error": "boom"})) as server:
        with pytest.raises(ServerError, match="first 5 requests all failed"):
            judge(server).score_batch([ITEM] * 100)
        assert len(server.requests) == 5


def test_timeout_is_a_status():
    async def slow(_request):
        await asyncio.sleep(5)
        return completion(LEVELS)

    with StubServer(slow) as server, judge(server, timeout=0.2) as mine:
        assert mine.score(ITEM).status == "timeout"


def test_a_client_of_ones_own():
    with StubServer() as server:
        client = openai.AsyncOpenAI(base_url=server.base_url, api_key="mine", max_retries=0)
        mine = Judge(model="stub-1", client=client)
        assert mine.score(ITEM).level == 4
        assert server.headers[0]["Authorization"] == "Bearer mine"
        mine.close()
        assert not client.is_closed()  # it is the user's
        run(client.close())
        azure = openai.AsyncAzureOpenAI(
            azure_endpoint=server.base_url.removesuffix("/v1"), api_version="2024-10-21", api_key="azure-key", max_retries=0
        )
        grade = Judge(model="deployed", client=azure).score(ITEM)
        assert grade.level == 4
        assert "azure-key" not in repr(grade)
        assert server.headers[1]["api-key"] == "azure-key"
        run(azure.close())
    with pytest.raises(UserError, match="asynchronous"):
        Judge(model="x", client=openai.OpenAI(api_key="mine"))


def test_credentials_in_an_address_are_not_kept():
    backend = ChatBackend("x", base_url="http://user:secret@localhost:1/v1")
    assert backend.server == "http://localhost:1/v1"


def test_hosted_servers_get_their_own_parameters(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    hosted = ChatBackend("gpt-4.1-mini").request(render(load_rubric("answer_correctness"), Item(**ITEM)), ("0", "1"))
    assert "max_completion_tokens" in hosted
    assert not {"top_k", "min_p", "chat_template_kwargs", "max_tokens"} & set(hosted)
    routed = ChatBackend("x/y", base_url="https://openrouter.ai/api/v1", api_key="k")
    assert routed.request(render(load_rubric("answer_correctness"), Item(**ITEM)), ("0", "1"))["provider"] == {
        "require_parameters": True
    }


def test_server_trouble_mends_nothing():
    parameters = Parameters.first(hosted=False, openrouter=False, top_logprobs=20, max_tokens=1, prefill=False)
    assert mend(parameters, 500, "top_logprobs must be at most 5") is None
    assert mend(parameters, 400, "") is None
