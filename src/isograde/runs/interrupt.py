"""Ctrl-C, gently: the first lets what is under way finish, the second ends at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["gently"]


@contextmanager
def gently(tell: Callable[[str], object]) -> Iterator[Callable[[], bool]]:
    """Take the first interrupt as a wish to stop; the second is a ``KeyboardInterrupt``.

    Where this is not the main thread, or somebody else handles interrupts, nothing changes.

    Parameters
    ----------
    tell : callable
        Told in one line, at the first.

    Yields
    ------
    callable
        Whether to stop.
    """
    stopped = threading.Event()
    mine = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def first(_number: int, _frame: FrameType | None) -> None:
        stopped.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tell("finishing what is under way; Ctrl-C again stops at once")

    if mine:
        signal.signal(signal.SIGINT, first)
    try:
        yield stopped.is_set
    finally:
        if mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)
