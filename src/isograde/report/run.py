"""The report of a run without gold labels."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable
from itertools import count

import numpy as np

from isograde._version import __version__
from isograde.datasets import Row
from isograde.records import Grade, GradeFailure
from isograde.report.columns import Columns
from isograde.report.inputs import Failures, judge_facts
from isograde.report.models import RubricRun, RunReport, RunSlice, Threshold
from isograde.report.parts import Answer, Case
from isograde.report.text import number, percent, plural
from isograde.report.wrong import texts_of

__all__ = ["RunCollector", "run_report"]

N_LOWEST = 50
BINS = 20

Bounds = tuple[float, float]


def run_report(
    graded: Iterable[tuple[Row, Grade | GradeFailure]], *, threshold: float | None = None, title: str = "Run report"
) -> RunReport:
    """Sum up a run, in one pass and about 30 bytes a row.

    Parameters
    ----------
    graded : iterable of (Row, Grade or GradeFailure)
        By one rubric or several.
    threshold : float, optional
        Score in [0, 1] from which a row counts as a pass in a table of its own.
    title : str
        Heading of the report.

    Returns
    -------
    RunReport

    Examples
    --------
    >>> report = run_report([])
    >>> report.rubrics
    ()
    """
    collector = RunCollector(threshold=threshold, title=title)
    for row, grade in graded:
        collector.add(row, grade)
    return collector.report()


class RunCollector:
    """Collects a run row by row; what :func:`run_report` does for those who cannot hand over an iterable.

    Parameters
    ----------
    threshold, title
        As in :func:`run_report`.
    """

    def __init__(self, *, threshold: float | None = None, title: str = "Run report") -> None:
        self._threshold = threshold
        self._title = title
        self._runs: dict[str, _Run] = {}

    def add(self, row: Row, grade: Grade | GradeFailure) -> None:
        """Take the next row."""
        name = grade.rubric or ""
        run = self._runs.get(name)
        if run is None:
            run = self._runs[name] = _Run(name)
        run.add(row, grade)

    def report(self) -> RunReport:
        """Sum up."""
        rubrics = tuple(run.summed_up(self._threshold) for run in self._runs.values())
        return RunReport(title=self._title, library_version=__version__, rubrics=rubrics)


class _Run:
    """One rubric's rows."""

    def __init__(self, rubric: str) -> None:
        self._rubric = rubric
        self._labels: tuple[str, ...] = ()
        self._judge: tuple[tuple[str, str], ...] = ()
        self._levels: list[int] = []
        self._calibrated = False
        self._failures = Failures()
        self._columns = Columns()
        # A row's score and probability to pass; NaN where it failed, −1 where it has no score.
        self._score, self._passed = array("d"), array("d")
        self._lowest: list[tuple[float, int, Row, Grade]] = []
        self._number = count(0, -1)  # of two equal scores the earlier row is kept

    def add(self, row: Row, grade: Grade | GradeFailure) -> None:
        """Take the next row."""
        self._columns.add(row.item.metadata, row.item.group)
        if isinstance(grade, GradeFailure):
            self._failures.add(grade.status, row.item.id or str(row.index), grade.message)
            self._score.append(np.nan)
            self._passed.append(np.nan)
            return
        if not self._labels or (grade.method != "blank_output" and not self._judge):
            self._labels = tuple(grade.probabilities)
            self._levels = self._levels or [0] * len(self._labels)
            self._judge = () if grade.method == "blank_output" else judge_facts(grade)
        self._levels[grade.level] += 1
        better = grade.calibrated
        self._calibrated = better is not None
        score = grade.score if better is None else better.score
        self._score.append(-1.0 if score is None else score)
        self._passed.append(float(bool(grade.passed)) if better is None else better.p_pass)
        if score is not None:
            entry = (-score, next(self._number), row, grade)
            (heapq.heappush if len(self._lowest) < N_LOWEST else heapq.heappushpop)(self._lowest, entry)

    def summed_up(self, threshold: float | None) -> RubricRun:
        """Make the figures."""
        score, passed = np.frombuffer(self._score), np.frombuffer(self._passed)
        scored, failed = score >= 0, np.isnan(score)
        mean, mean_bounds = _mean(score, scored, failed)
        rate, rate_bounds = _mean(passed, scored, failed)
        slices = tuple(
            RunSlice(
                column=column,
                value=value,
                n=len(rows),
                n_failed=int(failed[rows].sum()),
                mean_score=_mean(score[rows], scored[rows], failed[rows])[0],
                pass_rate=_mean(passed[rows], scored[rows], failed[rows])[0],
                pass_rate_bounds=_mean(passed[rows], scored[rows], failed[rows])[1],
            )
            for column, value, rows in self._columns.slices()
        )
        cut = None
        if threshold is not None:
            # 0.75 is 0.75 whatever the sum's last bit
            above = int((score[scored] >= threshold - 1e-9).sum())
            cut = Threshold(at=threshold, n_pass=above, n_fail=int(scored.sum()) - above)
        return RubricRun(
            rubric=self._rubric,
            labels=self._labels,
            judge=self._judge,
            answer=_answer(len(score), int(failed.sum()), rate, rate_bounds, mean, calibrated=self._calibrated),
            n=len(score),
            n_graded=int((~failed).sum()),
            n_failed=int(failed.sum()),
            calibrated=self._calibrated,
            failures=self._failures.found(),
            mean_score=mean,
            mean_score_bounds=mean_bounds,
            pass_rate=rate,
            pass_rate_bounds=rate_bounds,
            threshold=cut,
            levels=tuple(self._levels),
            score_histogram=tuple(np.histogram(score[scored], bins=BINS, range=(0, 1))[0].tolist()),
            slices=slices,
            n_columns_left_out=self._columns.n_left_out,
            lowest=tuple(
                _case(-negative, row, grade) for negative, _, row, grade in sorted(self._lowest, key=lambda e: (-e[0], -e[1]))
            ),
        )


