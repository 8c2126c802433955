"""Runs as a terminal shows them. Graded text is shown plain: nothing in it can act on the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from isograde.datasets import Row
from isograde.records import Grade, GradeFailure
from isograde.report.drift import DriftReport
from isograde.report.models import CalibrationReport
from isograde.report.parts import Learning
from isograde.report.signal_parts import SignalTable
from isograde.report.text import number, percent, plural
from isograde.report.wording import with_interval
from isograde.runs.planning import Plan
from isograde.runs.summary import Summary

__all__ = [
    "MOST_SHOWN",
    "bar",
    "calibration_view",
    "console",
    "drift_view",
    "grade_table",
    "histogram",
    "plain",
    "plan_view",
    "summary_view",
]

MOST_SHOWN = 200
"""Characters of a failure's message that are shown."""

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
    if summary.most_frequent_failure is not None:
        line("most fail with", plain(summary.most_frequent_failure, MOST_SHOWN))
    if summary.n_by_rule:
        line("blank", f"{summary.n_by_rule} blank outputs got level 0 by the rubric's rule, unasked")
    if summary.calibrated and summary.raw_mean_score is not None:
        line("raw mean", f"{summary.raw_mean_score:.3f}")
    line(
        "calibrated mean" if summary.calibrated else "mean score",
        _with_bounds(summary.mean_score, summary.mean_score_bounds, summary.n_failed, "{:.3f}"),
    )
    rate = "calibrated pass rate" if summary.calibrated else "pass rate"
    line(rate, _with_bounds(summary.pass_rate, summary.pass_rate_bounds, summary.n_failed, "{:.1%}"))
    if summary.calibrated:
        none = "none: this calibration carries no intervals (it is of a version before them, or an index of signals)"
        width = summary.interval_width
        line("90 % interval", none if width is None else f"ends {width:.1f} levels apart on average; each line has its own")
    if summary.failures.get("low_mass", 0) > summary.n / 2:
        line("advice", "the model does not answer with a level at once: try --prefill, --max-tokens, or a more capable model")
    if summary.n_gold:
        rho = "not defined (all alike)" if summary.spearman is None else f"{summary.spearman:.2f}"
        raw = ", calibrated" if summary.calibrated else ", not calibrated"
        line("against gold", f"MAE {summary.mae:.2f} levels, Spearman {rho} (n = {summary.n_gold}{raw})")
    if summary.n_kept:
        line("kept", f"{summary.n_kept} rows were in the output already")
    if summary.n_stored:
        line("stored", f"{summary.n_stored} rows were answered from the store, unasked")
    cached = f" ({summary.cached_tokens:,} from the prefix cache)" if summary.cached_tokens else ""
    if summary.input_tokens:
        line("tokens", f"{summary.input_tokens:,} in{cached}, {summary.output_tokens:,} out")
    n_asked = summary.n - summary.n_kept - summary.n_stored
    per_second = f", {n_asked / summary.seconds:.1f} items a second" if summary.seconds > 0 and n_asked else ""
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
    found = [] if report.intervals is None else [report.intervals.answer]
    if report.habits is not None and any(row.shown for row in report.habits.rows):
        found.append(report.habits.answer)
    said = [Text(plain(answer.sentence)) for answer in found]
    signals: list[RenderableType] = []
    if report.signal_table is not None:  # comes first: what is written is the index, and what follows is about the first signal
        signals = [_signals_view(report.signal_table), Text()]
        signals += [Text(f"{plain(row.name)} alone:", style="bold") for row in report.signal_table.rows[:1]]
    return Group(*signals, Text(plain(report.trust_answer.sentence), style="bold"), Text(counts), table, *said)


def _signals_view(signals: SignalTable) -> RenderableType:
    """Lay out what each signal is worth, and what it costs."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("signal", "MAE", "RPS", "Δ RPS (95 %)", "ρ", "tokens", "s"):
        table.add_column(name, no_wrap=True)
    for row in signals.rows:
        change = row.rps_difference
        shown = "" if change is None else f"{number(change.value, 3)} ({number(change.low, 3)} to {number(change.high, 3)})"
        errors = (number(row.mae.value, 3), number(row.rps.value, 3), shown, number(row.spearman.value))
        costs = (number(row.tokens, 0), number(row.seconds, 3))
        table.add_row(Text(plain(row.name)), *(Text(cell) for cell in (*errors, *costs)))
    left_out = f"; {plural(signals.n_left_out, 'row')} left out for want of a signal" if signals.n_left_out else ""
    counts = f"signals on {signals.n} rows in {signals.n_groups} groups, out of fold; tokens and seconds are a row's{left_out}"
    return Group(Text(plain(signals.answer.sentence), style="bold"), Text(counts), table)


def drift_view(report: DriftReport) -> RenderableType:
    """Lay out a drift check's sentences and its looks."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("of", "look", "change", "adjusted p", ""):
        table.add_column(name, no_wrap=True)
    for look in report.looks:
        value = percent(look.estimate.value) if look.unit == "share" else with_interval(look.estimate)
        table.add_row(
            *(Text(cell) for cell in (look.about, look.name, value, f"{look.p_adjusted:.3f}", "moved" if look.moved else ""))
        )
    said = [Text(plain(answer.sentence), style="bold") for answer in (report.judge_answer, report.data_answer)]
    details = [Text(plain(detail)) for answer in (report.judge_answer, report.data_answer) for detail in answer.details]
    rate = (
        f"At most {percent(report.alpha)} of such checks alarm falsely; the smallest change that counts is {report.tolerance:g}."
    )
    return Group(*said, *details, table, Text(rate))


def plan_view(plan: Plan) -> RenderableType:
    """Lay out what more labels would buy."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("labels in all", "mean score of these rows ±, labels alone", "with the judge"):
        table.add_column(name, justify="right", no_wrap=True)
    for budget in plan.budgets:
        widths = ("–" if width is None else f"{width:.3f}" for width in (budget.labels_only, budget.with_judge))
        table.add_row(f"{budget.n:,}", *widths)
    size, drawn = plan.allocation.n_items, plan.allocation.n_drawn
    strata = ", ".join(f"{n} of {of:,}" for n, of in zip(drawn, size, strict=True))
    pilot = f"{plan.n_pilot} labels in {plan.n_groups} groups, of {plan.n_rows:,} rows; {plan.n_frame:,} can be drawn."
    chosen = f"Next: {len(plan.drawn)} rows, by calibrated level from low to high: {strata}."
    saved = f"Their interval should be {percent(1 - plan.narrower)} narrower than that of as many drawn evenly."
    learning = [] if plan.learning is None else [Text(plan.learning.sentence)]
    points = [] if plan.learning is None else [_learned(plan.learning)]
    return Group(Text(pilot, style="bold"), table, *points, *learning, Text(chosen), Text(saved))


def _learned(learning: Learning) -> RenderableType:
    """Lay out how the calibrated error fell."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("labels", "calibrated MAE, out of fold"):
        table.add_column(name, justify="right", no_wrap=True)
    for point in learning.points:
        table.add_row(f"{point.n:,}", with_interval(point.mae))
    return table
