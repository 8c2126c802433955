"""The generating call: what is sent, what a server may reject, what is mended once and remembered."""

import asyncio

import pytest

from isograde import Judge, ServerError
from isograde.backends.generation import Generated, generator_of
from isograde.backends.loop import run
from isograde.correctness.claims import CLAIMS_SCHEMA, claims_prompt
from isograde.records import GradeFailure
from servers.scripted import written
from servers.stub import StubServer, completion

PROMPT = claims_prompt("Fee?", "The fee is ₹350.")
OK = written('{"claims": ["The fee is ₹350."]}')


def generator(server, **options):
    return generator_of(Judge(model="stub-1", base_url=server.base_url, max_retries=0, **options).backend)


def ask(one, **options):
    return run(one.generate(PROMPT, CLAIMS_SCHEMA, name="claims", **options))


def test_what_is_sent():
    with StubServer(lambda _: OK) as server:
        said = ask(generator(server, prefill=True))
        assert isinstance(said, Generated)
        assert said.text == '{"claims": ["The fee is ₹350."]}'
        assert not said.truncated
        assert said.reply.usage.output_tokens == 40
        [sent] = server.requests
    assert sent["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "claims", "strict": True, "schema": CLAIMS_SCHEMA},
    }
    assert (sent["temperature"], sent["max_tokens"], sent["model"]) == (0, 4096, "stub-1")
    assert not {"logprobs", "top_logprobs", "continue_final_message", "add_generation_prompt"} & set(sent)
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]


def rejecting(*rules):
    """A server that rejects, by the first rule that a request breaks."""

    def answer(request):
        for breaks, said in rules:
            if breaks(request):
                return said if isinstance(said, tuple) else (400, {"error": {"message": said}})
        return OK

    return answer


def of_type(name):
    return lambda request: request.get("response_format", {}).get("type") == name


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ([(of_type("json_schema"), "'response_format.type' must be 'json_object' or 'text'")], {"type": "json_object"}),
        ([(of_type("json_schema"), (422, {"detail": "response_format: json_schema is not supported"}))], {"type": "json_object"}),
        ([(lambda r: "response_format" in r, "Unrecognized request argument supplied: response_format")], None),
        ([(lambda r: "response_format" in r, (500, {"error": {"message": "failed to compile the grammar"}}))], None),
    ],
)
def test_a_schema_that_is_rejected_is_loosened_once(rules, left):
    with StubServer(rejecting(*rules)) as server:
        one = generator(server)
        assert isinstance(ask(one), Generated)
        n = len(server.requests)
        assert isinstance(ask(one), Generated)
        assert len(server.requests) == n + 1  # remembered
        assert server.requests[-1].get("response_format") == left


@pytest.mark.parametrize(
    ("breaks", "said", "field", "left"),
    [
        (
            lambda r: r.get("temperature") == 0,
            "Unsupported value: 'temperature' does not support 0 with this model",
            "temperature",
            None,
        ),
        (
            lambda r: r.get("max_tokens", 0) > 2048,
            "max_tokens is too large: 4096. This model supports at most 2048",
            "max_tokens",
            2048,
        ),
        (
            lambda r: "max_tokens" in r,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_completion_tokens",
            4096,
        ),
        (
            lambda r: "chat_template_kwargs" in r,
            "Unrecognized request argument supplied: chat_template_kwargs",
            "chat_template_kwargs",
            None,
        ),
    ],
)
def test_other_parts_that_are_rejected(breaks, said, field, left):
    with StubServer(rejecting((breaks, said))) as server:
        assert isinstance(ask(generator(server)), Generated)
        assert server.requests[-1].get(field) == left


def test_a_system_message_that_is_rejected_opens_the_users():
    rule = (lambda r: r["messages"][0]["role"] == "system", "System role not supported")
    with StubServer(rejecting(rule)) as server:
        assert isinstance(ask(generator(server)), Generated)
        [message] = server.requests[-1]["messages"]
        assert message["content"].startswith("Split a text into its claims.")


def test_what_the_judge_has_learned_holds_here_too():
    rule = (lambda r: "top_k" in r, "Unrecognized request argument supplied: top_k")

    def answer(request):
        rejected = rejecting(rule)(request)
        return completion({"4": 0.9, "0": 0.1}) if rejected is OK and "logprobs" in request else rejected

    with StubServer(answer) as server, Judge(model="stub-1", base_url=server.base_url, max_retries=0) as judge:
        judge.score(input="q", output="a", expected="a b")
        n = len(server.requests)
        assert isinstance(ask(generator_of(judge.backend)), Generated)
        assert len(server.requests) == n + 1


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ({"choices": []}, "server_error", "no choices"),
        ({"error": {"message": "overloaded"}}, "server_error", "overloaded"),
        (written("", finish_reason="content_filter"), "filtered", "content filter"),
        ({"choices": [{"message": {"content": None, "refusal": "I can't."}}]}, "filtered", "I can't."),
        ((500, "<html>bad gateway</html>"), "server_error", "HTTP 500"),
        ((413, {"error": {"message": "too large"}}), "too_long", "does not fit"),
    ],
)
def test_failures(answer, status, said):
    with StubServer(lambda _: answer) as server:
        failure = ask(generator(server))
        assert isinstance(failure, GradeFailure)
        assert failure.status == status
        assert said in failure.message


def test_a_key_that_is_refused_stops_the_run():
    with StubServer(lambda _: (401, {"error": {"message": "bad key"}})) as server, pytest.raises(ServerError, match="key"):
        ask(generator(server))


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("<think>\nhm {\n</think>\n\n[1]", "[1]"),
        ([{"type": "text", "text": "[1"}, {"type": "text", "text": "]"}], "[1]"),
        (None, ""),
    ],
)
def test_what_counts_as_the_text(message, text):
    with StubServer(lambda _: {"choices": [{"message": {"content": message}, "finish_reason": "length"}]}) as server:
        said = ask(generator(server))
        assert (said.text, said.truncated, said.reply.usage) == (text, True, None)


def test_the_embedded_model_does_not_write():
    class Other:
        wire = object()

    assert generator_of(Other()) is None


def test_many_at_once_agree_on_what_was_learned():
    with StubServer(rejecting((of_type("json_schema"), "response_format not supported"))) as server:
        one = generator(server)

        async def both():
            return await asyncio.gather(*(one.generate(PROMPT, CLAIMS_SCHEMA, name="claims") for _ in range(8)))

        assert all(isinstance(each, Generated) for each in run(both()))
        assert one.request(PROMPT, CLAIMS_SCHEMA, name="claims")["response_format"] == {"type": "json_object"}
