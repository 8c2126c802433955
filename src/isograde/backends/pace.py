"""How many requests a server takes at once, found out by asking: fewer when it says too fast, more again when it answers."""

from __future__ import annotations

import asyncio
import math
from collections import deque

__all__ = ["Pace"]


class Pace:
    """Additive increase, multiplicative decrease, as congestion control has it.

    There is no limit until the server first says that it is asked too fast, or does not answer in time. Then half of what was
    under way is let through, at most once for requests that were sent under the same limit; each answer lets 1 ÷ limit of a
    request more through. It belongs to one event loop.

    References
    ----------
    Chiu, D.-M. and Jain, R. (1989). Analysis of the increase and decrease algorithms for congestion avoidance in computer
    networks. Computer Networks and ISDN Systems 17(1), 1–14. https://doi.org/10.1016/0169-7552(89)90019-6

    Examples
    --------
    >>> async def eight_at_once():
    ...     pace = Pace()
    ...     turns = [await pace.enter() for _ in range(8)]
    ...     pace.leave(turns[0], slower=True)
    ...     halved = pace.limit
    ...     pace.leave(turns[1], slower=True)  # sent before the limit was halved: it says nothing new
    ...     pace.leave(turns[2], faster=True)
    ...     return halved, pace.limit
    >>> asyncio.run(eight_at_once())
    (4.0, 4.25)
    """

    def __init__(self) -> None:
        self.limit = math.inf
        self._open = 0
        self._turn = 0  # counts the decreases
        self._until = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self) -> int:
        """Wait until another request may be sent.

        Returns
        -------
        int
            To be handed to :meth:`leave`.
        """
        if not self._waiting and self._open < self.limit and not self._until:
            self._open += 1
            return self._turn
        mine = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        self._next()
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():  # it was let through at the same moment
                self._open -= 1
                self._next()
            raise
        return self._turn

    def leave(self, turn: int, *, faster: bool = False, slower: bool = False) -> None:
        """Say how a request ended.

        Parameters
        ----------
        turn : int
            What :meth:`enter` gave.
        faster : bool
            Whether the server answered.
        slower : bool
            Whether it said too fast, or did not answer in time.
        """
        if slower and turn == self._turn:
            self.limit = max(1.0, min(self.limit, self._open) / 2)
            self._turn += 1
        elif faster:
            self.limit += 1 / self.limit
        self._open -= 1
        if self._waiting:
            self._next()

    def hold(self, seconds: float) -> None:
        """Let nothing through for so long: what one request is told holds for all."""
        loop = asyncio.get_running_loop()
        if seconds > 0 and loop.time() + seconds > self._until:
            self._until = loop.time() + seconds
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(self._until, self._released)

    def _released(self) -> None:
        """Go on after a hold."""
        self._until, self._timer = 0.0, None
        self._next()

    def _next(self) -> None:
        """Let through what may go."""
        while self._waiting and not self._until and (self._open < self.limit or not self._open):
            waiting = self._waiting.popleft()
            if not waiting.done():  # else its task was cancelled
                self._open += 1
                waiting.set_result(None)
