"""How good predicted distributions are: RPS, CRPS, Brier, and their CORP decomposition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration._inputs import as_gold, distributions, one_dimensional
from isograde.calibration.isotonic import distinct, weighted_isotonic
from isograde.calibration.metrics import Figure, mean_figure
from isograde.errors import CalibrationError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import FloatArray, IntArray

__all__ = [
    "Decomposition",
    "ReliabilityCurve",
    "ThresholdFigures",
    "corp",
    "crps",
    "crps_values",
    "reliability_curve",
    "rps",
    "rps_values",
    "threshold_figures",
]

# Bins of equal width for the expected calibration error, as in Guo et al. 2017.
ECE_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposition:
    """A mean score and its parts: score = miscalibration − discrimination + uncertainty; all None where there are no rows.

    Attributes
    ----------
    score : float or None
        Mean CRPS (or Brier score of one threshold).
    miscalibration : float or None
        What isotonic recalibration would take away; 0 is reliable.
    discrimination : float or None
        What the recalibrated forecast gains on climatology; 0 knows nothing.
    uncertainty : float or None
        Score of climatology, of these labels.
    n : int
    reason : str or None
        Why they are None.
    """

    score: float | None
    miscalibration: float | None
    discrimination: float | None
    uncertainty: float | None
    n: int
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityCurve:
    """A CORP reliability diagram: forecast probability against its isotonic recalibration.

    Attributes
    ----------
    forecast : ndarray of float, shape (n_forecasts,)
        Distinct forecast probabilities, ascending.
    recalibrated : ndarray of float, shape (n_forecasts,)
        Isotonic estimate of how often the event happens there.
    count : ndarray of int, shape (n_forecasts,)
        Rows with that forecast.
    """

    forecast: FloatArray
    recalibrated: FloatArray
    count: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdFigures:
    """How well P(gold ≥ level) is forecast.

    Attributes
    ----------
    level : int
        The threshold: the event is gold at this level or above.
    event_rate : Figure
        Mean of the event.
    brier : Decomposition
    ece : Figure
        Expected calibration error, ten bins of equal width.
    """

    level: int
    event_rate: Figure
    brier: Decomposition
    ece: Figure


def rps_values(probabilities: ArrayLike, gold: ArrayLike) -> FloatArray:
    """Ranked probability score of each row, in levels.

    Σ over thresholds k of (P(gold ≤ k) − 1{gold ≤ k})², not divided by their number.

    Parameters
    ----------
    probabilities : array_like, shape (n_items, n_levels)
    gold : array_like, shape (n_items,)
        In level indices; a fraction is split linearly between its two levels.

    Returns
    -------
    ndarray of float, shape (n_items,)

    Raises
    ------
    CalibrationError
        The shapes differ, or a row is no distribution or off the scale; the message names the row.

    References
    ----------
    Epstein (1969), J. Applied Meteorology 8; Murphy (1971), J. Applied Meteorology 10.

    Examples
    --------
    >>> rps_values([[0.5, 0.5, 0.0]], [2])  # (0.5 − 0)² + (1 − 0)²
    array([1.25])
    """
    forecast = distributions(probabilities)
    levels = forecast.shape[1]
    observed = _exceedances(as_gold(gold, len(forecast), levels), levels)
    squared: FloatArray = ((_tails_of(forecast) - observed) ** 2).sum(axis=1)
    return squared


def rps(probabilities: ArrayLike, gold: ArrayLike) -> Figure:
    """Mean of :func:`rps_values`.

    Examples
    --------
    >>> rps([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], [2, 2]).value
    0.625
    """
    return mean_figure(rps_values(probabilities, gold))


def crps_values(distribution: ArrayLike, support: ArrayLike, gold: ArrayLike) -> FloatArray:
    """Continuous ranked probability score of each row: ∫ (F(t) − 1{gold ≤ t})² dt, in the units of the support.

    Parameters
    ----------
    distribution : array_like, shape (n_items, n_support)
        Probability of each support point.
    support : array_like, shape (n_support,)
        Ascending.
    gold : array_like, shape (n_items,)
        Anywhere on the line.

    Returns
    -------
    ndarray of float, shape (n_items,)

    Raises
    ------
    CalibrationError
        The shapes differ or a row is no distribution.

    References
    ----------
    Gneiting & Raftery (2007), JASA 102, doi 10.1198/016214506000001437.

    Examples
    --------
    >>> crps_values([[0.5, 0.5]], [0.0, 2.0], [0.0])  # (0.5 − 1)² × 2
    array([0.5])
    """
    forecast = distributions(distribution)
    points = one_dimensional(support, "support", forecast.shape[1])
    if (np.diff(points) <= 0).any():
        raise CalibrationError("support must ascend")
    y = one_dimensional(gold, "gold", len(forecast))[:, np.newaxis]
    cdf = np.cumsum(forecast, axis=1)[:, :-1]
    # Between two support points F is constant; gold splits the stretch into the part below it and the part above.
    below = np.clip(y, points[:-1], points[1:]) - points[:-1]
    inside = (cdf**2 * below + (1 - cdf) ** 2 * (np.diff(points) - below)).sum(axis=1)
    outside = np.maximum(points[0] - y, 0) + np.maximum(y - points[-1], 0)
    total: FloatArray = inside + outside[:, 0]
    return total


def crps(distribution: ArrayLike, support: ArrayLike, gold: ArrayLike) -> Figure:
    """Mean of :func:`crps_values`.

    Examples
    --------
    >>> crps([[0.5, 0.5], [1.0, 0.0]], [0.0, 2.0], [0.0, 0.0]).value
    0.25
    """
    return mean_figure(crps_values(distribution, support, gold))


def reliability_curve(forecast: ArrayLike, event: ArrayLike) -> ReliabilityCurve:
    """CORP reliability curve of a forecast probability.

    Parameters
    ----------
    forecast : array_like, shape (n_items,)
        Forecast probability of the event.
    event : array_like, shape (n_items,)
        1 where it happened, 0 where not; fractions are allowed.

    Returns
    -------
    ReliabilityCurve

    Raises
    ------
    CalibrationError
        The lengths differ or a value is not finite.

    References
    ----------
    Dimitriadis, Gneiting & Jordan (2021), PNAS 118, doi 10.1073/pnas.2016191118.

    Examples
    --------
    >>> reliability_curve([0.1, 0.4, 0.4, 0.9], [0, 1, 0, 1]).recalibrated
    array([0. , 0.5, 1. ])
    """
    p = one_dimensional(forecast, "forecast")
    y = one_dimensional(event, "event", len(p))
    if not len(p):
        return ReliabilityCurve(forecast=p, recalibrated=p, count=np.zeros(0, dtype=np.intp))
    order = np.argsort(p, kind="stable")
    at, row = distinct(p[order])
    fitted = weighted_isotonic(row, len(at), y[order], np.ones(len(p)), increasing=True)[1]
    return ReliabilityCurve(forecast=at, recalibrated=fitted, count=np.bincount(row))


def corp(distribution: ArrayLike, support: ArrayLike, gold: ArrayLike) -> Decomposition:
    """Mean CRPS with its CORP decomposition.

    Each threshold's Brier score is decomposed by isotonic recalibration, and the parts are integrated over the thresholds. For
    forecasts that are ordered from one row to the next, as a calibrator's are, this is the decomposition by isotonic
    distributional regression. On support 0, 1, … n − 1 the score is the RPS.

    Parameters
    ----------
    distribution : array_like, shape (n_items, n_support)
    support : array_like, shape (n_support,)
        Ascending.
    gold : array_like, shape (n_items,)
        Within the support's range; between two support points it is split linearly, in score and parts alike.

    Returns
    -------
    Decomposition

    Raises
    ------
    CalibrationError
        The shapes differ, a row is no distribution, or gold is beyond the support.

    References
    ----------
    Dimitriadis, Gneiting & Jordan (2021), PNAS 118, doi 10.1073/pnas.2016191118; Arnold, Walz, Ziegel & Gneiting (2024),
    Decompositions of the mean continuous ranked probability score, Electronic J. Statistics 18.

    Examples
    --------
    >>> parts = corp([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.5, 0.5]], [0, 1], [0, 1, 1, 0])
    >>> parts.score, parts.miscalibration, parts.discrimination, parts.uncertainty
    (0.125, 0.0, 0.125, 0.25)
    """
    forecast = distributions(distribution)
    points = one_dimensional(support, "support", forecast.shape[1])
    y = one_dimensional(gold, "gold", len(forecast))
    if (np.diff(points) <= 0).any():
        raise CalibrationError("support must ascend")
    off = (y < points[0]) | (y > points[-1])
    if off.any():
        raise CalibrationError(f"row {int(np.flatnonzero(off)[0])}: gold is beyond the support")
    width = np.diff(points)
    return _decompose(_tails_of(forecast), np.clip((y[:, np.newaxis] - points[:-1]) / width, 0, 1), width)


def threshold_figures(probabilities: ArrayLike, gold: ArrayLike) -> tuple[ThresholdFigures, ...]:
    """Brier score with its CORP decomposition, and ECE, of P(gold ≥ level) for each level but the lowest.

    Parameters
    ----------
    probabilities : array_like, shape (n_items, n_levels)
    gold : array_like, shape (n_items,)
        In level indices; a fraction is split linearly between its two levels.

    Returns
    -------
    tuple of ThresholdFigures, length n_levels − 1

    Raises
    ------
    CalibrationError
        The shapes differ, or a row is no distribution or off the scale.

    References
    ----------
    Brier (1950), Monthly Weather Review 78; Guo, Pleiss, Sun & Weinberger (2017), ICML (ECE).

    Examples
    --------
    >>> first, = threshold_figures([[0.8, 0.2], [0.2, 0.8]], [0, 1])
    >>> round(first.brier.score, 3), round(first.ece.value, 3)
    (0.04, 0.2)
    """
    forecast = distributions(probabilities)
    observed = _exceedances(as_gold(gold, len(forecast), forecast.shape[1]), forecast.shape[1])
    tails = _tails_of(forecast)
    return tuple(
        ThresholdFigures(
            level=k + 1,
            event_rate=mean_figure(observed[:, k]),
            brier=_decompose(tails[:, [k]], observed[:, [k]], np.ones(1)),
            ece=_ece(tails[:, k], observed[:, k]),
        )
        for k in range(forecast.shape[1] - 1)
    )


def _tails_of(forecast: FloatArray) -> FloatArray:
    """P(beyond column k) for every column but the last, shape (n_items, n_columns − 1)."""
    return np.clip(np.cumsum(forecast[:, :0:-1], axis=1)[:, ::-1], 0, 1)


def _exceedances(gold: FloatArray, n_levels: int) -> FloatArray:
    """1{gold > k} for k = 0 … n_levels − 2, fractions split linearly."""
    return np.clip(gold[:, np.newaxis] - np.arange(n_levels - 1), 0, 1)


def _brier_parts(forecast: FloatArray, event: FloatArray) -> tuple[float, float, float, float]:
    """Brier score, miscalibration, discrimination, uncertainty."""
    order = np.argsort(forecast, kind="stable")
    at, row = distinct(forecast[order])
    recalibrated = weighted_isotonic(row, len(at), event[order], np.ones(len(event)), increasing=True)[1][row]
    score = float(((forecast - event) ** 2).mean())
    reliable = float(((recalibrated - event[order]) ** 2).mean())
    uncertain = float(event.var())
    return score, score - reliable, uncertain - reliable, uncertain


def _ece(forecast: FloatArray, event: FloatArray) -> Figure:
    """Mean over rows of |mean forecast − mean event| of the row's bin."""
    if not len(event):
        return Figure(value=None, n=0, reason="no rows")
    bins = np.minimum((forecast * ECE_BINS).astype(np.intp), ECE_BINS - 1)
    gap = np.bincount(bins, forecast - event, ECE_BINS)
    return Figure(value=float(np.abs(gap).sum()) / len(event), n=len(event))


def _decompose(tails: FloatArray, observed: FloatArray, width: FloatArray) -> Decomposition:
    """Decompose each threshold's Brier score and sum the parts, weighted by width."""
    n = len(tails)
    if not n:
        return Decomposition(score=None, miscalibration=None, discrimination=None, uncertainty=None, n=0, reason="no rows")
    parts = np.array([_brier_parts(tails[:, k], observed[:, k]) for k in range(len(width))]).reshape(len(width), 4)
    # Isotonic parts are never negative but for rounding.
    score, miscalibration, discrimination, uncertainty = np.maximum(width @ parts, 0).tolist()
    return Decomposition(score=score, miscalibration=miscalibration, discrimination=discrimination, uncertainty=uncertainty, n=n)
