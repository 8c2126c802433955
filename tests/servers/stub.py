"""A chat-completions server for tests: answers by a function, or always the same at once (run as a script, for benchmarks)."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from aiohttp import web


def completion(
    probabilities: Mapping[str, float], *, content: str | None = None, usage: bool = True, **choice: Any
) -> dict[str, Any]:
    """A chat completion whose one answer token has these probabilities; the most probable is chosen."""
    top = [{"token": token, "logprob": math.log(p), "bytes": list(token.encode())} for token, p in probabilities.items()]
    chosen = max(top, key=lambda entry: entry["logprob"])
    body: dict[str, Any] = {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": 1760000000,
        "model": "stub-1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": chosen["token"] if content is None else content},
                "finish_reason": "length",
                "logprobs": {"content": [{**chosen, "top_logprobs": top}]},
                **choice,
            }
        ],
    }
    if usage:
        body["usage"] = {"prompt_tokens": 180, "completion_tokens": 1, "total_tokens": 181}
    return body


LEVELS = {"4": 0.62, "3": 0.25, "2": 0.08, "1": 0.03, "0": 0.02}

Answer = dict[str, Any] | tuple[int, Any] | tuple[int, Any, dict[str, str]]
"""A body; or a status and a body (a str is sent as HTML); or those and headers."""


class StubServer:
    """Serve on a loopback port in a thread; ``requests`` keeps what came in.

    ``answer`` takes the request's decoded JSON. It may be a coroutine function.
    """

    def __init__(
        self, answer: Callable[[dict[str, Any]], Any] | Mapping[str, float] = LEVELS, *, models: Sequence[str] = ("stub-1",)
    ):
        self.answer = answer if callable(answer) else lambda _request: completion(answer)
        self.models = models
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._started = threading.Event()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._chat)
        app.router.add_post("/openai/deployments/{deployment}/chat/completions", self._chat)  # Azure's address
        app.router.add_get("/v1/models", self._list)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _list(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]})

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        answer = self.answer(body)
        if asyncio.iscoroutine(answer):
            answer = await answer
        status, content, headers = (200, answer, {}) if not isinstance(answer, tuple) else (*answer, {})[:3]
        if isinstance(content, str):
            return web.Response(status=status, text=content, content_type="text/html", headers=headers)
        return web.json_response(content, status=status, headers=headers)


def main() -> None:
    """Answer every request with the same bytes, as fast as can be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--listed", type=int, default=20, help="entries of top_logprobs")
    arguments = parser.parse_args()
    others = {f"w{i}": 1e-6 for i in range(max(0, arguments.listed - 5))}
    payload = json.dumps(completion({**LEVELS, **others})).encode()

    async def chat(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=payload, content_type="application/json")

    async def models(_request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "stub-1"}]})

    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/v1/models", models)
    web.run_app(app, host="127.0.0.1", port=arguments.port, access_log=None, print=None)


if __name__ == "__main__":
    main()
