"""How often the intervals of single grades hold the human level, and how wide they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration import Calibrator, cross_intervals
from isograde.report.measures import group_interval, undefined
from isograde.report.parts import Answer, Estimate, Intervals, IntervalSlice, Slice
from isograde.report.text import number, percent, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.intp]

__all__ = ["interval_table"]

CONFIDENCE_LEVEL = 0.9
ENOUGH_GROUPS = 20  # of labels, from which intervals at 90 % are worth measuring
FEW = 10  # rows of a slice below which nothing is said of it


def interval_table(
    values: FloatArray,
    gold: FloatArray,
    group: IntArray,
    *,
    calibrator: Calibrator,
    slices: Sequence[Slice],
    member: Sequence[Sequence[tuple[str, str]]],
    no_rows: str,
    rng: np.random.Generator,
) -> Intervals:
    """Measure the intervals out of fold, overall and by slice.

    Parameters
    ----------
    values : ndarray of float, shape (n_items, n_levels) or (n_items,)
        The judge's probabilities, or plain scores.
    gold : ndarray of float, shape (n_items,)
    group : ndarray of int, shape (n_items,)
    calibrator : Calibrator
        Whose parameters to use.
    slices, member
        The report's slices, and those that each row is in.
    no_rows : str
        Why there are no rows; empty where there are.
    rng : numpy.random.Generator

    Returns
    -------
    Intervals
    """
    n_groups = len(np.unique(group))
    if n_groups < 3:
        reason = no_rows or f"labels of {plural(n_groups, 'group')} cannot be split to fit, to score and to measure"
        nothing = undefined(reason, len(gold))
        return Intervals(
            answer=Answer(sentence=f"Not known: {reason}."),
            confidence_level=CONFIDENCE_LEVEL,
            coverage=nothing,
            width=nothing,
            single=None,
            whole=None,
            slices=(),
        )
    found = cross_intervals(values, gold, calibrator=calibrator, groups=group, confidence_level=CONFIDENCE_LEVEL, rng=rng)
    covered, width = found.covered.astype(np.float64), found.high - found.low
    rows_of: dict[tuple[str, str], list[int]] = {}
    for row, own in enumerate(member):
        for each in own:
            rows_of.setdefault(each, []).append(row)
    table = []
    for part in slices:
        rows = np.array(rows_of.get((part.column, part.value), ()), dtype=np.intp)
        table.append(
            IntervalSlice(
                column=part.column,
                value=part.value,
                n=part.n,
                n_groups=part.n_groups,
                coverage=_share(covered[rows], group[rows]),
                width=group_interval(width[rows], group[rows]),
            )
        )
    top = (values.shape[1] if values.ndim == 2 else calibrator.n_levels or 1) - 1
    measured = Intervals(
        answer=Answer(sentence=""),
        confidence_level=CONFIDENCE_LEVEL,
        coverage=_share(covered, group),
        width=group_interval(width, group),
        single=float((width == 0).mean()),
        whole=float((width >= top).mean()),
        slices=tuple(table),
    )
    return measured.model_copy(update={"answer": _answer(measured, n_groups, top, found.reason)})


def _share(covered: FloatArray, group: IntArray) -> Estimate:
    """A share with its interval: Student's t on group totals, or Clopper–Pearson on groups where all rows are alike."""
    estimate = group_interval(covered, group)
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return estimate
    reach = 0.025 ** (1 / len(np.unique(group)))
    if estimate.value in {0.0, 1.0}:
        low, high = (reach, 1.0) if estimate.value else (0.0, 1 - reach)
    else:
        low, high = max(0.0, estimate.low), min(1.0, estimate.high)
    return estimate.model_copy(update={"low": low, "high": high})


def _answer(found: Intervals, n_groups: int, top: int, reason: str | None) -> Answer:
    """The intervals in words."""
    level = percent(found.confidence_level)
    if reason is not None:
        return Answer(
            sentence=f"Not known yet: labels of {plural(n_groups, 'group')} are too few both to give intervals at {level} and to "
            f"measure them; label items of {ENOUGH_GROUPS} groups or more.",
            details=(
                f"{reason[0].upper()}{reason[1:]} (measured with a part of the labels held out).",
                "If only items of these very groups are to be graded, fit without groups.",
            ),
        )
    coverage = found.coverage
    share = percent(coverage.value)
    if coverage.low is not None and coverage.high is not None:
        share += f" ({percent(coverage.low)} to {percent(coverage.high)})"
    sentence = (
        "A calibrated grade comes with an interval that is to hold the human level for nine items in ten. On labels that it had "
        f"not seen it did for {share}, with its ends {number(found.width.value)} levels apart on average, on levels 0 to {top}."
    )
    coarse = f"Where levels are coarse, no interval fits {level} exactly; then it holds more."
    details = [f"{percent(found.single)} of the items get a single level, {percent(found.whole)} the whole scale. {coarse}"]
    short = [s for s in found.slices if s.n >= FEW and s.coverage.high is not None and s.coverage.high < found.confidence_level]
    if short:
        worst = min(short, key=lambda each: each.coverage.value or 0)
        details.append(
            f"It is meant for all items together, not for every slice: on {worst.column} = {worst.value} it holds for "
            f"{percent(worst.coverage.value)} ({plural(worst.n, 'row')}). The worst of many slices looks bad by chance too."
        )
    return Answer(sentence=sentence, details=tuple(details))
