"""Embeddings over HTTP against a stub that answers as servers were seen to, and from a function."""

import asyncio
import base64
import functools
import logging
import struct

import numpy as np
import pytest

from isograde import UserError
from isograde.backends.embeddings import CallableEmbeddings, embeddings_of, http_embeddings
from isograde.backends.loop import run
from isograde.backends.vectors import Embedded, as_vector
from isograde.errors import ServerError, UnreachableError
from isograde.records import GradeFailure
from servers.fault import FaultServer, vector
from servers.stub import StubServer


def numbers(text):
    """What the stub's model makes of a text."""
    return [float(len(text)), float(sum(map(ord, text)) % 97), 1.0]


def body(texts, *, embedding=numbers, index=lambda i: i, usage=True):
    answer = {
        "object": "list",
        "data": [{"object": "embedding", "index": index(i), "embedding": embedding(t)} for i, t in enumerate(texts)],
    }
    if usage:
        answer["usage"] = {"prompt_tokens": sum(map(len, texts)), "total_tokens": sum(map(len, texts))}
    return answer


def embed(answer, texts, *, tries=1):
    """Serve, embed, and give what came and what was sent."""
    with StubServer(answer) as server:
        embeddings = http_embeddings("stub-1", base_url=server.base_url, max_retries=tries - 1)
        found = run(embeddings.embed(texts))
        run(embeddings.aclose())
        return found, server.requests


def listed(found):
    return [each.message if isinstance(each, GradeFailure) else each.tolist() for each in found.vectors]


def rejecting(rule, message="'input' is invalid", status=400):
    """Answer, unless a rule finds fault with a text or with the batch."""

    def answer(request):
        if rule(request["input"]):
            return status, {"error": {"message": message, "type": "invalid_request_error"}}
        return body(request["input"])

    return answer


def test_the_request_asks_for_floats_and_the_tokens_are_counted():
    found, [sent] = embed(lambda request: body(request["input"]), ["one", "three"])
    assert sent == {"model": "stub-1", "input": ["one", "three"], "encoding_format": "float"}
    assert listed(found) == [numbers("one"), numbers("three")]
    assert found.usage.input_tokens == 8


def test_base64_is_read_too():
    def packed(text):
        return base64.b64encode(struct.pack("<3f", *numbers(text))).decode()

    found, _ = embed(lambda request: body(request["input"], embedding=packed), ["one", "three"])
    assert listed(found) == [numbers("one"), numbers("three")]


def test_entries_are_put_in_the_order_of_the_texts():
    def answer(request):
        made = body(request["input"])
        made["data"] = [made["data"][i] for i in (2, 0, 1)]
        return made

    found, _ = embed(answer, ["a", "bb", "ccc"])
    assert listed(found) == [numbers("a"), numbers("bb"), numbers("ccc")]


def test_without_any_index_the_order_is_the_answers():
    found, requests = embed(lambda request: body(request["input"], index=lambda i: None), ["a", "bb"])
    assert listed(found) == [numbers("a"), numbers("bb")]
    assert len(requests) == 1


@pytest.mark.parametrize("index", [lambda i: 0, lambda i: i + 1, lambda i: [i], lambda i: True])
def test_where_the_index_says_nothing_texts_are_sent_apart(index):
    found, requests = embed(lambda request: body(request["input"], index=index), ["a", "bb", "ccc"])
    assert listed(found) == [numbers("a"), numbers("bb"), numbers("ccc")]
    assert [len(request["input"]) for request in requests] == [3, 2, 1, 1, 1]


def test_blank_texts_are_not_sent_and_a_text_is_sent_once():
    found, [sent] = embed(lambda request: body(request["input"]), ["", "a", " \u200b\n", "a", "bb"])
    assert sent["input"] == ["a", "bb"]
    blank = "the text is blank; it has no embedding"
    assert listed(found) == [blank, numbers("a"), blank, numbers("a"), numbers("bb")]


def test_nothing_but_blanks_is_no_request():
    found, requests = embed(lambda request: body(request["input"]), ["", "\t"])
    assert requests == []
    assert found.usage is None


def test_a_batch_is_halved_down_to_the_text_at_fault():
    texts = [f"text {i}" for i in range(16)]
    found, requests = embed(rejecting(lambda sent: "text 5" in sent), texts)
    assert listed(found) == ["HTTP 400: 'input' is invalid" if text == "text 5" else numbers(text) for text in texts]
    assert len(requests) == 9  # 16, then twice 8, 4, 2 and 1
    assert found.usage.input_tokens == sum(len(text) for text in texts if text != "text 5")


