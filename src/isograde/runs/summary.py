"""A run in figures: means with what the failures allow, a histogram, the distance to gold."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from isograde.datasets import Row
from isograde.records import Grade, GradeFailure
from isograde.rubric import Rubric

__all__ = ["FailureTally", "Summary", "Tally", "unanswered"]

_MOST_MESSAGES = 1000  # different ones that are counted; beyond them none can be frequent any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Figures of one rubric over a run.

    Attributes
    ----------
    rubric : str
        Its name.
    labels : tuple of str
        Its levels' labels.
    n, n_graded, n_failed : int
        Rows, rows with a grade, rows without.
    failures : dict of str to int
        How many rows failed by which status.
    most_frequent_failure : str or None
        What most of them say; None where none failed.
    n_kept : int
        Rows that were in the output already, and were kept.
    n_stored : int
        Other rows that were answered from the store, unasked.
    n_by_rule : int
        Graded rows whose output is blank and got level 0 by the rubric's rule, unasked.
    calibrated : bool
        Whether the run's grades are calibrated: then the means are those of ``calibrated.score`` and ``p_pass``, and the distance
        to gold is that of ``calibrated.level``.
    interval_width : float or None
        Mean width of the calibrated 90 % intervals, in levels; None where there are none.
    mean_score, pass_rate : float or None
        Over the graded rows that have a score; None where there is none.
    raw_mean_score : float or None
        The mean before calibration; the same where nothing is calibrated.
    mean_score_bounds, pass_rate_bounds : tuple of float or None
        What they would be if every failure had scored 0 (failed) or 1 (passed).
    histogram : tuple of int
        Rows by most probable level.
    n_gold : int
        Graded rows with a gold label.
    mae : float or None
        Mean |expected level − gold|, in levels; against labels that the calibrator was fitted to it says nothing.
    spearman : float or None
        Rank correlation of expected level and gold; None where it is not defined.
    input_tokens, output_tokens, cached_tokens : int
        As the server counted them, for what was asked in this run.
    seconds : float
        Duration of the run.
    """

    rubric: str
    labels: tuple[str, ...]
    n: int
    n_graded: int
    n_failed: int
    failures: dict[str, int]
    most_frequent_failure: str | None
    n_kept: int
    n_stored: int
    n_by_rule: int
    calibrated: bool
    interval_width: float | None
    mean_score: float | None
    raw_mean_score: float | None
    mean_score_bounds: tuple[float, float] | None
    pass_rate: float | None
    pass_rate_bounds: tuple[float, float] | None
    histogram: tuple[int, ...]
    n_gold: int
    mae: float | None
    spearman: float | None
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    seconds: float

    @property
    def unanswered(self) -> bool:
        """Whether no row was graded, and most of them for want of an answer."""
        return unanswered(self.n, self.failures)


def unanswered(n: int, failures: Mapping[str, int]) -> bool:
    """Tell whether all rows failed, and most of them since the server did.

    Examples
    --------
    >>> unanswered(3, {"server_error": 2, "invalid_item": 1}), unanswered(3, {"server_error": 2}), unanswered(0, {})
    (True, False, False)
    """
    lost = failures.get("server_error", 0) + failures.get("timeout", 0)
    return sum(failures.values()) == n and 2 * lost > n


class FailureTally:
    """Count failures by status and by what they say."""

    def __init__(self) -> None:
        self._statuses: Counter[str] = Counter()
        self._messages: Counter[str] = Counter()

    def add(self, status: str, message: str) -> None:
        """Count one failure."""
        self._statuses[status] += 1
        if message in self._messages or len(self._messages) < _MOST_MESSAGES:
            self._messages[message] += 1

    @property
    def n(self) -> int:
        """How many there are."""
        return self._statuses.total()

    @property
    def statuses(self) -> dict[str, int]:
        """How many of which status, the most frequent first."""
        return dict(self._statuses.most_common())

    @property
    def most_frequent(self) -> str | None:
        """What most of them say; None where there is none."""
        return next((message for message, _ in self._messages.most_common(1)), None)


class Tally:
    """Collect the figures of one rubric row by row, in memory that grows by two numbers a row with gold."""

    def __init__(self, rubric: Rubric) -> None:
        self._rubric = rubric
        self._n = self._n_scored = 0
        self._n_by_rule = self._n_kept = self._n_stored = 0
        self._sum = self._raw = self._passed = 0.0
        self._calibrated = False
        self._width, self._n_intervals = 0.0, 0
        self._failures = FailureTally()
        self._levels = [0] * len(rubric.labels)
        self._expected, self._gold = array("d"), array("d")
        self._tokens = [0, 0, 0]

    def add(self, row: Row, grade: Grade | GradeFailure, *, kept: bool = False) -> None:
        """Count one row; ``kept`` where it was in the output already."""
        self._n += 1
        self._n_kept += kept
        if isinstance(grade, GradeFailure):
            self._failures.add(grade.status, grade.message)
            return
        self._levels[grade.level] += 1
        self._n_stored += grade.stored and not kept
        self._n_by_rule += grade.method == "blank_output"
        if grade.score is not None:
            self._n_scored += 1
            better = grade.calibrated
            self._calibrated = better is not None
            if better is not None and better.interval is not None:
                self._width += better.interval.high - better.interval.low
                self._n_intervals += 1
            self._raw += grade.score
            self._sum += grade.score if better is None else better.score
            self._passed += bool(grade.passed) if better is None else better.p_pass
        if row.gold is not None and self._rubric.scale == "ordered":
            self._expected.append(grade.expected_level if grade.calibrated is None else grade.calibrated.level)
            self._gold.append(row.gold)
        if grade.usage is not None and not grade.stored:
            used = grade.usage
            for i, count in enumerate((used.input_tokens, used.output_tokens, used.cached_tokens)):
                self._tokens[i] += count or 0

    def summary(self, seconds: float) -> Summary:
        """Sum up.

        Parameters
        ----------
        seconds : float
            Duration of the run.

        Returns
        -------
        Summary
        """
        n_failed = self._failures.n
        mae, spearman = _distance(self._expected, self._gold)
        scored = self._n_scored > 0
        total = self._n_scored + n_failed
        return Summary(
            rubric=self._rubric.name,
            labels=self._rubric.labels,
            n=self._n,
            n_graded=self._n - n_failed,
            n_failed=n_failed,
            failures=self._failures.statuses,
            most_frequent_failure=self._failures.most_frequent,
            n_kept=self._n_kept,
            n_stored=self._n_stored,
            n_by_rule=self._n_by_rule,
            calibrated=self._calibrated,
            interval_width=self._width / self._n_intervals if self._n_intervals else None,
            raw_mean_score=self._raw / self._n_scored if scored else None,
            mean_score=self._sum / self._n_scored if scored else None,
            mean_score_bounds=(self._sum / total, (self._sum + n_failed) / total) if scored else None,
            pass_rate=self._passed / self._n_scored if scored else None,
            pass_rate_bounds=(self._passed / total, (self._passed + n_failed) / total) if scored else None,
            histogram=tuple(self._levels),
            n_gold=len(self._gold),
            mae=mae,
            spearman=spearman,
            input_tokens=self._tokens[0],
            output_tokens=self._tokens[1],
            cached_tokens=self._tokens[2],
            seconds=seconds,
        )


def _distance(predicted: array[float], gold: array[float]) -> tuple[float | None, float | None]:
    """MAE and Spearman's ρ of two columns; None where they are not defined."""
    if not gold:
        return None, None
    from isograde.calibration.metrics import mae, spearman

    return mae(predicted, gold).value, spearman(predicted, gold).value
