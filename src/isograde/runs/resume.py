"""Going on with an output file that an earlier run of the same command left behind.

A file of grades is gone on with where every line of it is what this command would have written: the same rows in the same order,
the same rubric, model, server, parameters and calibration. Anything else is refused, and the difference named. Graded lines are
kept byte by byte; a last line that was cut in the middle is taken off; rows that failed are asked again.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isograde.datasets import Row
from isograde.errors import DataError, UserError
from isograde.judge import Judge
from isograde.records import Grade, GradeFailure
from isograde.runs.calibrate import grade_of, read_line
from isograde.runs.lock import OutputLock
from isograde.runs.results import FailureLine, GradeLine, line_of, line_text

__all__ = ["Begun", "begun", "checked", "cut", "mended", "replayed", "tasks_of"]

_FIRST = b'{"id": '  # how every line that we write begins
_NAMED = {
    "model": "model",
    "server": "server",
    "adapter": "adapter",
    "rubric_fingerprint": "rubric (its text has changed)",
    "method": "method",
}

Task = tuple[Judge, Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """An output file with grades in it.

    Attributes
    ----------
    path : pathlib.Path
    n_lines : int
        Whole lines.
    size : int
        Bytes of these.
    rest : bytes
        What comes after them: the begin of a line that was cut.
    failed : tuple of int
        Positions, from 0, of lines that are failures.
    lock : OutputLock or None
        What holds the file for this run.
    """

    path: Path
    n_lines: int
    size: int
    rest: bytes = b""
    failed: tuple[int, ...] = ()
    lock: OutputLock | None = None


def begun(name: str | Path, *, lock: OutputLock | None = None) -> Begun | None:
    """Find out whether there is an output to go on with.

    Parameters
    ----------
    name : str or pathlib.Path
    lock : OutputLock or None
        What holds the file for this run, from :func:`isograde.runs.lock.locked`.

    Returns
    -------
    Begun or None
        None where there is no such file, or nothing in it.

    Raises
    ------
    UserError
        If it is no file of grades in JSONL.
    """
    path = Path(name)
    if not path.is_file() or not path.stat().st_size:
        return None
    if path.suffix.lower() == ".csv":
        raise UserError(
            f"{path} is there already, and a CSV cannot be gone on with; --force writes it anew (what is in the store is not "
            "asked again), another name keeps it"
        )
    n_lines = size = 0
    rest = b""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                n_lines, size = n_lines + 1, size + len(line)
            else:
                rest = line
            if not line.startswith(_FIRST[: len(line)]):
                raise UserError(f"{path} is there already and may hold work; --force writes over it, another name keeps it")
    return Begun(path=path, n_lines=n_lines, size=size, rest=rest, lock=lock)


def checked(found: Begun, tasks: Iterable[Task]) -> Begun:
    """Make sure that a file is what this command would have written so far.

    Parameters
    ----------
    found : Begun
    tasks : iterable of (Judge, Row)
        In the order in which the command writes them.

    Returns
    -------
    Begun
        With its failures.

    Raises
    ------
    UserError
        If it is not; the first difference is named.
    """
    failed: list[int] = []
    others: list[str] = []
    n_asked = 0
    coming = iter(tasks)
    for position, line in enumerate(_lines(found)):
        task = next(coming, None)
        if task is None:
            raise _refused(found, f"it holds {found.n_lines} lines, and this command writes {position}")
        judge, row = task
        place = f"line {position + 1} (id {line.id!r})"
        if said := _other_row(line, judge, row):
            raise _refused(found, f"{place}: {said}")
        if isinstance(line, FailureLine):
            failed.append(position)
            continue
        if said := _other_judge(line, judge, row):
            raise _refused(found, f"{place}: {said}")
        n_asked += line.method != "blank_output"
        if line.question_fingerprint != judge.question_fingerprint(row.item):
            others.append(place)
    if others and len(others) == n_asked > 1:
        raise _refused(
            found, "no row would be asked now as it was then: a parameter (--max-tokens, --prefill …) or all texts have changed"
        )
    if others:
        raise _refused(found, f"{others[0]}: a text of this row has changed since, or a parameter of the request")
    if found.rest and not _is_begin(found.rest, next(coming, None)):
        raise _refused(found, f"what comes after its line {found.n_lines} is no begin of the next one")
    return replace(found, failed=tuple(failed))


def cut(found: Begun) -> Begun:
    """Take off a last line that was cut in the middle."""
    if found.rest:
        os.truncate(found.path, found.size)
    return replace(found, rest=b"")


def replayed(found: Begun, tasks: Iterable[Task]) -> Iterator[tuple[Row, Grade | GradeFailure]]:
    """Read the lines back as the grades that they were written from."""
    for line, (_, row) in zip(_lines(found), tasks, strict=False):
        yield row, grade_of(line, row.item)


def mended(found: Begun, again: Mapping[int, tuple[Row, Grade | GradeFailure]]) -> Begun:
    """Put other grades in place of some, all at once: the file is never half of one and half of the other.

    Parameters
    ----------
    found : Begun
    again : mapping of int to (Row, Grade or GradeFailure)
        By the position of the line.

    Returns
    -------
    Begun
        The file as it is now.
    """
    path = found.path.resolve()  # a link stays a link
    beside = path.with_name(f".{path.name}.isograde")
    size = 0
    try:
        with path.open("rb") as old, beside.open("wb") as new:
            for position, line in enumerate(itertools.islice(old, found.n_lines)):
                text = line_text(line_of(*again[position])).encode() if position in again else line
                size += new.write(text)
            if found.lock is not None:
                found.lock.hold(new.fileno())
        shutil.copymode(path, beside)
        os.replace(beside, path)  # noqa: PTH105 - tells itself from str.replace
    finally:
        beside.unlink(missing_ok=True)
    return replace(found, size=size, rest=b"", failed=())


def _is_begin(rest: bytes, task: Task | None) -> bool:
    """Tell whether a cut line could be the one that is written for a row."""
    if task is None:
        return False
    judge, row = task
    whole = line_text(line_of(row, GradeFailure(status="no_answer", message="", rubric=judge.rubric.name)))
    opening = whole.partition(', "status": ')[0].encode()
    return rest.startswith(opening[: len(rest)]) or opening.startswith(rest)


def _lines(found: Begun) -> Iterator[GradeLine | FailureLine]:
    """Read the whole lines."""
    with found.path.open("rb") as file:
        for number, line in enumerate(itertools.islice(file, found.n_lines), 1):
            try:
                yield read_line(line.decode(), f"{found.path}, line {number}")
            except (DataError, UnicodeDecodeError) as error:
                raise _refused(found, str(error)) from None


def _other_row(line: GradeLine | FailureLine, judge: Judge, row: Row) -> str | None:
    """Say how a line is of another row or rubric than the command's."""
    if line.rubric != judge.rubric.name:
        return f"is by rubric {line.rubric}, this command's is {judge.rubric.name}"
    if (line.id, line.index) != (row.key, row.index):
        return f"this command's row there has id {row.key!r}; the data or their order have changed"
    now = read_line(line_text(line_of(row, GradeFailure(status="no_answer", message="", rubric=line.rubric))), "")
    for name in ("group", "gold", "raters", "metadata"):
        if getattr(line, name) != getattr(now, name):
            return f"its {name} has changed since"
    return None