def test_a_text_that_does_not_fit_is_too_long_and_the_others_are_embedded():
    too_long = rejecting(lambda sent: any(len(text) > 50 for text in sent), "maximum context length is 8192 tokens")
    found, _ = embed(too_long, ["short", "x" * 51, "shorter"])
    assert [getattr(each, "status", None) for each in found.vectors] == [None, "too_long", None]


def test_llama_cpps_error_for_one_text_too_long_is_the_texts_alone():
    said = "input (902 tokens) is too large to process. increase the physical batch size (current batch size: 512)"
    texts = ["short", "x" * 900, "shorter"]
    found, requests = embed(rejecting(lambda sent: any(len(text) > 512 for text in sent), said, 500), texts, tries=3)
    assert [getattr(each, "status", None) for each in found.vectors] == [None, "too_long", None]
    assert len(requests) == 5  # nothing is asked twice


def test_a_server_that_is_down_is_not_asked_in_halves():
    found, requests = embed(lambda _request: (503, {"error": {"message": "loading model"}}), ["a", "bb"])
    assert {each.status for each in found.vectors} == {"server_error"}
    assert len(requests) == 1


def test_a_limit_on_the_batch_is_found_and_remembered():
    texts = [f"text {i}" for i in range(96)]
    answer = rejecting(lambda sent: len(sent) > 32, "batch size 96 > maximum allowed batch size 32", 422)
    with StubServer(answer) as server:
        embeddings = http_embeddings("stub-1", base_url=server.base_url, max_retries=0)
        first = run(embeddings.embed(texts))
        before = len(server.requests)
        run(embeddings.embed([f"more {i}" for i in range(96)]))
        later = [len(request["input"]) for request in server.requests[before:]]
    assert listed(first) == [numbers(text) for text in texts]
    assert later == [24] * 4  # 96 and 48 were rejected


def test_long_texts_go_in_batches_of_their_own():
    texts = ["a" * 60_000, "b" * 60_000, "c" * 30_000, "d" * 200_000, "e"]
    _, requests = embed(lambda request: body(request["input"]), texts)
    assert sorted([text[0] for text in request["input"]] for request in requests) == [["a"], ["b", "c"], ["d"], ["e"]]


def test_a_server_that_knows_no_encoding_format_is_asked_without_it_from_then_on():
    def answer(request):
        if "encoding_format" in request:
            return 422, {"detail": "encoding_format: extra inputs are not permitted"}
        return body(request["input"])

    with StubServer(answer) as server:
        embeddings = http_embeddings("stub-1", base_url=server.base_url, max_retries=0)
        run(embeddings.embed(["a"]))
        found = run(embeddings.embed(["bb"]))
        assert len(server.requests) == 3
    assert listed(found) == [numbers("bb")]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([0.0, 0.0, 0.0], "is all zeros"),
        ([1.0, float("nan"), 0.0], "holds NaN or infinity"),
        ([1.0, None, 0.0], "holds NaN or infinity"),
        ([1.0, float("inf"), 0.0], "holds NaN or infinity"),
        ([], "is empty"),
        ([[1.0, 2.0], [3.0, 4.0]], "is no list of numbers"),
        (None, "is no list of numbers"),
        ({"a": 1}, "is no list of numbers"),
        ("not base64!", "is no list of numbers"),
        ("AAA=", "is no list of numbers"),  # half a float
        ("", "is empty"),
    ],
)
def test_a_vector_that_no_cosine_can_be_taken_with_is_a_failure_of_its_text(bad, said):
    found, requests = embed(
        lambda request: body(request["input"], embedding=lambda t: bad if t == "bad" else numbers(t)), ["a", "bad"]
    )
    assert listed(found) == [numbers("a"), f"the embedding {said}"]
    assert found.vectors[1].status == "no_answer"
    assert len(requests) == 1


def test_vectors_of_another_length_are_failures():
    found, _ = embed(
        lambda request: body(request["input"], embedding=lambda t: [1.0] * (4 if t == "odd" else 3)), ["a", "odd", "b"]
    )
    assert listed(found) == [[1.0] * 3, "the server gave an embedding of 4 numbers after one of 3", [1.0] * 3]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"data": []}, "the server gave 0 embeddings for 1 texts"),
        ({"data": [{"index": 0}]}, "the answer holds no embeddings"),
        ({"data": "none"}, "the answer holds no embeddings"),
        ([1, 2], "the answer holds no embeddings"),
        ({"error": "model is loading"}, "model is loading"),
        ((200, "<html>a login page</html>"), "the server sent no JSON (text/html; charset=utf-8, 25 bytes)"),
        ((500, {"error": {"message": "boom"}}), "HTTP 500: boom"),
        ((429, {"error": {"message": "slow down"}}), "HTTP 429: slow down"),
    ],
)
def test_an_answer_without_vectors_is_a_failure(answer, said):
    found, _ = embed(lambda _request: answer, ["a"])
    assert said in listed(found)[0]
    assert found.vectors[0].status == "server_error"


