"""``isograde check``: has the judge, or the data, moved since a calibrator was fitted?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from isograde.applied import load_calibrator
from isograde.cli.options import model_options
from isograde.cli.score import judges_of
from isograde.errors import UserError
from isograde.rubric import load_rubric
from isograde.runs.check import check as check_drift
from isograde.runs.check import grade_again, split_grades
from isograde.runs.gold import gold_file, read_gold
from isograde.runs.results import report_file, write_report
from isograde.runs.show import console, drift_view
from isograde.runs.watch import watched

__all__ = ["check"]

_EXAMPLES = """
\b
Ask the judge about the stored gold items again:
  isograde check --calibration calibration.json --model gpt-4.1-mini
Grades that are there already, of gold items, of new rows, or of both:
  isograde check --calibration calibration.json --grades this_week.jsonl
"""


@click.command(epilog=_EXAMPLES)
@click.option("--calibration", required=True, metavar="FILE", help="Calibrator that isograde calibrate wrote.")
@click.option("--gold-items", metavar="FILE", help="Its gold items; NAME.gold.jsonl beside it unless given.")
@click.option("--grades", "grades_file", type=click.Path(), help="New grades that isograde score wrote; nothing is graded.")
@model_options
@click.option("--alpha", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05, show_default=True,
              help="Share of checks, at most, that alarm where nothing has moved.")  # fmt: skip
@click.option("--tolerance", type=click.FloatRange(min=0), default=0.05, show_default=True,
              help="Smallest change that counts: levels, or share of rows.")  # fmt: skip
@click.option("--report", help="File for the report: .html, .md or .json.")
@click.option("--rng", type=click.IntRange(min=0), help="Seed of the permutations; without it a fixed one.")
@click.option("--force", is_flag=True, help="Write over a report that is there.")
def check(
    *, calibration: str, gold_items: str | None, grades_file: str | None, report: str | None, alpha: float, **options: Any
) -> None:
    """Say whether the judge, or the data, has moved since a calibrator was fitted.

    The stored gold items are graded again, or new grades are taken from a file: those of gold items tell about the judge, those
    of other rows about the data. Exit code 1 is an alarm.
    """
    path = Path(calibration)
    stored = gold_file(path) if gold_items is None else Path(gold_items)
    read = [calibration, str(stored), *([grades_file] if grades_file is not None else [])]
    target = None if report is None else report_file(report, force=options["force"], apart_from=read)
    calibrator = load_calibrator(path)
    gold = read_gold(stored)
    if grades_file is not None:
        explicit = click.get_current_context().get_parameter_source("rubrics") is click.core.ParameterSource.COMMANDLINE
        name = load_rubric(options["rubrics"][0]).name if explicit else None
        again, new = split_grades(Path(grades_file), gold, rubric=name)
    else:
        if len(options["rubrics"]) > 1:
            raise UserError("one rubric is checked at a time; give --rubric once")
        [judge] = judges_of(**options)
        with judge, watched(len(gold)) as on_grade:
            again, new = grade_again(judge, gold, on_grade=on_grade), []
    title = f"{path.name}: has anything moved?"
    made = check_drift(calibrator, gold, again, new, alpha=alpha, tolerance=options["tolerance"], title=title, rng=options["rng"])
    if target is not None:
        write_report(target, made)
    console().print(drift_view(made))
    if target is not None:
        click.echo(f"written: {target}")
    sys.exit(1 if made.alarm else 0)
