"""Intervals for rows that they were not fitted on, to measure how often they hold and how wide they are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration._inputs import ScoreScale, as_gold, as_rng, canonical, group_codes, on_grid
from isograde.calibration.calibrator import Calibrator
from isograde.calibration.conformal import Conformal, fit_forecast, scored_fold
from isograde.calibration.resampling import grouped_folds
from isograde.errors import StatisticsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import RNG, BoolArray, FloatArray, Groups

__all__ = ["CrossIntervals", "cross_intervals"]

# Labels up to which so many folds are held out in turn; each pair of folds is a fit.
SPLITS = ((1_000, 10), (5_000, 5))
FEWEST_SPLITS = 3
# Gold on a limit that rounding has moved is inside.
SAME_LEVEL = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossIntervals:
    """Out-of-fold intervals: each row's come from labels of other folds alone.

    Attributes
    ----------
    low, high : ndarray of float, shape (n_items,)
        In level indices.
    covered : ndarray of bool, shape (n_items,)
        Whether gold lies inside.
    confidence_level : float
    n_groups : int
        Groups of labels behind the interval that has the fewest.
    reason : str or None
        Why intervals are the whole scale; None where the labels are enough.
    """

    low: FloatArray
    high: FloatArray
    covered: BoolArray
    confidence_level: float
    n_groups: int
    reason: str | None


def cross_intervals(
    probabilities: ArrayLike,
    gold: ArrayLike,
    *,
    calibrator: Calibrator | None = None,
    groups: Groups | None = None,
    confidence_level: float = 0.9,
    rng: RNG = None,
) -> CrossIntervals:
    """Give every labelled row the interval that labels of the other folds alone make.

    For each fold in turn :meth:`Calibrator.predict_interval` is made anew without it, so coverage here is measured and not true
    by construction. The intervals are a little wider than those of all labels, as each forecast sees two folds fewer.

    Parameters
    ----------
    probabilities : array_like, shape (n_items, n_levels) or (n_items,)
        As in :meth:`Calibrator.fit`.
    gold : array_like, shape (n_items,)
        In level indices.
    calibrator : Calibrator, optional
        Whose parameters to use; it is not changed. The default Calibrator where not given.
    groups : sequence, shape (n_items,), optional
        Items that share a question, held out together. None in it is a group of its own.
    confidence_level : float, default 0.9
    rng : numpy.random.Generator or int, optional
        Draws the folds and the half-samples. None is a fixed stream.

    Returns
    -------
    CrossIntervals

    Raises
    ------
    CalibrationError
        The inputs do not fit together.
    StatisticsError
        There are fewer than three groups: one to measure on, one to score, one to fit.

    Examples
    --------
    >>> gold = np.tile([0, 1, 2, 3, 4], 20)
    >>> cross = cross_intervals(gold / 4, gold, calibrator=Calibrator(score_range=(0, 1)))
    >>> float(cross.covered.mean()), float((cross.high - cross.low).mean())
    (1.0, 0.0)
    """
    template = Calibrator() if calibrator is None else calibrator
    scale, score = ScoreScale.of(probabilities, n_levels=template.n_levels, score_range=template.score_range)
    levels = as_gold(gold, len(score), scale.n_levels)
    placed = on_grid(levels, scale.n_levels)
    key = group_codes(groups, len(score))
    order = np.lexsort((placed, score))
    # Sorted already, so the sample's rows are these.
    sample = canonical(score[order], placed[order], np.ones(len(score)), key[order])
    if sample.n_groups < 3:
        raise StatisticsError(f"intervals cannot be measured on {sample.n_groups} group(s) of labels; three or more are needed")
    support = np.union1d(np.arange(scale.n_levels, dtype=np.float64), placed)
    generator = as_rng(rng)
    n_splits = next((splits for most, splits in SPLITS if len(score) <= most), FEWEST_SPLITS)
    fold = grouped_folds(sample.group, n_splits=n_splits, rng=generator)
    held_out = range(int(fold.max()) + 1)
    forecast = {
        frozenset(pair): fit_forecast(sample, ~np.isin(fold, pair), support, scale, template.n_subsamples, generator)
        for pair in combinations(held_out, 2)
    }
    low, high = np.empty(len(score)), np.empty(len(score))
    n_groups, reason = sample.n_groups, None
    for out in held_out:
        parts = [scored_fold(forecast[frozenset((out, k))], sample, fold == k, support) for k in held_out if k != out]
        rest = len(np.unique(sample.group[fold != out]))
        found = Conformal(support, rest, tuple(parts)).predict(sample.score[fold == out], scale.n_levels, confidence_level, None)
        rows = order[fold == out]
        low[rows], high[rows] = found.low, found.high
        if rest < n_groups:
            n_groups, reason = rest, found.reason
    covered = (low <= levels + SAME_LEVEL) & (levels <= high + SAME_LEVEL)
    return CrossIntervals(
        low=low, high=high, covered=covered, confidence_level=confidence_level, n_groups=n_groups, reason=reason
    )
