"""``isograde estimate``: how good a graded run is, from the judge and few gold labels."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from isograde.cli.options import scale
from isograde.runs.estimate import estimate_run
from isograde.runs.graded import GoldFile
from isograde.runs.results import report_file, write_report
from isograde.runs.show import console
from isograde.runs.show_means import mean_view

__all__ = ["estimate"]

_EXAMPLES = """
\b
Gold labels of some rows, by id, or those that the grades carry:
  isograde estimate grades.jsonl --gold sheet.csv
  isograde estimate grades.jsonl --report mean.html
"""


@click.command(epilog=_EXAMPLES)
@click.argument("grades", type=click.Path(path_type=Path))
@click.option("--gold", type=click.Path(path_type=Path), help="Gold labels of some rows, by id: a column gold, or a sheet.")
@click.option("--gold-column", "columns", multiple=True, metavar="COLUMN", help="Column of gold labels; one a rater.")
@click.option("--gold-scale", metavar="LO:HI", help="Scale of the gold labels in that file, e.g. 0:1.")
@click.option("--estimand", type=click.Choice(["population", "set"]), default="population", show_default=True,
              help="The mean of what the rows were drawn from, or of these rows alone.")  # fmt: skip
@click.option(
    "--pass-at", type=click.FloatRange(0, 1), default=0.75, show_default=True, help="Score from which an answer passes."
)
@click.option("--rubric", metavar="NAME", help="Whose grades, where the file holds several rubrics'.")
@click.option("--report", help="File for the report: .html, .md or .json.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, and nothing else.")
@click.option("--rng", type=click.IntRange(min=0), help="Seed of the folds; without it a fixed one.")
@click.option("--force", is_flag=True, help="Write over a report that is there.")
def estimate(
    *,
    grades: Path,
    gold: Path | None,
    columns: tuple[str, ...],
    gold_scale: str | None,
    estimand: Literal["population", "set"],
    pass_at: float,
    rubric: str | None,
    report: str | None,
    as_json: bool,
    rng: int | None,
    force: bool,
) -> None:
    """Estimate the mean score and the pass rate of GRADES, free of the judge's bias, from gold labels of some of its rows.

    The labelled rows must be a random draw of the graded ones. A sheet that isograde plan drew brings along the probabilities
    with which its rows were drawn, and they are used.
    """
    read = [path for path in (grades, gold) if path is not None]
    target = None if report is None else report_file(report, force=force, apart_from=read)
    labels = None if gold is None else GoldFile(path=gold, columns=columns, scale=scale(gold_scale))
    made = estimate_run(grades, labels, estimand=estimand, pass_at=pass_at, rubric=rubric, rng=rng)
    if target is not None:
        write_report(target, made)
    if as_json:
        click.echo(made.to_json())
    else:
        console().print(mean_view(made))
    if target is not None:
        click.echo(f"written: {target}", err=as_json)
