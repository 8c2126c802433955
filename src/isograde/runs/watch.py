"""A progress bar over a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from isograde.datasets import Row
from isograde.records import Grade, GradeFailure
from isograde.runs.show import console

__all__ = ["watched"]


@contextmanager
def watched(total: int | None) -> Iterator[Callable[[Row, Grade | GradeFailure], None]]:
    """Show a bar on a terminal's standard error while a run goes on.

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
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task("", total=total, mean="–", failed=0)
        n = n_failed = 0
        total_score = 0.0

        def on_grade(_row: Row, grade: Grade | GradeFailure) -> None:
            nonlocal n, n_failed, total_score
            if isinstance(grade, GradeFailure):
                n_failed += 1
            elif grade.score is not None:
                n, total_score = n + 1, total_score + grade.score
            progress.update(task, advance=1, mean=f"{total_score / n:.3f}" if n else "–", failed=n_failed)

        yield on_grade
