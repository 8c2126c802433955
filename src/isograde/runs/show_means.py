"""Estimates and comparisons as a terminal shows them."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from isograde.report.comparison import ComparisonReport, gold_change, p_value, signed, signed_interval
from isograde.report.mean import MeanReport
from isograde.report.parts import Answer
from isograde.report.text import number
from isograde.runs.show import plain

__all__ = ["comparison_view", "mean_view"]

MOST_SHOWN = 10


def comparison_view(report: ComparisonReport) -> RenderableType:
    """Lay out a comparison's sentence, its figures, its slices and the items that changed most."""
    figures = [[name, signed_interval(each), p_value(p)] for name, each, p in report.figures()]
    parts = [*_said(report.answer), Text(""), _facts(report.facts()), Text("")]
    parts += [_table(["B − A, in scores", "95 % interval", "p"], figures)]
    if report.slices:
        rows = [
            [
                plain(f"{each.column}: {each.value}", 40),
                f"{each.n_pairs:,}",
                f"{each.n_labelled:,}",
                signed_interval(each.difference),
                f"{p_value(each.p_adjusted)}{' *' if each.shown else ''}",
            ]
            for each in report.slices
        ]
        parts += [Text(""), _table(["slice", "pairs", "labelled", "B − A", "p (Holm)"], rows)]
    if report.changed:
        rows = [
            [
                plain(each.id, 24),
                number(each.score_a, 2),
                number(each.score_b, 2),
                signed(each.score_b - each.score_a),
                gold_change(each),
            ]
            for each in report.changed[:MOST_SHOWN]
        ]
        parts += [Text(""), _table(["changed most", "A", "B", "B − A", "gold, A → B"], rows)]
    return Group(*parts)


def mean_view(report: MeanReport) -> RenderableType:
    """Lay out a run's estimated mean and pass rate."""
    figures = _table(["", "mean score", "pass rate"], [list(each) for each in report.figures()])
    return Group(*_said(report.mean_answer), *_said(report.pass_answer), Text(""), _facts(report.facts()), Text(""), figures)


def _said(answer: Answer) -> list[RenderableType]:
    """A sentence and what stands behind it."""
    return [Text(plain(answer.sentence), style="bold"), *(Text(plain(detail)) for detail in answer.details)]


def _facts(facts: list[tuple[str, str]]) -> Table:
    """Names and values."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in facts:
        table.add_row(Text(name), Text(plain(value)))
    return table


def _table(head: list[str], rows: list[list[str]]) -> Table:
    """A plain table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in head:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
