"""From a pilot: what more labels would buy, and which to give next. What ``isograde plan`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration import Calibrator, cross_fit
from isograde.calibration.planning import Allocation, allocate, draw, half_widths
from isograde.calibration.resampling import mean_limit
from isograde.datasets import Row
from isograde.errors import CalibrationError
from isograde.records import Grade, GradeFailure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isograde.report.parts import Learning

    FloatArray = NDArray[np.float64]

__all__ = ["Budget", "Plan", "plan_labels"]

LEAST_PILOT = 10  # labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What so many labels, drawn at random, buy: half the width of the 95 % interval of the set's mean score, in [0, 1].

    Attributes
    ----------
    n : int
        Labels.
    labels_only, with_judge : float or None
        Without and with the judge's grades of all rows; None where there are too few groups.
    """

    n: int
    labels_only: float | None
    with_judge: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to label next, and why.

    Attributes
    ----------
    n_pilot, n_groups : int
        Labelled rows that the judge could grade, and their groups.
    n_rows, n_frame : int
        Rows of the set, and those that can be drawn: graded by the judge and not yet labelled.
    budgets : tuple of Budget
    learning : Learning or None
        How the calibrated error fell as labels grew; None with too few.
    drawn : tuple of (Row, float)
        Next to label, in the order of the input, each with the probability with which it was drawn.
    narrower : float
        Width of the next labels' interval as a share of the one that as many labels drawn at random would give, as expected.
    allocation : Allocation
    """

    n_pilot: int
    n_groups: int
    n_rows: int
    n_frame: int
    budgets: tuple[Budget, ...]
    learning: Learning | None
    drawn: tuple[tuple[Row, float], ...]
    narrower: float
    allocation: Allocation


def plan_labels(graded: Sequence[tuple[Row, Grade | GradeFailure]], n: int, *, rng: int | None = None) -> Plan:
    """Plan the next labels from those that are there.

    Parameters
    ----------
    graded : sequence of (Row, Grade or GradeFailure)
        The whole set; rows with gold are the pilot.
    n : int
        Labels to give next.
    rng : int or None
        Seed of the draw and of folds; None is a fixed one.

    Returns
    -------
    Plan

    Raises
    ------
    CalibrationError
        If the pilot has fewer than ten labels or two groups, or nothing is left to label.
    """
    from isograde.report.learning import learning_curve

    kept = [(row, grade) for row, grade in graded if isinstance(grade, Grade) and grade.method != "blank_output"]
    pilot = [(row, grade) for row, grade in kept if row.gold is not None]
    frame = [(row, grade) for row, grade in kept if row.gold is None]
    if len(pilot) < LEAST_PILOT:
        raise CalibrationError(f"the pilot has {len(pilot)} labelled and graded rows; label at least {LEAST_PILOT} first")
    if not frame:
        raise CalibrationError("every graded row has a label already; there is nothing left to plan")
    values = np.array([grade.distribution.probabilities for _, grade in pilot])
    gold = np.array([row.gold for row, _ in pilot], dtype=np.float64)
    group = _codes([row.item.group for row, _ in pilot])
    generator = np.random.default_rng(0 if rng is None else rng)
    crossed = cross_fit(values, gold, groups=group, rng=generator)
    top = values.shape[1] - 1
    learning = learning_curve(
        values,
        gold,
        group,
        calibrator=Calibrator(),
        final=np.abs(crossed.median - gold),
        blind=float(np.abs(crossed.constant - gold).mean()),
        rng=generator,
    )
    calibrator = Calibrator().fit(values, gold, groups=group, rng=generator)
    distribution = calibrator.predict_distribution(np.array([grade.distribution.probabilities for _, grade in frame]))
    mean = distribution @ calibrator.support_
    spread = np.sqrt(np.maximum(distribution @ calibrator.support_**2 - mean**2, 0))
    allocation = allocate(mean, spread, n)
    chosen = draw(allocation, rng=generator)
    return Plan(
        n_pilot=len(pilot),
        n_groups=int(group.max()) + 1,
        n_rows=len(graded),
        n_frame=len(frame),
        budgets=_budgets(gold, crossed.mean, group, n_rows=len(graded), top=top),
        learning=learning,
        drawn=tuple((frame[i][0], float(allocation.inclusion[i])) for i in chosen),
        narrower=_narrower(allocation, spread),
        allocation=allocation,
    )


def _codes(groups: Sequence[str | None]) -> NDArray[np.intp]:
    """One integer a group; a row without one is its own."""
    names = [f"\0{i}" if group is None else group for i, group in enumerate(groups)]
    return np.unique(np.asarray(names), return_inverse=True)[1]


def _budgets(gold: FloatArray, calibrated: FloatArray, group: NDArray[np.intp], *, n_rows: int, top: int) -> tuple[Budget, ...]:
    """Widths from as many labels as the pilot has, doubled until the set is labelled whole."""
    n, n_groups = len(gold), int(group.max()) + 1
    sizes = [n]
    while sizes[-1] * 2 < n_rows and len(sizes) < 6:
        sizes.append(sizes[-1] * 2)
    # A label's worth of independent information is that of its group, so n labels are n · n_groups ÷ n_pilot independent ones.
    independent = [max(1, round(size * n_groups / n)) for size in sizes]
    widths = [
        half_widths(_spread(values, group) / top, independent, n_items=max(1, round(n_rows * n_groups / n)))
        for values in (gold, gold - calibrated)
    ]
    return tuple(Budget(n=size, labels_only=one, with_judge=two) for size, one, two in zip(sizes, *widths, strict=True))


def _spread(values: FloatArray, group: NDArray[np.intp]) -> float:
    """Standard deviation of an independent label's worth: the mean's standard error by group, times √(groups)."""
    from scipy.special import stdtrit

    limit = mean_limit(values, groups=group, confidence_level=0.9)
    if limit.upper is None or limit.mean is None:
        raise CalibrationError("all labels of the pilot are in one group; how groups differ cannot be told from it")
    return (limit.upper - limit.mean) / float(stdtrit(limit.n_groups - 1, 0.9)) * float(np.sqrt(limit.n_groups))


def _narrower(allocation: Allocation, spread: FloatArray) -> float:
    """Expected width of the stratified estimate over that of one drawn at random, from the spreads that were expected."""
    size, drawn = np.array(allocation.n_items), np.array(allocation.n_drawn)
    within = np.bincount(allocation.stratum, spread**2) / size
    stratified = float((size**2 * (1 - drawn / size) * within / drawn).sum())
    n, total = int(drawn.sum()), int(size.sum())
    random = total**2 * (1 - n / total) * float((spread**2).mean()) / n
    return 1.0 if random <= 0 else float(np.sqrt(stratified / random))