def _other_judge(line: GradeLine, judge: Judge, row: Row) -> str | None:
    """Say how a line is of another judge than the command's."""
    backend = judge.backend
    now: dict[str, Any] = {
        "model": backend.model,
        "server": backend.server,
        "adapter": backend.adapter(judge.rubric),
        "rubric_fingerprint": judge.rubric.fingerprint,
        "method": line.method if line.method == "blank_output" else judge.way.method,
    }
    for name, value in now.items():
        if getattr(line, name) != value:
            return f"another {_NAMED[name]}: {getattr(line, name)} then, {value} now"
    if line.n_samples is not None and line.n_samples != judge.way.samples:
        return f"another number of samples: {line.n_samples} then, {judge.way.samples} now"
    if line.observed_mass < judge.min_mass:
        return f"its observed mass, {line.observed_mass:.3f}, is under --min-mass {judge.min_mass:g}, which was lower then"
    if (line.calibrated is None) != (judge.calibration is None):
        return f"was written with{'out' if line.calibrated is None else ''} --calibration"
    if judge.calibration is not None:
        grade = grade_of(line, row.item)
        if isinstance(grade, Grade) and judge.calibration.applied(grade).calibrated != grade.calibrated:
            return "another calibration than --calibration now names"
    return None


def _refused(found: Begun, said: str) -> UserError:
    """Say that a file cannot be gone on with."""
    return UserError(f"{found.path} is of another run: {said}; --force writes over it, another name keeps it")


def tasks_of(rows: Iterable[Row], judges: Sequence[Judge]) -> Iterator[Task]:
    """Every row with every judge, in the order of the output."""
    return ((judge, row) for row in rows for judge in judges)
