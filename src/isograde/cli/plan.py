"""``isograde plan``: how many more labels, and which."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from isograde.cli.options import column_map, scale
from isograde.datasets import read_rows
from isograde.errors import DataError, UserError
from isograde.rubric import load_rubric
from isograde.runs.calibrate import with_grades
from isograde.runs.planning import plan_labels
from isograde.runs.results import new_file
from isograde.runs.sample import labelled, rater_columns, write_sheet
from isograde.runs.show import console, plan_view

__all__ = ["plan"]

_EXAMPLES = """
\b
A pilot first, then what the judge says of all rows, then the next labels:
  isograde sample answers.jsonl -n 40 -o pilot.csv
  isograde score answers.jsonl -o grades.jsonl
  isograde plan answers.jsonl --grades grades.jsonl --pilot pilot.csv -n 60 -o next.csv
"""


@click.command(epilog=_EXAMPLES)
@click.argument("file", type=click.Path())
@click.option("--grades", "grades_file", required=True, type=click.Path(), help="Grades of FILE that isograde score wrote.")
@click.option("--pilot", required=True, type=click.Path(), help="Labelled rows of FILE, such as a filled-in sheet; joined by id.")
@click.option("-n", "n_rows", type=click.IntRange(min=1), default=50, show_default=True, help="How many rows to label next.")
@click.option("-o", "--output", help="File for the sheet of the next rows, .csv; without it only the figures are shown.")
@click.option("--rubric", default="answer_correctness", show_default=True, help="Shipped name or path of the rubric.")
@click.option("--raters", type=click.IntRange(1, 99), default=1, show_default=True, help="Empty columns, one a rater.")
@click.option("--column", "columns", multiple=True, metavar="FIELD=COLUMN", help="Which column (or dotted path) feeds a field.")
@click.option("--gold", "gold", multiple=True, metavar="COLUMN", help="Column of the pilot's gold labels; one a rater.")
@click.option("--gold-scale", metavar="LO:HI", help="Scale of the gold labels, e.g. 0:1.")
@click.option("--rng", type=click.IntRange(min=0), help="Seed of the draw; without it a fixed one.")
@click.option("--force", is_flag=True, help="Write over a sheet that is there, labels and all.")
def plan(*, file: str, grades_file: str, pilot: str, n_rows: int, output: str | None, rubric: str, **options: Any) -> None:
    """Say what more labels of FILE would buy, and draw the next ones where they tell most.

    From a pilot of labels: how the width of the interval of these rows' mean (isograde estimate --estimand set) and the
    calibrated error fall as labels grow. The next rows are drawn at random with known probabilities, more of them where the
    calibrator is unsure; the sheet is blind and its column inclusion_probability keeps means unbiased.
    """
    loaded = load_rubric(rubric)
    target = None if output is None else new_file(output, force=options["force"], apart_from=[file, grades_file, pilot])
    if target is not None and target.suffix.lower() != ".csv":
        raise UserError(f"{output}: a sheet is written as .csv; end the name so")
    columns = column_map(options["columns"], [loaded])
    named = list(options["gold"]) or None
    if named is None and Path(pilot).suffix == ".csv":
        named = rater_columns(read_rows(Path(pilot), labels=loaded.labels).columns) or None
    pilot_rows = read_rows(Path(pilot), gold=named, gold_scale=scale(options["gold_scale"]), labels=loaded.labels)
    gold = {row.key: row for row in labelled(pilot_rows)}
    rows = [
        replace(row, gold=gold[row.key].gold if row.key in gold else None)
        for row in read_rows(Path(file), columns=columns, gold=[], labels=loaded.labels)
    ]
    if unknown := sorted(gold.keys() - {row.key for row in rows}):
        raise DataError(f"{pilot}: id {unknown[0]!r} is no row of {file}; a pilot's rows come from the set that is planned for")
    found = with_grades(rows, Path(grades_file), rubric=loaded.name)
    made = plan_labels(list(zip(found.rows, found.grades or (), strict=True)), n_rows, rng=options["rng"])
    console().print(plan_view(made))
    if target is not None:
        write_sheet(made.drawn, loaded, target, n_raters=options["raters"])
        click.echo(f"{len(made.drawn)} rows to label are in {target}")
