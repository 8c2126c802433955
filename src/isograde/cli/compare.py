"""``isograde compare``: is one system better than another?"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from isograde.cli.options import scale
from isograde.errors import UserError
from isograde.report.comparison import ComparisonReport, signed
from isograde.runs.compare import compare_runs
from isograde.runs.graded import GoldFile
from isograde.runs.results import report_file, write_report
from isograde.runs.show import console
from isograde.runs.show_means import comparison_view

__all__ = ["compare"]

_EXAMPLES = """
\b
Gold labels that the graded rows carry, or in one file with the columns id, gold_a and gold_b:
  isograde compare old.jsonl new.jsonl
  isograde compare old.jsonl new.jsonl --gold gold.jsonl
A labelled sheet of each system's answers:
  isograde compare old.jsonl new.jsonl --gold-a old_sheet.csv --gold-b new_sheet.csv
In CI: stop a release that is shown to be worse, or one that is not shown to be as good:
  isograde compare old.jsonl new.jsonl --gold gold.jsonl --fail-if-worse-by 0.02
  isograde compare old.jsonl new.jsonl --gold gold.jsonl --require-non-inferior 0.02
"""


@click.command(epilog=_EXAMPLES)
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--gold", "gold", type=click.Path(path_type=Path), help="Gold labels of both: columns id, gold_a and gold_b.")
@click.option("--gold-a", type=click.Path(path_type=Path), help="Gold labels of A's answers, by id: a column gold, or a sheet.")
@click.option("--gold-b", type=click.Path(path_type=Path), help="Gold labels of B's answers.")
@click.option("--gold-scale", metavar="LO:HI", help="Scale of the gold labels in these files, e.g. 0:1.")
@click.option("--rubric", metavar="NAME", help="Whose grades to compare, where the files hold several rubrics'.")
@click.option("--by", multiple=True, metavar="COLUMN", help="Metadata to slice by; unasked every column with few values.")
@click.option("--report", help="File for the report: .html, .md or .json.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, and nothing else.")
@click.option("--fail-if-worse-by", type=click.FloatRange(0, 1), metavar="MARGIN",
              help="Exit with 1 if B is shown to be worse by more: the interval lies wholly below −MARGIN.")  # fmt: skip
@click.option("--require-non-inferior", type=click.FloatRange(0, 1), metavar="MARGIN",
              help="Exit with 1 unless B is shown to be worse by less: the lower limit lies above −MARGIN.")  # fmt: skip
@click.option("--rng", type=click.IntRange(min=0), help="Seed of folds and sign flips; without it a fixed one.")
@click.option("--force", is_flag=True, help="Write over a report that is there.")
def compare(
    *,
    a: Path,
    b: Path,
    gold: Path | None,
    gold_a: Path | None,
    gold_b: Path | None,
    gold_scale: str | None,
    rubric: str | None,
    by: tuple[str, ...],
    report: str | None,
    as_json: bool,
    fail_if_worse_by: float | None,
    require_non_inferior: float | None,
    rng: int | None,
    force: bool,
) -> None:
    """Say whether system B is better than system A, from grades of both by one judge: pairs by id, as isograde score wrote them.

    With gold labels on both systems' answers (a few dozen pairs will do) the difference is free of the judge's bias; without, it
    is the judge's, is titled so, and no gate takes it. Differences are in scores: 1 is the whole scale.
    """
    if gold is not None and (gold_a is not None or gold_b is not None):
        raise UserError("--gold holds both sides' labels; give it, or --gold-a and --gold-b")
    read = [path for path in (a, b, gold, gold_a, gold_b) if path is not None]
    target = None if report is None else report_file(report, force=force, apart_from=read)
    on = scale(gold_scale)
    if gold is not None:
        first, second = (GoldFile(path=gold, columns=(column,), scale=on) for column in ("gold_a", "gold_b"))
        made = compare_runs(a, b, gold_a=first, gold_b=second, rubric=rubric, by=by, rng=rng)
    else:
        own = [None if path is None else GoldFile(path=path, scale=on) for path in (gold_a, gold_b)]
        made = compare_runs(a, b, gold_a=own[0], gold_b=own[1], rubric=rubric, by=by, rng=rng)
    if target is not None:
        write_report(target, made)
    if as_json:
        click.echo(made.to_json())
    else:
        console().print(comparison_view(made))
    if target is not None:
        click.echo(f"written: {target}", err=as_json)
    _gate(made, fail_if_worse_by, require_non_inferior)


def _gate(made: ComparisonReport, worse_by: float | None, non_inferior: float | None) -> None:
    """Exit with 1 where a gate fails, and refuse to judge by the judge alone."""
    if worse_by is None and non_inferior is None:
        return
    low, high = made.difference.low, made.difference.high
    if not made.debiased or low is None or high is None:
        name = "--fail-if-worse-by" if worse_by is not None else "--require-non-inferior"
        raise UserError(f"{name}: there are no gold labels on both sides, and the judge alone may favour one system; label both")
    failed = []
    if worse_by is not None and high < -worse_by:
        failed.append(f"B is worse by more than {worse_by:g}: B − A is at most {signed(high)} (--fail-if-worse-by)")
    if non_inferior is not None and not low > -non_inferior:
        failed.append(f"B may be worse by {non_inferior:g} or more: B − A may be {signed(low)} (--require-non-inferior)")
    for said in failed:
        click.echo(f"isograde: {said}", err=True)
    if failed:
        sys.exit(1)
