"""How the calibrated error falls as labels grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration import Calibrator, grouped_folds
from isograde.report.measures import group_interval
from isograde.report.parts import Estimate, Learning, LearningPoint
from isograde.report.text import number, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.intp]

__all__ = ["learning_curve"]

N_FOLDS = 5
MAX_REPEATED = 1_000  # rows up to which the whole is repeated with other folds
REPEATS = 4
MAX_TESTED = 2_000  # rows tested a fold
WORTH = 0.02  # levels; a gain under this pays for no labelling


def learning_curve(
    values: FloatArray,
    gold: FloatArray,
    group: IntArray,
    *,
    calibrator: Calibrator,
    final: FloatArray,
    blind: float,
    rng: np.random.Generator,
) -> Learning | None:
    """Fit to 10, 20, 40, … labels and test on groups held out.

    Parameters
    ----------
    values : ndarray of float, shape (n, n_levels) or (n,)
    gold : ndarray of float, shape (n,)
    group : ndarray of int, shape (n,)
    calibrator : Calibrator
        Whose parameters to use.
    final : ndarray of float, shape (n,)
        Out-of-fold absolute errors with all labels.
    blind : float
        MAE of always answering the median.
    rng : numpy.random.Generator

    Returns
    -------
    Learning or None
        None where there are too few labels for a first point.
    """
    n = len(gold)
    repeats = REPEATS if n <= MAX_REPEATED else 1
    sizes = _sizes(n * (N_FOLDS - 1) // N_FOLDS)
    if not sizes:
        return None
    # For each size the absolute errors of every row, summed over repeats; rows that were not tested stay out.
    errors, tested = np.zeros((len(sizes), n)), np.zeros(n)
    for _ in range(repeats):
        fold = grouped_folds(group, n_splits=N_FOLDS, rng=rng)
        for held_out in range(int(fold.max()) + 1):
            train = _by_group(np.flatnonzero(fold != held_out), group, rng)
            test = np.flatnonzero(fold == held_out)
            if len(test) > MAX_TESTED:
                test = np.sort(rng.choice(test, MAX_TESTED, replace=False))
            tested[test] += 1
            for i, size in enumerate(sizes):
                some = train[:size]
                fitted = calibrator.unfitted().fit(values[some], gold[some], groups=group[some], rng=rng)
                errors[i, test] += np.abs(fitted.predict(values[test]) - gold[test])
    rows = np.flatnonzero(tested)
    errors = errors[:, rows] / tested[rows]
    points = [LearningPoint(n=size, mae=group_interval(errors[i], group[rows])) for i, size in enumerate(sizes)]
    points.append(LearningPoint(n=n, mae=group_interval(final, group)))
    if len(sizes) < 2:
        sentence = f"{plural(n, 'label')} are too few to see whether more would pay; label at least 50."
        return Learning(points=tuple(points), more="cannot be told", sentence=sentence)
    return _verdict(points, group_interval(errors[-2] - errors[-1], group[rows]), blind)


def _sizes(most: int) -> list[int]:
    """10, 20, 40, … up to what a fold's training part holds; in steps of four above 1,280."""
    sizes = []
    size = 10
    while size <= most:
        sizes.append(size)
        size *= 2 if size < 1280 else 4
    return sizes


def _by_group(rows: IntArray, group: IntArray, rng: np.random.Generator) -> IntArray:
    """Rows in an order that is random by group, each group's rows together."""
    place = rng.permutation(int(group.max()) + 1)
    ordered: IntArray = rows[np.argsort(place[group[rows]], kind="stable")]
    return ordered


def _verdict(points: list[LearningPoint], gain: Estimate, blind: float) -> Learning:
    """Say what the last step gained, and what the next may; the last point is all labels out of fold."""
    fewer, more, n = (point.n for point in points[-3:])
    if (points[-1].mae.value or 0.0) > blind - WORTH:
        return Learning(
            points=tuple(points),
            more="cannot be told",
            sentence=f"With {plural(n, 'label')} the calibrated error is not below that of always answering the median; more "
            "labels pay only if the judge has a signal that these do not show.",
        )
    value, sure = gain.value or 0.0, gain.low is not None and gain.low > 0
    step = f"from {fewer:,} to {more:,} labels"
    fell = f"the error {'fell' if value >= 0 else 'rose'} by {number(abs(value))} levels"
    if value >= WORTH and sure:
        return Learning(
            points=tuple(points),
            more="pays",
            sentence=f"More labels would pay: {step} {fell}, and going on to about {_rounded(n * more / fewer)} may take off "
            f"{number(value / 2)} to {number(value)} more.",
        )
    if value >= WORTH or (gain.high is not None and gain.high >= 2 * WORTH):
        return Learning(
            points=tuple(points),
            more="may pay",
            sentence=f"More labels may pay: {step} {fell}, which chance could explain; about {_rounded(2 * n)} would tell.",
        )
    return Learning(
        points=tuple(points),
        more="pays little",
        sentence=f"More labels would pay little: {step} {fell}; under {WORTH} levels are not worth labelling for.",
    )


def _rounded(count: float) -> str:
    """A count as people say it: two digits that count."""
    digits = len(str(round(count))) - 2
    return f"{round(count, -digits):,.0f}" if digits > 0 else f"{count:.0f}"
