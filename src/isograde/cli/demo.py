"""``isograde demo``: grade the sample that ships, calibrate it, report."""

from __future__ import annotations

import shutil
import sys

import click

from isograde.datasets import Row, read_rows
from isograde.judge import Judge
from isograde.records import Grade, GradeFailure
from isograde.rubric import shipped_path
from isograde.runs.calibrate import Labelled, reported
from isograde.runs.results import report_file, write_report
from isograde.runs.score import score as score_rows
from isograde.runs.show import calibration_view, console, grade_table, summary_view
from isograde.runs.watch import watched

__all__ = ["demo"]


@click.command()
@click.option("--report", default="isograde-demo.html", show_default=True, help="File for the calibration report.")
def demo(*, report: str) -> None:
    """Grade the 40 items that ship with isograde on the embedded model, calibrate the grades, and write the report."""
    target = report_file(report, force=True)
    screen = console()
    rows = list(read_rows(shipped_path("calibration", "demo.jsonl")))
    click.echo(f"Grading {len(rows)} items, written for this demo, by the rubric answer_correctness, on the embedded model.")
    graded: list[Grade | GradeFailure] = []
    with Judge() as judge:
        with watched(len(rows)) as progress:

            def keep(row: Row, grade: Grade | GradeFailure) -> None:
                graded.append(grade)
                progress(row, grade)

            [summary] = score_rows(read_rows(rows), [judge], on_grade=keep)
        screen.print(grade_table(list(zip(rows, graded, strict=True)), judge.rubric.labels))
    screen.print()
    screen.print(summary_view(summary))
    made = reported(
        Labelled(rows=tuple(rows), grades=tuple(graded), scores=None, n_levels=len(summary.labels)),
        label_source="authored (by the developers, for this demo)",
        title="isograde demo: the embedded judge beside its authors' labels",
    )
    write_report(target, made)
    screen.print("\nCan this judge be trusted on this task?")
    screen.print(calibration_view(made))
    command = "isograde" if shutil.which("isograde") else sys.argv[0]
    click.echo(
        f"\nThe report is in {target.resolve()}"
        "\n"
        "\nThe embedded judge is small: 135 million parameters, and an adapter that was trained for this rubric alone."
        f"\nYour own file:        {command} score answers.jsonl -o grades.jsonl"
        f"\nby a capable model:   {command} score answers.jsonl -o grades.jsonl --model gpt-4.1-mini"
        f"\nat a server of yours: {command} score answers.jsonl -o grades.jsonl --base-url http://localhost:8000/v1 --model NAME"
        f"\nbeside your labels:   {command} calibrate labelled.jsonl -o calibration.json --report report.html"
    )
