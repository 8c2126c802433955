"""A server that misbehaves by script and by seed: chat completions and embeddings.

    python tests/servers/fault.py [--port 8766] [--seed 0] [--rate 0.3] [--quirk vllm]

What befalls a request depends on the seed, on its content and on how often that content was asked before, and on nothing else:
neither on the order in which requests come nor on the clock. Each content has a right answer of its own (:func:`right`), so that
a grade on the wrong row shows. ``asked`` and ``answered`` count by content.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import random
import struct
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Self

if __package__ in {None, ""}:
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1]))

from aiohttp import web

from servers.quirks import QUIRKS, RECORDED, refusal
from servers.stub import completion

__all__ = ["FAULTS", "PERMANENT", "TRANSIENT", "FaultServer", "right", "vector"]

Play = Callable[[web.Request, Any], Awaitable[web.StreamResponse]]
"""Answers a request that would have been answered by the given body."""


def right(content: str, labels: Sequence[str] = ("0", "1", "2", "3", "4")) -> dict[str, float]:
    """The distribution that belongs to a content: different for nearly every one."""
    drawn = random.Random(hashlib.sha256(content.encode("utf-8", "replace")).digest())
    weights = [drawn.expovariate(1) + 1e-3 for _ in labels]
    whole = sum(weights)
    return {label: round(weight / whole, 6) for label, weight in zip(labels, weights, strict=True)}


def vector(text: str, size: int = 8) -> list[float]:
    """The embedding that belongs to a text; a zero vector where it says so."""
    if "zero vector" in text:
        return [0.0] * size
    drawn = random.Random(hashlib.sha256(b"vector" + text.encode("utf-8", "replace")).digest())
    return [drawn.gauss(0, 1) for _ in range(size)]


def _status(status: int, message: str, headers: Mapping[str, str] | None = None, **error: Any) -> Play:
    """An error with a JSON body."""

    async def play(_request: web.Request, _body: Any) -> web.StreamResponse:
        return web.json_response(refusal(message, status=status, **error)[1], status=status, headers=headers)

    return play


def _html(status: int) -> Play:
    """A page in place of JSON."""

    async def play(_request: web.Request, _body: Any) -> web.StreamResponse:
        page = "<html><head><title>Bad gateway</title></head><body><h1>It did not work</h1></body></html>"
        return web.Response(status=status, text=page, content_type="text/html")

    return play


def _instead(change: Callable[[Any], Any]) -> Play:
    """Another body, with status 200."""

    async def play(_request: web.Request, body: Any) -> web.StreamResponse:
        return web.json_response(change(body))

    return play


async def _dated(_request: web.Request, _body: Any) -> web.StreamResponse:
    """Too fast; when to come back is a date, which has whole seconds."""
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)
    body = refusal("Rate limit reached for requests per min (RPM)", code="rate_limit_exceeded")[1]
    return web.json_response(body, status=429, headers={"Retry-After": when})


async def _reset(request: web.Request, _body: Any) -> web.StreamResponse:
    """The connection is cut before a byte is sent."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def _half(request: web.Request, body: Any) -> web.StreamResponse:
    """The connection is cut in the middle of the body."""
    content = json.dumps(body).encode()
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(content))})
    await response.prepare(request)
    await response.write(content[: len(content) // 2])
    assert request.transport is not None
    request.transport.abort()
    return response


async def _half_json(_request: web.Request, body: Any) -> web.StreamResponse:
    """A body that ends too early, properly delivered."""
    content = json.dumps(body)
    return web.Response(text=content[: len(content) // 2], content_type="application/json")


async def _drip(request: web.Request, body: Any) -> web.StreamResponse:
    """A few bytes at a time, for longer than anyone waits: no read ever times out by itself."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    content = json.dumps(body).encode()
    for i in range(0, len(content), 4):
        await response.write(content[i : i + 4])
        await asyncio.sleep(0.05)
    return response


async def _hang(_request: web.Request, body: Any) -> web.StreamResponse:
    """Nothing comes, for longer than anyone waits."""
    await asyncio.sleep(30)
    return web.json_response(body)


async def _odd_type(_request: web.Request, body: Any) -> web.StreamResponse:
    """JSON under a wrong name; it can be read."""
    return web.Response(text=json.dumps(body), content_type="text/plain")


TRANSIENT: dict[str, Play] = {
    "too_fast": _status(429, "Rate limit reached, slow down", {"Retry-After": "0.05"}, code="rate_limit_exceeded"),
    "too_fast_dated": _dated,
    "too_fast_bare": _status(429, "Too many requests"),
    "internal": _status(500, "The server had an error while processing your request"),
    "overloaded": _status(503, "The engine is currently overloaded", {"Retry-After": "0.02"}),
    "bad_gateway": _html(502),
    "html": _html(200),
    "reset": _reset,
    "half": _half,
    "half_json": _half_json,
    "drip": _drip,
    "hang": _hang,
    "no_choices": _instead(lambda body: {**body, "choices": []}),
    "error_200": _instead(lambda _body: {"error": {"message": "Provider returned error", "code": 502}}),
}
"""What goes away when the same is asked again."""

PERMANENT: dict[str, Play] = {
    "filtered": _status(400, "The response was filtered", code="content_filter"),
    "too_long": _status(400, "This model's maximum context length is 4096 tokens", code="context_length_exceeded"),
    "rejected": _status(400, "I do not like this one"),
    "no_answer": _instead(lambda _body: RECORDED["reasoning-ate-it"]),
    "low_mass": _instead(lambda _body: RECORDED["off-level"]),
}
"""What stays with the item, however often it is asked."""

HARMLESS: dict[str, Play] = {
    "odd_type": _odd_type,
    "no_usage": _instead(lambda body: {name: value for name, value in body.items() if name != "usage"}),
}
"""What looks odd and is an answer all the same."""

STOPPING: dict[str, Play] = {
    "quota": _status(
        429, "You exceeded your current quota, please check your plan and billing details.", code="insufficient_quota"
    ),
    "daily": _status(429, "Rate limit reached for requests per day (RPD)", {"Retry-After": "40000"}, code="rate_limit_exceeded"),
    "key": _status(401, "Incorrect API key provided"),
}
"""What concerns the whole run."""

FAULTS = {**TRANSIENT, **PERMANENT, **HARMLESS, **STOPPING}


class FaultServer:
    """Serve on a loopback port in a thread.

    Parameters
    ----------
    seed : int
        Of everything that is drawn.
    rate : float
        Share of requests that a fault befalls.
    faults : sequence of str
        Names of those that are drawn from, each as often.
    permanent : float
        Share of contents that fail however often they are asked, by one of ``PERMANENT``.
    most : int or None
        Faults in a row after which a content is answered; None lets chance decide.
    latency : tuple of float
        Least and most seconds before an answer; it reorders the answers.
    slots : int or None
        Requests at once, above which the server answers 429.
    quirk : str or None
        Whose bodies are sent; see ``servers.quirks.QUIRKS``.
    script : callable, optional
        Given the content and how often it was asked before; names a fault, or None for an answer. In place of chance.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        rate: float = 0.0,
        faults: Sequence[str] = tuple(TRANSIENT),
        permanent: float = 0.0,
        most: int | None = None,
        latency: tuple[float, float] = (0.0, 0.0),
        slots: int | None = None,
        quirk: str | None = None,
        script: Callable[[str, int], str | None] | None = None,
        port: int = 0,
    ) -> None:
        self._seed, self._rate, self._faults, self._permanent, self._most = seed, rate, tuple(faults), permanent, most
        self._latency, self._slots, self._script, self.port = latency, slots, script, port
        self._quirk = (lambda _request, probabilities: completion(probabilities)) if quirk is None else QUIRKS[quirk]
        self._open = 0
        self.most_open = 0
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.played: Counter[str] = Counter()
        self._started = threading.Event()

    @property
    def base_url(self) -> str:
        """Where it listens, once it was started."""
        return f"http://127.0.0.1:{self.port}/v1"

    def fault(self, content: str, before: int) -> str | None:
        """What befalls this content the (before + 1)th time that it is asked; None is a plain answer."""
        if self._script is not None:
            return self._script(content, before)
        bad = self._drawn("permanent", content)
        if bad.random() < self._permanent:
            return bad.choice(tuple(PERMANENT))
        if self._most is not None and before >= self._most:
            return None
        drawn = self._drawn(before, content)
        return drawn.choice(self._faults) if drawn.random() < self._rate else None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _drawn(self, *what: object) -> random.Random:
        return random.Random(hashlib.sha256(repr((self._seed, *what)).encode("utf-8", "replace")).digest())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/openai/deployments/{deployment}/chat/completions", self._chat)  # Azure's address
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/v1/models", self._list)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _list(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "fault-1", "object": "model"}]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        content = asked["messages"][-1]["content"]
        if asked["messages"][-1]["role"] == "assistant":  # a prefilled turn
            content = asked["messages"][-2]["content"]
        return await self._answer(request, content, lambda: self._quirk(asked, right(content)))

    async def _embeddings(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        if any(isinstance(text, str) and not text.strip() for text in texts):  # one blank text fails the whole batch
            body = refusal("'$.input' is invalid: an input cannot be an empty string")[1]
            return web.json_response(body, status=400)
        floats = asked.get("encoding_format", "base64") == "float"  # the SDK's own default is base64
        data = [{"object": "embedding", "index": i, "embedding": _embedding(text, floats=floats)} for i, text in enumerate(texts)]
        count = sum(len(str(text)) for text in texts) // 4 + 1
        body = {
            "object": "list",
            "model": asked.get("model"),
            "data": data[::-1],
            "usage": {"prompt_tokens": count, "total_tokens": count},
        }
        return await self._answer(request, json.dumps(texts), lambda: body)

    async def _answer(self, request: web.Request, content: str, made: Callable[[], Any]) -> web.StreamResponse:
        """Answer, or play what the script says."""
        before = self.asked[content]
        self.asked[content] += 1
        self._open += 1
        self.most_open = max(self.most_open, self._open)
        try:
            if self._slots is not None and self._open > self._slots:
                self.played["too_many"] += 1
                return await TRANSIENT["too_fast"](request, None)
            await asyncio.sleep(self._drawn("latency", before, content).uniform(*self._latency))
            name = self.fault(content, before)
            answer = made()
            status, body = answer if isinstance(answer, tuple) else (200, answer)
            if name is not None:
                self.played[name] += 1
                if name in HARMLESS:
                    self.answered[content] += 1
                return await FAULTS[name](request, body)
            self.answered[content] += status == 200
            return web.json_response(body, status=status)
        finally:
            self._open -= 1


def _embedding(text: Any, *, floats: bool) -> Any:
    """An embedding in the encoding asked for."""
    values = vector(str(text))
    return values if floats else base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def main() -> None:
    """Serve until it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8766)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--permanent", type=float, default=0.0)
    parser.add_argument("--slots", type=int)
    parser.add_argument("--quirk", choices=sorted(QUIRKS))
    given = parser.parse_args()
    with FaultServer(**vars(given)) as server:
        print(f"listening on {server.base_url}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