def test_a_refused_key_and_an_unknown_model_stop_the_run():
    for status, message in ((401, "Incorrect API key"), (404, "The model `stub-1` does not exist")):
        with pytest.raises(ServerError):
            embed(lambda _request, answer=(status, {"error": {"message": message}}): answer, ["a", "b"])


def test_nobody_at_the_address():
    with StubServer() as server:
        address = server.base_url
    with pytest.raises(UnreachableError, match="nothing answers"):
        run(http_embeddings("stub-1", base_url=address, max_retries=0).embed(["a"]))


def test_through_faults_every_text_gets_its_own_vector(monkeypatch):
    monkeypatch.setattr("isograde.backends.wire._BACKOFF_S", 0.001)
    monkeypatch.setattr("isograde.backends.wire._MAX_BACKOFF_S", 0.01)
    texts = [f"text {i}" for i in range(30)] + ["the zero vector"]
    with FaultServer(seed=3, rate=0.4) as server:
        embeddings = http_embeddings("fault-1", base_url=server.base_url, max_retries=6, timeout=2)

        async def one_a_request():  # since a fault befalls a whole request
            return await asyncio.gather(*(embeddings.embed([text]) for text in texts))

        *found, zero = [each.vectors[0] for each in run(one_a_request())]
        assert sum(server.played.values()) > 5
    assert zero.message == "the embedding is all zeros"
    got = [(text, each) for text, each in zip(texts, found, strict=False) if not isinstance(each, GradeFailure)]
    assert len(got) > 20
    for text, each in got:
        np.testing.assert_allclose(each, vector(text), rtol=1e-6)


def test_neither_vectors_nor_keys_are_logged(caplog):
    caplog.set_level(logging.DEBUG)
    with StubServer(lambda request: body(request["input"], embedding=lambda t: [0.123456789, 1.0])) as server:
        embeddings = http_embeddings("stub-1", base_url=server.base_url, api_key="sk-secret", max_retries=0)
        run(embeddings.embed(["a"]))
    assert "0.123456789" not in caplog.text
    assert "sk-secret" not in caplog.text + repr(embeddings)


def test_dimensions_are_sent_and_named():
    embeddings = http_embeddings("stub-1", base_url="http://127.0.0.1:1/v1", dimensions=256)
    assert embeddings.request(["a"])["dimensions"] == 256
    assert embeddings.name == "stub-1[256]"


def test_a_function_gets_each_text_once():
    seen = []

    def function(texts):
        seen.append(list(texts))
        return np.array([numbers(text) for text in texts])

    found = run(CallableEmbeddings(function).embed(["a", "", "bb", "a"]))
    assert seen == [["a", "bb"]]
    assert listed(found) == [numbers("a"), "the text is blank; it has no embedding", numbers("bb"), numbers("a")]


def test_a_coroutine_function_is_awaited():
    async def function(texts):
        await asyncio.sleep(0)
        return [numbers(text) for text in texts]

    class Callable:
        async def __call__(self, texts):
            return await function(texts)

    for each in (function, Callable(), functools.partial(function)):
        assert listed(run(embeddings_of(each).embed(["a"]))) == [numbers("a")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda texts: [[1.0]], "gave 1 vectors for 2 texts"),
        (lambda texts: 3, "must give a list of vectors, gave int"),
        (lambda texts: [[1.0], [1.0, 2.0]], r"several lengths \(1, 2\)"),
    ],
)
def test_a_function_that_gives_something_else_is_told(given, said):
    with pytest.raises(UserError, match=said):
        run(embeddings_of(given).embed(["a", "b"]))


def test_what_goes_wrong_in_a_function_is_its_own():
    def function(texts):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(embeddings_of(function).embed(["a"]))


def test_embeddings_of_ones_own_are_taken_as_they_are():
    class Own:
        name = "own"

        async def embed(self, texts):
            return Embedded(vectors=tuple(as_vector(numbers(text)) for text in texts))

        async def aclose(self):
            pass

    own = Own()
    assert embeddings_of(own) is own


def test_names_tell_functions_apart():
    assert CallableEmbeddings(numbers).name == "numbers"
    assert CallableEmbeddings(numbers, name="mine").name == "mine"
