"""``isograde calibrate``: fit a judge's levels to human gold labels, and report."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from isograde.cli.correctness import correctness_of, correctness_options
from isograde.cli.options import column_map, data_options, model_options, scale, store_options
from isograde.cli.score import judges_of, say
from isograde.correctness.calibrated import settings_of
from isograde.datasets import Row, Rows, read_rows
from isograde.errors import UserError
from isograde.judge import Judge
from isograde.records import Grade, GradeFailure
from isograde.rubric import load_rubric
from isograde.runs.calibrate import Labelled, fitted, graded_by, reported, with_grades, with_scores
from isograde.runs.gold import gold_file, write_gold
from isograde.runs.interrupt import gently
from isograde.runs.results import new_file, report_file, write_report
from isograde.runs.sample import labelled, rater_columns
from isograde.runs.score import check_fields
from isograde.runs.show import calibration_view, console, summary_view
from isograde.runs.signals import fitted_mae, measured, needs_metric, signal_names, signals_of
from isograde.runs.summary import Tally
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
Which of several signals is worth its cost, and one index of them all:
  isograde calibrate labelled.jsonl --signals rubric,claim_f1,similarity -o index.json --report report.html
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
@click.option(
    "--signals", metavar="NAME,NAME",
    help="Fit one index of several signals: rubric, claim_f1, precision, recall, similarity, or columns with scores in 0 … 1.",
)  # fmt: skip
@correctness_options
@click.option("--label-source", help="Who gave the labels, as the report says it.")
@model_options
@store_options
@data_options
@click.option("--max-mae", type=click.FloatRange(min=0), help="Exit with 1 if the calibrated MAE, out of fold, is above this.")
@click.option("--require-signal", is_flag=True, help="Exit with 1 if the judge shows no signal beyond the labels themselves.")
@click.option(
    "--gold-items/--no-gold-items", default=True, show_default=True,
    help="Keep the gold items beside the calibrator, as NAME.gold.jsonl, for isograde check.",
)  # fmt: skip
@click.option("--rng", type=click.IntRange(min=0), help="Seed of folds and resamples; without it a fixed one.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
def calibrate(*, file: str, output: str | None, report: str | None, max_mae: float | None, **options: Any) -> None:
    """Fit a judge's levels to the gold labels of FILE and say how far the judge is from the humans.

    Every figure is out of fold, split by group: nothing is measured on the labels it was fitted on.
    """
    force = options["force"]
    read = [name for name in (file, options["grades_file"]) if name is not None]
    calibrator_file = None if output is None else new_file(output, force=force, apart_from=read)
    gold_items = _gold_items(calibrator_file, apart_from=[*read, *([report] if report else [])], **options)
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
        if gold_items is not None and found.grades is not None:
            write_gold(gold_items, found.rows, found.grades, tuple(rubric.fields))
    console().print(calibration_view(made))
    for written in filter(None, (calibrator_file, report_path, None if found.grades is None else gold_items)):
        click.echo(f"written: {written}")
    mae = fitted_mae(made)
    if max_mae is not None and (mae is None or mae > max_mae):
        click.echo(
            f"isograde: calibrated MAE is {'not defined' if mae is None else f'{mae:.3f}'}, over --max-mae {max_mae:g}", err=True
        )
        sys.exit(1)
    if options["require_signal"] and made.trust not in {"yes", "a little"}:
        click.echo("isograde: the judge shows no signal, and --require-signal asks for one", err=True)
        sys.exit(1)


def _gold_items(
    calibrator_file: Path | None, *, force: bool, apart_from: list[str], gold_items: bool, score_column: str | None, **others: Any
) -> Path | None:
    """Choose the file for the gold items, and check that it can be written."""
    if calibrator_file is None or not gold_items or score_column is not None or others["signals"] is not None:
        return None
    return new_file(gold_file(calibrator_file), force=force, apart_from=apart_from)


def _judged(rows: Rows, **options: Any) -> Labelled:
    """Take what a judge says of the labelled rows from where the options say that it is."""
    grades_file, score_column = options["grades_file"], options["score_column"]
    if grades_file is not None and score_column is not None:
        raise UserError("--grades and --score-column: give one or the other")
    kept = labelled(rows)[: options["limit"]]
    if options["signals"] is not None:
        return _with_signals(rows, kept, signal_names(options["signals"]), **options)
    return _by_judge(rows, kept, **options)


def _by_judge(rows: Rows, kept: list[Row], **options: Any) -> Labelled:
    """Take grades from a file, scores from a column, or ask a judge."""
    grades_file, score_column = options["grades_file"], options["score_column"]
    if grades_file is not None:
        explicit = click.get_current_context().get_parameter_source("rubrics") is click.core.ParameterSource.COMMANDLINE
        name = load_rubric(options["rubrics"][0]).name if explicit else None
        return with_grades(kept, Path(grades_file), rubric=name)
    if score_column is not None:
        n_levels = len(load_rubric(options["rubrics"][0]).labels)
        return with_scores(kept, score_column, n_levels=n_levels, score_range=scale(options["score_range"], "--score-range"))
    [judge] = judges_of(**options)
    check_fields(rows, [judge])
    tally, started = Tally(judge.rubric), time.monotonic()
    with judge, gently(say) as stopped, watched(len(kept)) as progress:

        def on_grade(row: Row, grade: Grade | GradeFailure) -> None:
            progress(row, grade)
            tally.add(row, grade)

        found = graded_by(judge, kept, on_grade=on_grade, stopped=stopped)
    if stopped():
        console(stderr=True).print(summary_view(tally.summary(time.monotonic() - started)))
        say(f"{len(found.rows)} of {len(kept)} labelled rows are graded, nothing is fitted yet{_kept_in(judge)}")
        raise click.Abort
    return found


def _with_signals(rows: Rows, kept: list[Row], names: tuple[str, ...], **options: Any) -> Labelled:
    """Bring together what the signals that are named need: grades, claims and similarities, columns."""
    if options["score_column"] is not None:
        raise UserError(f"--signals takes columns too: name {options['score_column']} among them, in place of --score-column")
    rubric_levels = len(load_rubric(options["rubrics"][0]).labels)
    if not needs_metric(names):
        found = _by_judge(rows, kept, **options) if "rubric" in names else None
        signals = signals_of(kept, names, grades=None if found is None else found.grades, results=None)
        if found is not None:
            return replace(found, signals=signals)
        scores = signals.values[names[0]]
        return Labelled(rows=tuple(kept), grades=None, scores=scores, n_levels=rubric_levels, score_range=(0, 1), signals=signals)
    if options["grades_file"] is not None:
        raise UserError("--grades holds rubric grades; claims and similarity are made by grading, so leave --grades out")
    alike = "similarity" in names
    [judge] = judges_of(**options)
    check_fields(rows, [judge])
    with correctness_of(judge, **options | ({} if alike else {"weights": "1,0"})) as metric:
        if alike and metric.embeddings is None:
            raise UserError("similarity needs embeddings: name --embeddings-model, or leave similarity out of --signals")
        with gently(say) as stopped, watched(len(kept)) as progress:
            grades, results = measured(metric, kept, on_grade=progress, stopped=stopped)
    if stopped():
        say(f"{len(grades)} of {len(kept)} labelled rows are graded, nothing is fitted yet{_kept_in(judge)}")
        raise click.Abort
    settings = settings_of(metric, names)
    signals = signals_of(kept, names, grades=grades, results=results, settings=settings, weights=metric.weights)
    return Labelled(rows=tuple(kept), grades=tuple(grades), scores=None, n_levels=rubric_levels, signals=signals)


def _kept_in(judge: Judge) -> str:
    """Say where a run that was stopped finds its answers again."""
    return "" if judge.store is None else f"; their answers are in {judge.store.path}, where the same command finds them"
