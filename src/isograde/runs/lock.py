"""One run at a time writes an output file: the file itself is locked, so a run that is killed leaves nothing stale behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from isograde.errors import UserError

if sys.platform != "win32":
    import fcntl

__all__ = ["OutputLock", "locked"]


class OutputLock:
    """What holds an output file for this run."""

    def __init__(self) -> None:
        self._held: list[int] = []

    def hold(self, descriptor: int) -> bool:
        """Lock an open file until the run ends; False where another run holds it.

        A file that is to take the output's place is locked before it does, so that there is no moment at which nobody holds it.
        """
        # Windows has no lock that leaves a file readable by others, and some network drives have none at all: none is held there
        if sys.platform != "win32":
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:
                return True
            self._held.append(os.dup(descriptor))  # the lock lasts as long as one descriptor of the open file
        return True

    def release(self) -> None:
        """Let go."""
        while self._held:
            os.close(self._held.pop())


@contextmanager
def locked(path: Path | None) -> Iterator[OutputLock]:
    """Hold an output file from before it is read until the last line is written.

    Parameters
    ----------
    path : pathlib.Path or None
        A file that is not there yet is made, and taken away again if nothing is written to it. Nothing is locked for None, for
        pipes and devices, and where a file cannot be.

    Yields
    ------
    OutputLock

    Raises
    ------
    UserError
        If another run is writing the file, or it cannot be written.
    """
    lock = OutputLock()
    if path is None or sys.platform == "win32" or not path.resolve().parent.is_dir() or (path.exists() and not path.is_file()):
        yield lock
        return
    made = _lock(path, lock)
    try:
        yield lock
    finally:
        with suppress(OSError):
            if made and not path.stat().st_size:
                path.resolve().unlink()
        lock.release()


def _lock(name: Path, lock: OutputLock) -> bool:
    """Lock the file that has the name; True where it was made for that."""
    path = name.resolve()  # a link stays a link
    while True:
        made = not path.exists()
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise UserError(f"{name}: cannot be written: {error.strerror}") from None
        try:
            if not lock.hold(descriptor):
                raise UserError(f"another run is writing {name}; wait for it, or give another name")
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return made
        finally:
            os.close(descriptor)
        lock.release()  # what was locked has been replaced meanwhile
