"""``isograde demo``: grade the sample that ships, on the embedded model."""

from __future__ import annotations

import click

from isograde.datasets import Row, read_rows
from isograde.judge import Judge
from isograde.records import Grade, GradeFailure
from isograde.rubric import shipped_path
from isograde.runs.score import score as score_rows
from isograde.runs.show import console, grade_table, summary_view
from isograde.runs.watch import watched

__all__ = ["demo"]


@click.command()
def demo() -> None:
    """Grade the 40 items that ship with isograde on the embedded model, and show what comes out."""
    screen = console()
    rows = read_rows(shipped_path("calibration", "demo.jsonl"))
    click.echo(
        f"Grading {rows.n} items that were written for this demo, by the rubric answer_correctness, on the embedded model."
    )
    graded: list[tuple[Row, Grade | GradeFailure]] = []
    with Judge() as judge:
        with watched(rows.n) as on_grade:

            def keep(row: Row, grade: Grade | GradeFailure) -> None:
                graded.append((row, grade))
                on_grade(row, grade)

            [summary] = score_rows(rows, [judge], on_grade=keep)
        screen.print(grade_table(graded, judge.rubric.labels))
    screen.print()
    screen.print(summary_view(summary))
    click.echo(
        "\nThe embedded model has 135 million parameters and is not trained as a judge yet: its grades here are close to chance."
        "\nYour own file:        isograde score answers.jsonl -o grades.jsonl"
        "\nby a capable model:   isograde score answers.jsonl -o grades.jsonl --model gpt-4.1-mini"
        "\nat a server of yours: isograde score answers.jsonl -o grades.jsonl --base-url http://localhost:8000/v1 --model NAME"
    )
