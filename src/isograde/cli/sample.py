"""``isograde sample``: a blind sheet for people to label."""

from __future__ import annotations

from pathlib import Path

import click

from isograde.cli.options import column_map
from isograde.datasets import read_rows
from isograde.errors import UserError
from isograde.rubric import load_rubric
from isograde.runs.results import new_file
from isograde.runs.sample import draw, write_sheet

__all__ = ["sample"]


@click.command()
@click.argument("file", type=click.Path())
@click.option("-n", "n_rows", type=click.IntRange(min=1), default=50, show_default=True, help="How many rows to draw.")
@click.option("-o", "--output", required=True, help="File for the sheet, .csv.")
@click.option("--rubric", default="answer_correctness", show_default=True, help="Shipped name or path of the rubric to label by.")
@click.option("--raters", type=click.IntRange(1, 99), default=1, show_default=True, help="Empty columns, one a rater.")
@click.option("--column", "columns", multiple=True, metavar="FIELD=COLUMN", help="Which column (or dotted path) feeds a field.")
@click.option("--rng", type=click.IntRange(min=0), help="Seed of the draw; without it a fixed one.")
@click.option("--force", is_flag=True, help="Write over a sheet that is there, labels and all.")
def sample(
    *, file: str, n_rows: int, output: str, rubric: str, raters: int, columns: tuple[str, ...], rng: int | None, force: bool
) -> None:
    """Draw rows of FILE to label, spread over its groups, as a sheet for a spreadsheet.

    The sheet shows no grade of any judge. Fill in the rater columns and hand it to isograde calibrate.
    """
    loaded = load_rubric(rubric)
    target = new_file(output, force=force, apart_from=[file])
    if target.suffix.lower() != ".csv":
        raise UserError(f"{output}: a sheet is written as .csv; end the name so")
    rows = read_rows(Path(file), columns=column_map(columns, [loaded]), gold=[], labels=loaded.labels)
    drawn = draw(rows, n_rows, rng=rng)
    write_sheet(drawn, loaded, target, n_raters=raters)
    click.echo(
        f"{len(drawn)} of {rows.n} rows are in {output}; fill in {'rater_1' if raters == 1 else 'the rater columns'}, then:"
    )
    click.echo(f"  isograde calibrate {output} -o calibration.json")
