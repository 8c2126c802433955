"""Grade rows and write them: what ``isograde score`` does."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from isograde.backends.loop import run
from isograde.datasets import Row, Rows
from isograde.errors import DataError, UserError
from isograde.judge import Judge, grades
from isograde.prompt import InvalidItemError, render
from isograde.records import Grade, GradeFailure
from isograde.runs.results import ResultWriter
from isograde.runs.summary import Summary, Tally

__all__ = ["check_fields", "plan", "score"]


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
            if name not in rows.fields:
                found = ", ".join(rows.columns) or "none"
                raise DataError(
                    f"rubric {judge.rubric.name} needs {name!r} and no column feeds it; columns found: {found}; "
                    f"say which one it is with --column {name}=COLUMN"
                )


def score(
    rows: Rows,
    judges: Sequence[Judge],
    *,
    writer: ResultWriter | None = None,
    limit: int | None = None,
    on_grade: Callable[[Row, Grade | GradeFailure], Any] = lambda _row, _grade: None,
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

    Returns
    -------
    list of Summary
        One a rubric.

    Raises
    ------
    DataError
        If the rows cannot feed a rubric.
    ServerError
        If the model cannot be used; what was finished has been written.
    """
    check_fields(rows, judges)
    names = [judge.rubric.name for judge in judges]
    if len(set(names)) < len(names):
        raise UserError(f"two rubrics of one name: {', '.join(names)}")
    tallies = {judge.rubric.name: Tally(judge.rubric) for judge in judges}
    started = time.perf_counter()
    wanted: Iterable[Row] = rows if limit is None else itertools.islice(rows, limit)

    async def work() -> None:
        async with aclosing(grades(wanted, judges, ordered=True)) as graded:
            async for row, grade in graded:
                if writer is not None:
                    writer.write(row, grade)
                tallies[grade.rubric or ""].add(row, grade)
                on_grade(row, grade)

    run(work())
    return [tally.summary(time.perf_counter() - started) for tally in tallies.values()]


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
            n_calls += max(1, several)
            if sampled < 200:
                try:
                    prompt = render(judge.rubric, row.item)
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
