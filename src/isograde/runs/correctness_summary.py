"""A run of answer correctness in figures, and as a terminal shows them."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from isograde.correctness import Correctness, CorrectnessFailure
from isograde.correctness.asking import PARTS, Ledger
from isograde.datasets import Row
from isograde.records import Grade, Usage
from isograde.runs.show import MOST_SHOWN, plain
from isograde.runs.summary import FailureTally, unanswered

__all__ = ["CorrectnessSummary", "CorrectnessTally", "correctness_view"]

_MEANS = ("value", "f_beta", "precision", "recall", "expected_f_beta", "similarity", "rubric", "calibrated")
_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectnessSummary:
    """Figures of a run.

    Attributes
    ----------
    n, n_scored, n_undefined, n_failed : int
        Rows; those with a value, without one by definition (neither text makes a claim), and failed.
    failures : dict of str to int
        How many failed by which status.
    most_frequent_failure : str or None
        What most of them say; None where none failed.
    rules : dict of str to int
        How many were decided by which rule in place of claims.
    means : dict of str to tuple of float and int
        ``value``, ``f_beta``, ``precision``, ``recall``, ``expected_f_beta``, ``similarity``, ``rubric`` and ``calibrated`` (its
        score): mean and rows that have it; absent where none has.
    value_bounds : tuple of float or None
        What the mean value would be if every failed row had 0, or 1.
    n_passed : int or None
        Rows whose value reaches the threshold; None without one.
    histogram : tuple of int
        Values in ten equal bins over [0, 1].
    spearman : dict of str to tuple of (float or None) and int
        Rank correlation with gold of ``value``, ``f_beta``, ``similarity``, ``rubric`` and ``calibrated``, and rows; empty
        without gold.
    usage_by_part, seconds_by_part
        Sums over the rows.
    seconds : float
        Duration of the run.
    caveat : str or None
        What is known to speak against the verdicts.
    """

    n: int
    n_scored: int
    n_undefined: int
    n_failed: int
    failures: dict[str, int]
    most_frequent_failure: str | None
    rules: dict[str, int]
    means: dict[str, tuple[float, int]]
    value_bounds: tuple[float, float] | None
    n_passed: int | None
    histogram: tuple[int, ...]
    spearman: dict[str, tuple[float | None, int]]
    usage_by_part: dict[str, Usage]
    seconds_by_part: dict[str, float]
    seconds: float
    caveat: str | None

    rubric = "claim_f1"  # as a run by a rubric has its name

    @property
    def unanswered(self) -> bool:
        """Whether no row was scored, and most of them for want of an answer."""
        return unanswered(self.n, self.failures)

    @property
    def mean_score(self) -> float | None:
        """Over the rows that have a value; None where there is none."""
        return self.means["value"][0] if "value" in self.means else None


class CorrectnessTally:
    """Collect a run's figures row by row, in memory that grows with labelled rows only."""

    def __init__(self, *, threshold: float | None = None) -> None:
        self._threshold = threshold
        self._n = self._n_passed = 0
        self._failures = FailureTally()
        self._rules: Counter[str] = Counter()
        self._sums = dict.fromkeys(_MEANS, 0.0)
        self._counts = dict.fromkeys(_MEANS, 0)
        self._bins = [0] * _BINS
        self._gold = {name: (array("d"), array("d")) for name in ("value", "f_beta", "similarity", "rubric", "calibrated")}
        self._ledger = Ledger()
        self._caveat: str | None = None

    def add(self, row: Row, result: Correctness | CorrectnessFailure) -> None:
        """Count one row."""
        self._n += 1
        for part in PARTS:
            self._ledger.add(part, result.usage_by_part.get(part), result.seconds_by_part.get(part))
        if isinstance(result, CorrectnessFailure):
            self._failures.add(result.status, result.message)
            return
        self._caveat = self._caveat or result.caveat
        if result.rule is not None:
            self._rules[result.rule] += 1
        rubric = result.rubric.score if isinstance(result.rubric, Grade) else None
        calibrated = None if result.calibrated is None else result.calibrated.score
        own = {"rubric": rubric, "calibrated": calibrated}
        figures = own | {name: getattr(result, name) for name in _MEANS if name not in own}
        for name, figure in figures.items():
            if figure is not None:
                self._sums[name] += figure
                self._counts[name] += 1
                if row.gold is not None and name in self._gold:
                    self._gold[name][0].append(figure)
                    self._gold[name][1].append(row.gold)
        if result.value is not None:
            self._bins[min(_BINS - 1, int(result.value * _BINS))] += 1
            self._n_passed += self._threshold is not None and result.value >= self._threshold

    def summary(self, seconds: float) -> CorrectnessSummary:
        """Sum up."""
        n_scored, n_failed, total = self._counts["value"], self._failures.n, self._sums["value"]
        both = n_scored + n_failed
        return CorrectnessSummary(
            n=self._n,
            n_scored=n_scored,
            n_undefined=self._n - n_scored - n_failed,
            n_failed=n_failed,
            failures=self._failures.statuses,
            most_frequent_failure=self._failures.most_frequent,
            rules=dict(self._rules.most_common()),
            means={name: (self._sums[name] / count, count) for name, count in self._counts.items() if count},
            value_bounds=(total / both, (total + n_failed) / both) if n_scored else None,
            n_passed=None if self._threshold is None else self._n_passed,
            histogram=tuple(self._bins),
            spearman={name: (_spearman(*pair), len(pair[0])) for name, pair in self._gold.items() if len(pair[0])},
            usage_by_part=self._ledger.usage,
            seconds_by_part=self._ledger.seconds,
            seconds=seconds,
            caveat=self._caveat,
        )