def _mean(values: np.ndarray, scored: np.ndarray, failed: np.ndarray) -> tuple[float | None, Bounds | None]:
    """Mean over scored rows, and what it would be if every failed row were worth 0, and 1."""
    n, n_failed = int(scored.sum()), int(failed.sum())
    if not n:
        return None, None
    total = float(values[scored].sum())
    return total / n, (total / (n + n_failed), (total + n_failed) / (n + n_failed))


def _answer(n: int, n_failed: int, rate: float | None, bounds: Bounds | None, mean: float | None, *, calibrated: bool) -> Answer:
    """The run in a sentence."""
    if rate is None or bounds is None or mean is None:
        why = "every row failed" if n == n_failed else "no row has a score"
        return Answer(sentence=f"There is no pass rate: {why}.")
    passing = "are expected to pass" if calibrated else "pass"  # calibrated, each row counts by its probability
    sentence = f"{percent(rate)} of the {plural(n - n_failed, 'graded row')} {passing}, with a mean score of {number(mean)}"
    if not n_failed:
        return Answer(sentence=f"{sentence}; no row failed.")
    return Answer(
        sentence=f"{sentence}; {plural(n_failed, 'row')} failed, so the pass rate of all {n:,} rows is between "
        f"{percent(bounds[0])} and {percent(bounds[1])}."
    )


def _case(score: float, row: Row, grade: Grade) -> Case:
    """A row to read."""
    item = row.item
    return Case(
        id=item.id or str(row.index),
        group=item.group,
        direction=None,
        gold=None,
        predicted=None if grade.calibrated is None else grade.calibrated.level,
        expected_level=grade.expected_level,
        score=score,
        probabilities=tuple(round(p, 4) for p in grade.probabilities.values()),
        slices=(),
        texts=texts_of(item),
    )
