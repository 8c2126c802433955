"""Predictions for rows that the calibrator was not fitted on, and whether they show a gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration._inputs import ScoreScale, as_gold, as_rng, as_weight, group_codes
from isograde.calibration.calibrator import Calibrator, level_probabilities, lower_median
from isograde.calibration.resampling import MeanLimit, grouped_folds, mean_limit
from isograde.calibration.scoring import crps_values

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import RNG, FloatArray, Groups, IntArray

# Losses that differ by less than this, in levels, differ by rounding alone.
ROUNDING = 1e-9

__all__ = ["CrossFit", "Gain", "Signal", "cross_fit", "signal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossFit:
    """Out-of-fold predictions: each row's come from a calibrator that never saw its group.

    Attributes
    ----------
    gold : ndarray of float, shape (n_items,)
    fold : ndarray of int, shape (n_items,)
        The fold that held the row out.
    support : ndarray of float, shape (n_support,)
        Common to all folds, ascending.
    distribution, climatology : ndarray of float, shape (n_items, n_support)
        The calibrated distribution, and the training labels' own.
    proba : ndarray of float, shape (n_items, n_levels)
        The calibrated distribution by level.
    median, mean : ndarray of float, shape (n_items,)
        Of the calibrated distribution.
    constant : ndarray of float, shape (n_items,)
        The training labels' lower median.
    raw : ndarray of float, shape (n_items,), or None
        The judge's own level; None for plain scores without a range.
    """

    gold: FloatArray
    fold: IntArray
    support: FloatArray
    distribution: FloatArray
    climatology: FloatArray
    proba: FloatArray
    median: FloatArray
    mean: FloatArray
    constant: FloatArray
    raw: FloatArray | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What calibrated out-of-fold predictions gain on ignoring the judge; below 0 is a gain.

    Attributes
    ----------
    out_of_fold : MeanLimit
        Of the loss minus that of the training labels' own median or distribution, both out of fold.
    hindsight : MeanLimit
        Of the loss minus that of the best constant or distribution for these very labels.
    claimed : bool
        Both upper limits are below 0.
    """

    out_of_fold: MeanLimit
    hindsight: MeanLimit
    claimed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Whether the judge tells anything about gold.

    Attributes
    ----------
    mae : Gain
        Of the calibrated median's absolute error on the constant's, in levels.
    rps : Gain
        Of the calibrated distribution's CRPS on climatology's, in levels; the RPS where gold is whole.
    has_signal : bool
        Either gain is claimed.
    """

    mae: Gain
    rps: Gain
    has_signal: bool


def cross_fit(
    probabilities: ArrayLike,
    gold: ArrayLike,
    *,
    calibrator: Calibrator | None = None,
    groups: Groups | None = None,
    sample_weight: ArrayLike | None = None,
    n_splits: int = 10,
    rng: RNG = None,
) -> CrossFit:
    """Predict every row by a calibrator fitted on the other groups.

    Parameters
    ----------
    probabilities : array_like, shape (n_items, n_levels) or (n_items,)
        As in :meth:`Calibrator.fit`.
    gold : array_like, shape (n_items,)
        In level indices.
    calibrator : Calibrator, optional
        Whose parameters to use; it is not changed. The default Calibrator where not given.
    groups, sample_weight
        As in :meth:`Calibrator.fit`.
    n_splits : int, default 10
        Folds; as many as there are groups where those are fewer.
    rng : numpy.random.Generator or int, optional
        Draws the folds and the half-samples. None is a fixed stream.

    Returns
    -------
    CrossFit

    Raises
    ------
    CalibrationError
        The inputs do not fit together, or a fold leaves only labels of weight zero.
    StatisticsError
        There are fewer than two groups.

    Examples
    --------
    >>> gold = np.tile([0, 1, 2, 3, 4], 10)
    >>> cross = cross_fit(gold / 4, gold, calibrator=Calibrator(score_range=(0, 1)), rng=0)
    >>> float(np.abs(cross.median - gold).mean()), float(np.abs(cross.constant - gold).mean())
    (0.0, 1.2)
    """
    template = Calibrator() if calibrator is None else calibrator
    scale, score = ScoreScale.of(probabilities, n_levels=template.n_levels, score_range=template.score_range)
    n = len(score)
    levels = as_gold(gold, n, scale.n_levels)
    weight = as_weight(sample_weight, n)
    generator = as_rng(rng)
    keys = np.arange(n) if groups is None else group_codes(groups, n)
    fold = grouped_folds(keys, n_splits=n_splits, rng=generator)
    values = np.asarray(probabilities, dtype=np.float64)
    median, mean, constant = np.empty(n), np.empty(n), np.empty(n)
    proba = np.empty((n, scale.n_levels))
    tables: list[tuple[IntArray, FloatArray, FloatArray, FloatArray]] = []
    for held_out in range(int(fold.max()) + 1):
        rows, others = np.flatnonzero(fold == held_out), np.flatnonzero(fold != held_out)
        own_groups = None if groups is None else keys[others]
        fitted = template.unfitted().fit(
            values[others], levels[others], groups=own_groups, sample_weight=weight[others], rng=generator
        )
        distribution = fitted.predict_distribution(values[rows])
        median[rows], mean[rows], proba[rows] = (
            fitted.predict(values[rows]),
            fitted.predict_mean(values[rows]),
            level_probabilities(distribution, fitted.support_, scale.n_levels),
        )
        constant[rows] = lower_median(np.cumsum(fitted.climatology_)[np.newaxis], fitted.support_)
        tables.append((rows, fitted.support_, distribution, fitted.climatology_))
    support = np.unique(np.concatenate([own for _, own, _, _ in tables]))
    distribution, climatology = np.zeros((n, len(support))), np.zeros((n, len(support)))
    for rows, own, table, labels in tables:
        cells = np.ix_(rows, np.searchsorted(support, own))
        distribution[cells], climatology[cells] = table, labels
    return CrossFit(
        gold=levels,
        fold=fold,
        support=support,
        distribution=distribution,
        climatology=climatology,
        proba=proba,
        median=median,
        mean=mean,
        constant=constant,
        raw=scale.level(score),
    )


def signal(cross: CrossFit, *, groups: Groups | None = None, confidence_level: float = 0.95) -> Signal:
    """Test whether the judge tells anything about gold, with groups as the units that vary.

    A gain is claimed where the upper limit of its mean is below 0 twice over: beside the training labels' median (or
    distribution), and beside the best one for these very labels. The second is there because labels held out pull the training
    median away from themselves: with 20 random labels and a judge that always says 2, the first alone claims a gain one time in
    five.

    Parameters
    ----------
    cross : CrossFit
        Out-of-fold predictions.
    groups : sequence, shape (n_items,), optional
        The groups that it was split by; each row by itself where not given.
    confidence_level : float, default 0.95
        Of the one-sided upper limits.

    Returns
    -------
    Signal

    Raises
    ------
    CalibrationError
        The lengths differ.

    Examples
    --------
    >>> gold = np.tile([0, 1, 2, 3, 4], 10)
    >>> informed = cross_fit(gold / 4, gold, calibrator=Calibrator(score_range=(0, 1)), rng=0)
    >>> signal(informed).has_signal
    True
    """
    gold, support = cross.gold, cross.support
    # Gold lies on the support but where it takes very many values; then on the point at or above it.
    masses = np.bincount(np.searchsorted(support, np.minimum(gold, support[-1])), minlength=len(support)) / max(len(gold), 1)
    best = lower_median(np.cumsum(masses)[np.newaxis], support)
    error = np.abs(cross.median - gold)
    score = crps_values(cross.distribution, support, gold)
    mae, rps = (
        _gain(loss, blind, hindsight, groups, confidence_level)
        for loss, blind, hindsight in (
            (error, np.abs(cross.constant - gold), np.abs(best - gold)),
            (score, crps_values(cross.climatology, support, gold), crps_values(np.tile(masses, (len(gold), 1)), support, gold)),
        )
    )
    return Signal(mae=mae, rps=rps, has_signal=mae.claimed or rps.claimed)


def _gain(loss: FloatArray, blind: FloatArray, hindsight: FloatArray, groups: Groups | None, confidence_level: float) -> Gain:
    """Limits of a loss beside two that ignore the judge."""
    limits = [mean_limit(loss - other, groups=groups, confidence_level=confidence_level) for other in (blind, hindsight)]
    claimed = all(limit.upper is not None and limit.upper < -ROUNDING for limit in limits)
    return Gain(out_of_fold=limits[0], hindsight=limits[1], claimed=claimed)