def _spearman(figures: array[float], gold: array[float]) -> float | None:
    from isograde.calibration.metrics import spearman

    return spearman(figures, gold).value


def correctness_view(summary: CorrectnessSummary) -> RenderableType:
    """Lay out a run's figures."""
    lines = Table(box=None, show_header=False, pad_edge=False)
    lines.add_column(style="bold", no_wrap=True)
    lines.add_column()

    def line(name: str, text: str) -> None:
        lines.add_row(name, Text(text))

    failed = ", ".join(f"{count} {status}" for status, count in summary.failures.items())
    undefined = f", {summary.n_undefined} without a value" if summary.n_undefined else ""
    line(
        "rows", f"{summary.n}: {summary.n_scored} scored{undefined}, {summary.n_failed} failed{f' ({failed})' if failed else ''}"
    )
    if summary.most_frequent_failure is not None:
        line("most fail with", plain(summary.most_frequent_failure, MOST_SHOWN))
    if summary.rules:
        line("by rule", ", ".join(f"{count} {rule.replace('_', ' ')}" for rule, count in summary.rules.items()))
    for name in _MEANS:
        mean, count = summary.means.get(name, (None, 0))
        if mean is None:
            continue
        text = f"{mean:.3f}"
        if name == "value" and summary.n_failed and summary.value_bounds:
            low, high = summary.value_bounds
            text += f"  (between {low:.3f} and {high:.3f} whatever the failed rows deserve)"
        elif count != summary.n_scored:
            was = "was" if summary.rules.get("identical") == 1 else "were"
            n_equal = summary.rules.get("identical", 0) if name == "rubric" else 0
            text += f"  ({count} rows{f'; {n_equal} equal to the reference {was} not asked' if n_equal else ''})"
        line("mean value" if name == "value" else _shown(name), text)
    if summary.n_passed is not None and summary.n_scored:
        line("passed", f"{summary.n_passed} of {summary.n_scored} ({summary.n_passed / summary.n_scored:.1%})")
    if summary.spearman:
        rhos = [f"{_shown(name)} {'not defined' if rho is None else f'{rho:.2f}'}" for name, (rho, _) in summary.spearman.items()]
        line("Spearman with gold", f"{', '.join(rhos)} (n = {max(count for _, count in summary.spearman.values())})")
    for part, usage in summary.usage_by_part.items():
        cached = f" ({usage.cached_tokens:,} from the prefix cache)" if usage.cached_tokens else ""
        line(f"tokens, {part}", f"{usage.input_tokens or 0:,} in{cached}, {usage.output_tokens or 0:,} out")
    per_second = f", {summary.n / summary.seconds:.1f} items a second" if summary.seconds > 0 else ""
    line("time", f"{summary.seconds:.1f} s{per_second}")
    if summary.caveat:
        line("caveat", summary.caveat)
    return Group(Text("claim_f1", style="bold underline"), lines, _histogram(summary.histogram))


def _shown(name: str) -> str:
    """Write a figure's name for people."""
    return name.replace("f_beta", "F-beta").replace("_", " ")


def _histogram(counts: tuple[int, ...]) -> RenderableType:
    """Draw how many rows have a value in which tenth."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for justify in ("right", "left", "right"):
        table.add_column(justify=justify, no_wrap=True)
    most = max(counts) or 1
    for place, count in enumerate(counts):
        bar = "█" * round(30 * count / most) or ("▏" if count else "")
        table.add_row(Text(f"{place / _BINS:.1f} –"), Text(bar), Text(str(count)))
    return Group(Text("rows by value", style="bold"), table)
