"""Work through a source with a bounded number of tasks, in flat memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from typing import Any, Generic, TypeVar

__all__ = ["bounded"]

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 16  # how many results may wait for one that is late, as a multiple of the concurrency


async def bounded(
    source: Iterable[T],
    work: Callable[[T], Coroutine[Any, Any, R]],
    *,
    concurrency: int,
    ordered: bool,
    ready: Callable[[], bool] = lambda: True,
    stopped: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[R, None]:
    """Work through a source with a bounded number of tasks, in flat memory.

    Parameters
    ----------
    source : iterable
        Read only as far ahead as the window allows.
    work : callable
        Coroutine function of one element.
    concurrency : int
        Tasks at once.
    ordered : bool
        Whether results come in the order of the source or as they are finished.
    ready : callable
        Until it says True, one task runs at a time.
    stopped : callable
        Once it says True, no further task is begun; those under way are waited for.

    Yields
    ------
    object
        What ``work`` returned. An exception of the source or of ``work`` ends the reading; it is raised after all that was under
        way has been yielded.
    """
    window = _Window(source, work, concurrency=concurrency, ordered=ordered, ready=ready, stopped=stopped)
    try:
        while True:
            window.refill()
            if not window.running:
                break
            await window.wake.wait()
            for result in window.take():
                yield result
        for result in window.rest():
            yield result
        if window.problem is not None:
            raise window.problem
    finally:
        for task in window.running:
            task.cancel()
        await asyncio.gather(*window.running, return_exceptions=True)


class _Window(Generic[T, R]):
    """The tasks that are under way and the results that wait for their turn."""

    def __init__(
        self,
        source: Iterable[T],
        work: Callable[[T], Coroutine[Any, Any, R]],
        *,
        concurrency: int,
        ordered: bool,
        ready: Callable[[], bool],
        stopped: Callable[[], bool],
    ) -> None:
        self._source, self._work = iter(source), work
        self._concurrency, self._ordered, self._ready, self._stopped = concurrency, ordered, ready, stopped
        self.running: dict[asyncio.Task[R], int] = {}
        self.wake = asyncio.Event()
        self.problem: BaseException | None = None
        self._ended: deque[asyncio.Task[R]] = deque()
        self._late: dict[int, R] = {}
        self._reading = True
        self._next_in = self._next_out = 0

    def refill(self) -> None:
        """Start tasks as far as the window allows."""
        ahead = self._concurrency * _AHEAD
        while self._reading and self._next_in - self._next_out < ahead:
            if len(self.running) >= (self._concurrency if self._ready() else 1):
                return
            if self._stopped():
                self._reading = False
                return
            try:
                element = next(self._source)
            except StopIteration:
                self._reading = False
            except Exception as error:  # noqa: BLE001 - whatever a user's generator raises is raised, after what was paid for
                self._reading, self.problem = False, error
            else:
                task = asyncio.create_task(self._work(element))
                self.running[task] = self._next_in
                task.add_done_callback(self._end)
                self._next_in += 1

    def _end(self, task: asyncio.Task[R]) -> None:
        self._ended.append(task)
        self.wake.set()

    def take(self) -> Iterator[R]:
        """Give what has finished, in its turn."""
        self.wake.clear()
        while self._ended:
            task = self._ended.popleft()
            index = self.running.pop(task)
            failure = asyncio.CancelledError() if task.cancelled() else task.exception()
            if failure is not None:
                self._reading, self.problem = False, self.problem or failure
            else:
                self._late[index] = task.result()
                if not self._ordered:
                    self._next_out += 1
                    yield self._late.pop(index)
        while self._next_out in self._late:
            self._next_out += 1
            yield self._late.pop(self._next_out - 1)

    def rest(self) -> Iterator[R]:
        """Give what stands behind one that raised."""
        for index in sorted(self._late):
            yield self._late.pop(index)
