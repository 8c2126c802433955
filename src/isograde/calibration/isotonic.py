"""Isotonic regression and isotonic distributional regression on one score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from isograde.calibration._inputs import ScoreScale, as_gold, as_weight, canonical, not_empty, one_dimensional
from isograde.errors import StatisticsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import RNG, FloatArray, Groups, IntArray

__all__ = ["IsotonicCalibrator", "IsotonicDistribution", "fit_idr"]


def isotonic_fit(values: FloatArray, weight: FloatArray, *, increasing: bool) -> FloatArray:
    """Least-squares monotone fit of values in the order given."""
    # SciPy takes longer to import than a small calibrator takes to fit.
    from scipy.optimize import isotonic_regression

    fitted: FloatArray = isotonic_regression(values, weights=weight, increasing=increasing).x
    return fitted


def distinct(sorted_score: FloatArray) -> tuple[FloatArray, IntArray]:
    """Distinct values of a sorted array and, for each row, the index of its value."""
    new = np.empty(len(sorted_score), dtype=bool)
    new[:1] = True
    np.not_equal(sorted_score[1:], sorted_score[:-1], out=new[1:])
    return sorted_score[new], np.cumsum(new) - 1


def weighted_isotonic(
    row: IntArray, n_at: int, values: FloatArray, weight: FloatArray, *, increasing: bool
) -> tuple[IntArray, FloatArray]:
    """Isotonic fit after averaging ties: which of the n_at distinct scores carry weight, and the fit there."""
    mass = np.bincount(row, weight, n_at).astype(np.float64)
    kept = np.flatnonzero(mass > 0)
    mean: FloatArray = np.bincount(row, weight * values, n_at)[kept] / mass[kept]
    return kept, isotonic_fit(mean, mass[kept], increasing=increasing)


def trim(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Leave out the points inside a flat stretch: linear interpolation does not need them."""
    inner = np.zeros(len(x), dtype=bool)
    inner[1:-1] = (y[1:-1] == y[:-2]) & (y[1:-1] == y[2:])
    return x[~inner], y[~inner]


