"""Runs as a terminal shows them. Graded text is shown plain: nothing in it can act on the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from isograde.datasets import Row
from isograde.records import Grade, GradeFailure
from isograde.report.models import CalibrationReport
from isograde.runs.summary import Summary

__all__ = ["bar", "calibration_view", "console", "grade_table", "histogram", "plain", "summary_view"]

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def plain(text: str, width: int | None = None) -> str:
    r"""Make text harmless for a terminal: one line, no control or direction characters.

    Examples
    --------
    >>> plain("a\x1b[31mb\nc")
    'a�[31mb c'
    >>> plain("a long text", 6)
    'a lon…'
    """
    safe = "".join("�" if unicodedata.category(c) in {"Cc", "Cf", "Cs"} else c for c in " ".join(text.split()))
    return safe if width is None or len(safe) <= width else safe[: width - 1] + "…"


def bar(probabilities: Iterable[float]) -> str:
    """Draw a probability per level, lowest level first, in eighths of a character.

    Examples
    --------
    >>> bar([0.0, 0.1, 0.5, 1.0])
    ' ▁▄█'
    """
    return "".join(_EIGHTHS[min(8, round(p * 8)) or (p > 0.01)] for p in probabilities)


def grade_table(graded: Sequence[tuple[Row, Grade | GradeFailure]], labels: Sequence[str]) -> Table:
    """Lay out graded rows: id, output, a bar of level probabilities, label, passed, gold."""
    has_gold = any(row.gold is not None for row, _ in graded)
    ids = [plain(row.item.id or str(row.index), 24) for row, _ in graded]
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    table.add_column("item", no_wrap=True, min_width=max(map(len, ids), default=4))
    table.add_column("answer", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(f"{labels[0]}–{labels[-1]}", no_wrap=True, min_width=len(labels))
    table.add_column("label", no_wrap=True, min_width=7)
    table.add_column("passed", no_wrap=True, min_width=6)
    if has_gold:
        table.add_column("gold", justify="right", no_wrap=True, min_width=4)
    for shown, (row, grade) in zip(ids, graded, strict=True):
        cells = [shown, plain(row.item.output or "", 200)]
        if isinstance(grade, GradeFailure):
            cells += ["", plain(grade.status), "–"]
        else:
            passed = {True: "yes", False: "no", None: "–"}[grade.passed]
            cells += [bar(grade.probabilities.values()), grade.label, passed]
        if has_gold:
            cells.append("" if row.gold is None else f"{row.gold:g}")
        table.add_row(*(Text(cell) for cell in cells))
    return table


def summary_view(summary: Summary) -> RenderableType:
    """Lay out a run's figures."""
    lines = Table(box=None, show_header=False, pad_edge=False)
    lines.add_column(style="bold", no_wrap=True)
    lines.add_column()

    def line(name: str, text: str) -> None:
        lines.add_row(name, Text(text))

    failed = ", ".join(f"{count} {status}" for status, count in summary.failures.items())
    line("rows", f"{summary.n}: {summary.n_graded} graded, {summary.n_failed} failed" + (f" ({failed})" if failed else ""))
    if summary.n_by_rule:
        line("blank", f"{summary.n_by_rule} blank outputs got level 0 by the rubric's rule, unasked")
    if summary.calibrated and summary.raw_mean_score is not None:
        line("raw mean", f"{summary.raw_mean_score:.3f}")
    line(
        "calibrated mean" if summary.calibrated else "mean score",
        _with_bounds(summary.mean_score, summary.mean_score_bounds, summary.n_failed, "{:.3f}"),
    )
    line("pass rate", _with_bounds(summary.pass_rate, summary.pass_rate_bounds, summary.n_failed, "{:.1%}"))
    if summary.failures.get("low_mass", 0) > summary.n / 2:
        line("advice", "the model does not answer with a level at once: try --prefill, --max-tokens, or a more capable model")
    if summary.n_gold:
        rho = "not defined (all alike)" if summary.spearman is None else f"{summary.spearman:.2f}"
        raw = ", calibrated" if summary.calibrated else ", not calibrated"
        line("against gold", f"MAE {summary.mae:.2f} levels, Spearman {rho} (n = {summary.n_gold}{raw})")
    cached = f" ({summary.cached_tokens:,} from the prefix cache)" if summary.cached_tokens else ""
    if summary.input_tokens:
        line("tokens", f"{summary.input_tokens:,} in{cached}, {summary.output_tokens:,} out")
    per_second = f", {summary.n / summary.seconds:.1f} items a second" if summary.seconds > 0 else ""
    line("time", f"{summary.seconds:.1f} s{per_second}")
    return Group(Text(plain(summary.rubric), style="bold underline"), lines, histogram(summary))


def histogram(summary: Summary) -> RenderableType:
    """Draw how many rows have which most probable level."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    most = max(summary.histogram, default=0) or 1
    for label, count in zip(summary.labels, summary.histogram, strict=True):
        table.add_row(Text(plain(label)), Text("█" * round(30 * count / most) or ("▏" if count else "")), Text(str(count)))
    return Group(Text("rows by most probable level", style="bold"), table)


def _with_bounds(value: float | None, bounds: tuple[float, float] | None, n_failed: int, form: str) -> str:
    """Write a mean and, where rows failed, what it would be at worst and at best."""
    if value is None or bounds is None:
        return "none: no row has a score"
    text = form.format(value)
    if n_failed:
        text += f"  (between {form.format(bounds[0])} and {form.format(bounds[1])} whatever the failed rows deserve)"
    return text


def console(*, stderr: bool = False) -> Console:
    """Give a console that takes no markup out of text and no colour where there is no terminal."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=False)


def calibration_view(report: CalibrationReport) -> RenderableType:
    """Lay out a calibration report's sentence and its most important figures."""
    mae, *_ = report.point_figures
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "MAE", "95 % interval"):
        table.add_column(name, no_wrap=True)
    for name, estimate in (
        ("calibrated, out of fold", mae.calibrated),
        ("raw, expected level", mae.expected_level),
        ("raw, most probable level", mae.most_probable),
        ("always the median label", mae.constant),
    ):
        value = "–" if estimate.value is None else f"{estimate.value:.3f}"
        interval = "" if estimate.low is None or estimate.high is None else f"{estimate.low:.3f} – {estimate.high:.3f}"
        table.add_row(Text(name), Text(value), Text(interval))
    source = f", labels: {plain(report.label_source)}" if report.label_source else ""
    counts = f"{report.n_used} labelled rows in {report.n_groups} groups, {report.n_failed} failed{source}"
    return Group(Text(plain(report.trust_answer.sentence), style="bold"), Text(counts), table)
