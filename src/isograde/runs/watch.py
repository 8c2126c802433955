"""A progress bar over a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from isograde.correctness import Correctness, CorrectnessFailure
from isograde.datasets import Row
from isograde.records import Grade, GradeFailure
from isograde.runs.show import console

__all__ = ["watched"]

_Result: TypeAlias = Grade | GradeFailure | Correctness | CorrectnessFailure
_EVERY_S = 30.0  # between two lines where no bar can be drawn


@contextmanager
def watched(total: int | None) -> Iterator[Callable[[Row, _Result], None]]:
    """Show a bar on a terminal's standard error while a run goes on, or a line now and then where it is no terminal.

    Parameters
    ----------
    total : int or None
        Grades to come; None where it is not known.

    Yields
    ------
    callable
        To be told of every row and grade.
    """
    screen = console(stderr=True)
    columns = (
        TextColumn("grading"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("mean {task.fields[mean]}  failed {task.fields[failed]}"),
    )
    told = time.monotonic()
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task("", total=total, mean="–", failed=0)
        n = n_failed = 0
        total_score = 0.0

        def on_grade(_row: Row, grade: _Result) -> None:
            nonlocal n, n_failed, total_score, told
            if isinstance(grade, GradeFailure | CorrectnessFailure):
                n_failed += 1
            elif (score := grade.value if isinstance(grade, Correctness) else grade.score) is not None:
                n, total_score = n + 1, total_score + score
            if not screen.is_terminal and time.monotonic() - told > _EVERY_S:
                told = time.monotonic()
                of = "" if total is None else f" of {total:,}"
                screen.print(f"{n + n_failed:,}{of} rows, {n_failed:,} failed")
            progress.update(task, advance=1, mean=f"{total_score / n:.3f}" if n else "–", failed=n_failed)

        yield on_grade
