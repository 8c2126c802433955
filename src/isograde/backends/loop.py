"""One event loop in a thread of its own, on which every connection lives.

Connections belong to the loop that opened them. Keeping them all on one loop lets the same judge be called from a script, from
Jupyter, from FastAPI and from several loops in turn, without patching any of them.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["on_loop", "release", "run"]

T = TypeVar("T")

_THREAD = "isograde"
_lock = threading.Lock()
_running: tuple[int, asyncio.AbstractEventLoop] | None = None  # process, loop: a forked child starts its own


def _loop() -> asyncio.AbstractEventLoop:
    """Give the loop, started at the first call."""
    global _running  # noqa: PLW0603 - one loop a process is the point
    with _lock:
        if _running is None or _running[0] != os.getpid():
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name=_THREAD, daemon=True).start()
            _running = (os.getpid(), loop)
        return _running[1]


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop and wait for it; works inside a running loop too.

    An interrupt cancels it and waits until it has cleaned up.
    """
    ended = threading.Event()

    async def whole() -> T:
        try:
            return await coroutine
        finally:
            ended.set()

    future = asyncio.run_coroutine_threadsafe(whole(), _loop())
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        ended.wait(5)
        raise


async def on_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine on the loop, from whichever loop."""
    loop = _loop()
    if asyncio.get_running_loop() is loop:
        return await coroutine
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))


def release(close: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    """Close what its owner forgot to close: called when the owner is collected or the interpreter ends, from whichever thread."""
    loop = _loop()
    future = asyncio.run_coroutine_threadsafe(close(), loop)
    if threading.current_thread().name != _THREAD:
        with suppress(Exception):  # nobody is left to be told
            future.result(timeout=1)
