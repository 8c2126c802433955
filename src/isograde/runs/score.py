"""Grade rows and write them: what ``isograde score`` does."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from isograde.backends.loop import run
from isograde.datasets import Row, Rows
from isograde.errors import DataError, UserError
from isograde.judge import Judge, graded
from isograde.prompt import InvalidItemError
from isograde.records import Grade, GradeFailure
from isograde.runs.results import ResultWriter
from isograde.runs.resume import Begun, Task, checked, cut, mended, replayed, tasks_of
from isograde.runs.summary import Summary, Tally

__all__ = ["check_field", "check_fields", "plan", "score"]


def check_fields(rows: Rows, judges: Sequence[Judge]) -> None:
    """Refuse rows that cannot feed a rubric.

    Raises
    ------
    DataError
        If there are no rows, or no column feeds a field that a rubric needs; the message lists the columns.
    """
    if rows.n == 0:
        raise DataError("there are no rows to grade")
    for judge in judges:
        for name in judge.rubric.fields:
            check_field(rows, name, of=f"rubric {judge.rubric.name}")


def check_field(rows: Rows, name: str, *, of: str) -> None:
    """Refuse rows of which no column feeds a field that something needs."""
    if name not in rows.fields:
        found = ", ".join(rows.columns) or "none"
        raise DataError(
            f"{of} needs {name!r} and no column feeds it; columns found: {found}; say which one it is with --column {name}=COLUMN"
        )


def score(
    rows: Rows,
    judges: Sequence[Judge],
    *,
    writer: ResultWriter | None = None,
    limit: int | None = None,
    on_grade: Callable[[Row, Grade | GradeFailure], Any] = lambda _row, _grade: None,
    stopped: Callable[[], bool] = lambda: False,
    found: Begun | None = None,
    tell: Callable[[str], Any] = lambda _said: None,
) -> list[Summary]:
    """Grade every row by every judge, write each in input order, and sum up.

    Parameters
    ----------
    rows : Rows
        What to grade.
    judges : sequence of Judge
        On one backend, a rubric each.
    writer : ResultWriter or None
        Where the graded rows go.
    limit : int or None
        Grade only so many rows.
    on_grade : callable
        Told of every row and grade, in input order.
    stopped : callable
        Once it says True, nothing further is asked; what is under way is written.
    found : Begun or None
        An output that is gone on with, from :func:`isograde.runs.resume.begun`; the writer appends to it.
    tell : callable
        Told in one line what is gone on with.

    Returns
    -------
    list of Summary
        One a rubric.

    Raises
    ------
    DataError
        If the rows cannot feed a rubric.
    UserError
        If the output is of another run.
    ServerError
        If the model cannot be used; what was finished has been written.
    """
    check_fields(rows, judges)
    names = [judge.rubric.name for judge in judges]
    if len(set(names)) < len(names):
        raise UserError(f"two rubrics of one name: {', '.join(names)}")
    tallies = {judge.rubric.name: Tally(judge.rubric) for judge in judges}
    started = time.perf_counter()

    def tasks() -> Iterator[Task]:
        return tasks_of(itertools.islice(rows, limit), judges)

    def done(row: Row, grade: Grade | GradeFailure, *, kept: bool = False) -> None:
        tallies[grade.rubric or ""].add(row, grade, kept=kept)
        on_grade(row, grade)

    async def work(skipped: int) -> None:
        async with aclosing(graded(itertools.islice(tasks(), skipped, None), judges, ordered=True, stopped=stopped)) as results:
            async for row, grade in results:
                if writer is not None:
                    writer.write(row, grade)
                done(row, grade)

    if found is not None:
        found = _mended(cut(checked(found, tasks())), tasks, judges, stopped=stopped, tell=tell)
        for row, grade in replayed(found, tasks()):
            done(row, grade, kept=True)
        if writer is not None:
            writer.n_written = found.n_lines
    run(work(0 if found is None else found.n_lines))
    return [tally.summary(time.perf_counter() - started) for tally in tallies.values()]


def _mended(
    found: Begun,
    tasks: Callable[[], Iterator[Task]],
    judges: Sequence[Judge],
    *,
    stopped: Callable[[], bool],
    tell: Callable[[str], Any],
) -> Begun:
    """Ask again for the rows that failed, and put what comes in their place, also where it ends early."""
    once_more = f", {len(found.failed)} failed ones are asked again" if found.failed else ""
    tell(f"going on with {found.path}: {found.n_lines - len(found.failed)} graded rows are kept{once_more}")
    if not found.failed:
        return found
    failed = set(found.failed)
    chosen = (task for position, task in enumerate(itertools.islice(tasks(), found.n_lines)) if position in failed)
    again: dict[int, tuple[Row, Grade | GradeFailure]] = {}

    async def work() -> None:
        async with aclosing(graded(chosen, judges, ordered=True, stopped=stopped)) as results:
            async for result in results:
                again[found.failed[len(again)]] = result

    try:
        run(work())
    finally:
        after = mended(found, again)
    return after


def plan(rows: Rows, judges: Sequence[Judge], *, limit: int | None = None) -> dict[str, Any]:
    """Say what a run would send, without sending it.

    Returns
    -------
    dict
        ``server``; ``request``: the exact request of the first item that can be asked; ``n_rows``; ``n_calls``;
        ``estimated_input_tokens``, at four characters a token over up to 200 rows; ``estimated_seconds``, at one second a call.
    """
    check_fields(rows, judges)
    request: dict[str, Any] | None = None
    n_calls = characters = n_rows = sampled = 0
    for row in itertools.islice(rows, limit):
        n_rows += 1
        for judge in judges:
            several = len(row.item.references) if "expected" in judge.rubric.fields else 1
            n_calls += max(1, several) * judge.way.samples
            if sampled < 200:
                try:
                    prompt = judge.way.prompt(judge.rubric, row.item)
                except InvalidItemError:
                    continue
                sampled += 1
                characters += len(prompt.system) + len(prompt.user)
                request = request or judge.backend.request(prompt, judge.rubric.labels)
    return {
        "server": judges[0].backend.server or "in process",
        "request": request,
        "n_rows": n_rows,
        "n_calls": n_calls,
        "estimated_input_tokens": round(characters / 4 / max(1, sampled) * n_calls),
        "estimated_seconds": round(n_calls / judges[0].concurrency, 1),
    }