def merge_curves(curves: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Piecewise-linear curves on their common knots: (n_knots,) and (n_knots, n_curves)."""
    knots = np.unique(np.concatenate([x for x, _ in curves]))
    return knots, np.column_stack([np.interp(knots, x, y) for x, y in curves])


def interpolate(score: FloatArray, knots: FloatArray, table: FloatArray) -> FloatArray:
    """Linear between knots and constant outside: (n_items,) → (n_items, n_columns)."""
    if len(knots) == 1:
        return np.repeat(table, len(score), axis=0)
    left = np.clip(np.searchsorted(knots, score, side="right") - 1, 0, len(knots) - 2)
    step = np.clip((score - knots[left]) / (knots[left + 1] - knots[left]), 0, 1)[:, np.newaxis]
    low = table[left]
    moved: FloatArray = low + step * (table[left + 1] - low)
    return moved


@dataclass(frozen=True, slots=True, kw_only=True)
class IsotonicDistribution:
    """A fitted isotonic distributional regression.

    Attributes
    ----------
    support : ndarray of float, shape (n_support,)
        The distinct gold levels, ascending.
    scores : ndarray of float, shape (n_scores,)
        The distinct scores, ascending.
    cdf : ndarray of float, shape (n_scores, n_support)
        P(gold ≤ support) at each score; falls with the score, rises along the support.
    """

    support: FloatArray
    scores: FloatArray
    cdf: FloatArray

    def predict_cdf(self, scores: ArrayLike) -> FloatArray:
        """P(gold ≤ support) for new scores (n_items,): linear between fitted scores, constant outside."""
        return interpolate(np.asarray(scores, dtype=np.float64), self.scores, self.cdf)


def fit_idr(scores: ArrayLike, gold: ArrayLike, *, sample_weight: ArrayLike | None = None) -> IsotonicDistribution:
    """Plain isotonic distributional regression: one isotonic fit of 1{gold ≤ t} a threshold t.

    Parameters
    ----------
    scores : array_like, shape (n_items,)
        Any score that should rise with gold.
    gold : array_like, shape (n_items,)
        Gold values, of any range.
    sample_weight : array_like, shape (n_items,), optional
        A weight of 2 is a row given twice.

    Returns
    -------
    IsotonicDistribution

    Raises
    ------
    CalibrationError
        There is no row, a value is not finite, or the lengths differ.

    References
    ----------
    Henzi, Ziegel & Gneiting (2021), Isotonic distributional regression, JRSS B 83, doi 10.1111/rssb.12450.

    Examples
    --------
    >>> fit = fit_idr([0, 1, 1, 2], [0, 1, 2, 1])
    >>> fit.support, fit.cdf[:, 1].round(3)
    (array([0., 1., 2.]), array([1.   , 0.667, 0.667]))
    """
    x = one_dimensional(scores, "scores")
    y = one_dimensional(gold, "gold", len(x))
    not_empty(x)
    sample = canonical(x, y, as_weight(sample_weight, len(x)), None)
    at, row = distinct(sample.score)
    support = np.unique(sample.gold)
    cdf = np.ones((len(at), len(support)))
    for column, threshold in enumerate(support[:-1]):
        below = (sample.gold <= threshold).astype(np.float64)
        cdf[:, column] = weighted_isotonic(row, len(at), below, sample.weight, increasing=False)[1]
    return IsotonicDistribution(support=support, scores=at, cdf=np.maximum.accumulate(cdf, axis=1))


class IsotonicCalibrator:
    """The textbook calibrator: least-squares isotonic regression of gold on the judge's expected level.

    It predicts a mean and nothing else. :class:`~isograde.calibration.Calibrator` does better with few labels and gives a
    distribution.

    Parameters
    ----------
    n_levels : int, optional
        Number of levels of the rubric. Read from the columns when fitted on probabilities; for plain scores 5 (levels 0–4) unless
        given.

    Attributes
    ----------
    scores_ : ndarray of float, shape (n_knots,)
        Scores at which the fitted line bends.
    means_ : ndarray of float, shape (n_knots,)
        Fitted mean gold level there; never falls.

    References
    ----------
    Barlow, Bartholomew, Bremner & Brunk (1972), Statistical inference under order restrictions.

    Examples
    --------
    >>> x, y = [0, 1, 1, 2, 3], [0, 0, 1, 0, 1]
    >>> IsotonicCalibrator(n_levels=4).fit(x, y).predict(x).round(3)
    array([0.   , 0.333, 0.333, 0.333, 1.   ])
    """

    scores_: FloatArray
    means_: FloatArray

    def __init__(self, *, n_levels: int | None = None) -> None:
        self.n_levels = n_levels
        self._scale: ScoreScale | None = None

    def fit(
        self,
        probabilities: ArrayLike,
        gold: ArrayLike,
        *,
        groups: Groups | None = None,
        sample_weight: ArrayLike | None = None,
        rng: RNG = None,  # noqa: ARG002 - one signature for every calibrator; nothing is random here
    ) -> Self:
        """Fit to gold labels.

        Parameters
        ----------
        probabilities : array_like, shape (n_items, n_levels) or (n_items,)
            The judge's probability of each level, or plain scores.
        gold : array_like, shape (n_items,)
            Gold levels on 0 … n_levels − 1; fractions are allowed.
        groups : sequence, shape (n_items,), optional
            Checked, not used: a mean fitted to all labels does not depend on how they group.
        sample_weight : array_like, shape (n_items,), optional
            A weight of 2 is a row given twice.
        rng : optional
            Not used.

        Returns
        -------
        IsotonicCalibrator
            Itself.

        Raises
        ------
        CalibrationError
            The inputs do not fit together; the message names the row.
        """
        scale, score = ScoreScale.of(probabilities, n_levels=self.n_levels)
        not_empty(score)
        sample = canonical(score, as_gold(gold, len(score), scale.n_levels), as_weight(sample_weight, len(score)), groups)
        at, row = distinct(sample.score)
        mean = weighted_isotonic(row, len(at), sample.gold, sample.weight, increasing=True)[1]
        self.scores_, self.means_ = trim(at, np.clip(mean, 0, scale.n_levels - 1))
        self._scale = scale
        return self

    def predict(self, probabilities: ArrayLike) -> FloatArray:
        """Calibrated mean level.

        Parameters
        ----------
        probabilities : array_like, shape (n_items, n_levels) or (n_items,)
            In the form that was fitted.

        Returns
        -------
        ndarray of float, shape (n_items,)
            Linear between fitted scores, constant outside them.

        Raises
        ------
        CalibrationError
            The form differs from the fitted one, or a value is not finite.
        StatisticsError
            Nothing has been fitted.
        """
        if self._scale is None:
            raise StatisticsError("this IsotonicCalibrator is not fitted; call fit first")
        predicted: FloatArray = np.interp(self._scale.score(probabilities), self.scores_, self.means_)
        return predicted

    predict_mean = predict
