"""``isograde calibrate``: fit a judge's levels to human gold labels, and report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from isograde.cli.options import column_map, data_options, model_options, scale
from isograde.cli.score import judges_of
from isograde.datasets import Rows, read_rows
from isograde.errors import UserError
from isograde.rubric import load_rubric
from isograde.runs.calibrate import Labelled, fitted, graded_by, reported, with_grades, with_scores
from isograde.runs.results import new_file, report_file, write_report
from isograde.runs.sample import labelled, rater_columns
from isograde.runs.score import check_fields
from isograde.runs.show import calibration_view, console
from isograde.runs.watch import watched

__all__ = ["calibrate"]

_EXAMPLES = """
\b
Grade a labelled file with the embedded model, then fit and report:
  isograde calibrate labelled.jsonl -o calibration.json --report report.html
Grades that are there already, joined by id:
  isograde calibrate labelled.jsonl --grades grades.jsonl -o calibration.json
Another tool's plain scores in a column:
  isograde calibrate labelled.jsonl --score-column ragas --score-range 0:1 --report report.html
"""


@click.command(epilog=_EXAMPLES)
@click.argument("file", type=click.Path())
@click.option("-o", "--output", help="File for the calibrator, .json.")
@click.option("--report", help="File for the report: .html, .md or .json.")
@click.option(
    "--grades", "grades_file", type=click.Path(), help="Grades that isograde score wrote, joined by id; nothing is graded."
)
@click.option("--score-column", help="Column with another judge's plain scores; nothing is graded.")
@click.option("--score-range", metavar="LO:HI", help="Plain scores that stand for the lowest and the highest level.")
@click.option("--label-source", help="Who gave the labels, as the report says it.")
@model_options
@data_options
@click.option("--max-mae", type=click.FloatRange(min=0), help="Exit with 1 if the calibrated MAE, out of fold, is above this.")
@click.option("--require-signal", is_flag=True, help="Exit with 1 if the judge shows no signal beyond the labels themselves.")
@click.option("--rng", type=click.IntRange(min=0), help="Seed of folds and resamples; without it a fixed one.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
def calibrate(*, file: str, output: str | None, report: str | None, max_mae: float | None, **options: Any) -> None:
    """Fit a judge's levels to the gold labels of FILE and say how far the judge is from the humans.

    Every figure is out of fold, split by group: nothing is measured on the labels it was fitted on.
    """
    force = options["force"]
    read = [name for name in (file, options["grades_file"]) if name is not None]
    calibrator_file = None if output is None else new_file(output, force=force, apart_from=read)
    report_path = None if report is None else report_file(report, force=force, apart_from=[*read, *([output] if output else [])])
    rubric = load_rubric(options["rubrics"][0])
    if len(options["rubrics"]) > 1:
        raise UserError("one rubric is calibrated at a time; give --rubric once")
    path = Path(file)
    columns = column_map(options["columns"], [rubric])
    gold = list(options["gold"]) or None
    if gold is None and path.suffix == ".csv":
        gold = rater_columns(read_rows(path, columns=columns, labels=rubric.labels).columns) or None
    rows = read_rows(path, columns=columns, gold=gold, gold_scale=scale(options["gold_scale"]), labels=rubric.labels)
    found = _judged(rows, **options)
    sources = {str(row.item.metadata["label_source"]) for row in found.rows if "label_source" in row.item.metadata}
    source = options["label_source"] or (sources.pop() if len(sources) == 1 else None)
    calibrator = fitted(found, label_source=source, rng=options["rng"])
    title = f"{path.name}: the judge beside {source or 'gold'} labels"
    made = reported(found, label_source=source, title=title, rng=options["rng"])
    if report_path is not None:
        write_report(report_path, made)
    if calibrator_file is not None:
        calibrator_file.write_text(calibrator.to_json() + "\n", encoding="utf-8")
    console().print(calibration_view(made))
    for written in filter(None, (calibrator_file, report_path)):
        click.echo(f"written: {written}")
    mae = made.point_figures[0].calibrated.value
    if max_mae is not None and (mae is None or mae > max_mae):
        click.echo(
            f"isograde: calibrated MAE is {'not defined' if mae is None else f'{mae:.3f}'}, over --max-mae {max_mae:g}", err=True
        )
        sys.exit(1)
    if options["require_signal"] and made.trust not in {"yes", "a little"}:
        click.echo("isograde: the judge shows no signal, and --require-signal asks for one", err=True)
        sys.exit(1)


def _judged(rows: Rows, **options: Any) -> Labelled:
    """Take what a judge says of the labelled rows from where the options say that it is."""
    grades_file, score_column = options["grades_file"], options["score_column"]
    if grades_file is not None and score_column is not None:
        raise UserError("--grades and --score-column: give one or the other")
    kept = labelled(rows)[: options["limit"]]
    if grades_file is not None:
        explicit = click.get_current_context().get_parameter_source("rubrics") is click.core.ParameterSource.COMMANDLINE
        name = load_rubric(options["rubrics"][0]).name if explicit else None
        return with_grades(kept, Path(grades_file), rubric=name)
    if score_column is not None:
        n_levels = len(load_rubric(options["rubrics"][0]).labels)
        return with_scores(kept, score_column, n_levels=n_levels, score_range=scale(options["score_range"], "--score-range"))
    [judge] = judges_of(**options)
    check_fields(rows, [judge])
    with judge, watched(len(kept)) as on_grade:
        return graded_by(judge, kept, on_grade=on_grade)
