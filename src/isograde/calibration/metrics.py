"""How far predictions are from gold: errors, agreement, ranks.

Every figure is a :class:`Figure`: undefined is None with a reason, never NaN. Predicted and gold levels are in level indices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration._inputs import one_dimensional
from isograde.calibration.resampling import Interval, bootstrap
from isograde.errors import CalibrationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import RNG, FloatArray, Groups
    from isograde.calibration.resampling import IntervalMethod

__all__ = [
    "Figure",
    "bias",
    "bootstrap_figure",
    "exact_agreement",
    "kendall_tau_b",
    "level_counts",
    "mae",
    "rmse",
    "spearman",
    "within_one",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measured figure.

    Attributes
    ----------
    value : float or None
        None where these numbers do not define it.
    n : int
        Rows it was measured on.
    reason : str or None
        Why the value is None.
    interval : Interval or None
        Where one was asked for.
    """

    value: float | None
    n: int
    reason: str | None = None
    interval: Interval | None = None


def mean_figure(values: FloatArray) -> Figure:
    """Mean of one value a row."""
    if not len(values):
        return Figure(value=None, n=0, reason="no rows")
    return Figure(value=float(values.mean()), n=len(values))


def mae(predicted: ArrayLike, gold: ArrayLike) -> Figure:
    """Mean absolute error, in levels.

    Parameters
    ----------
    predicted, gold : array_like, shape (n_items,)

    Returns
    -------
    Figure

    Raises
    ------
    CalibrationError
        The lengths differ or a value is not finite; the message names the row.

    Examples
    --------
    >>> mae([1, 2, 4], [1, 3, 2]).value
    1.0
    """
    p, g = pair(predicted, gold)
    return mean_figure(np.abs(p - g))


def rmse(predicted: ArrayLike, gold: ArrayLike) -> Figure:
    """Root mean squared error, in levels; parameters and errors as in :func:`mae`.

    Examples
    --------
    >>> rmse([0, 2], [1, 1]).value
    1.0
    """
    p, g = pair(predicted, gold)
    squared = mean_figure((p - g) ** 2)
    return squared if squared.value is None else replace(squared, value=float(np.sqrt(squared.value)))


def bias(predicted: ArrayLike, gold: ArrayLike) -> Figure:
    """Mean of predicted − gold, in levels: above 0 is lenient; parameters and errors as in :func:`mae`.

    Examples
    --------
    >>> bias([3, 4], [2, 4]).value
    0.5
    """
    p, g = pair(predicted, gold)
    return mean_figure(p - g)


def exact_agreement(predicted: ArrayLike, gold: ArrayLike) -> Figure:
    """Share of rows whose nearest levels are the same; parameters and errors as in :func:`mae`.

    A value midway between two levels counts as the lower, on both sides.

    Examples
    --------
    >>> exact_agreement([0.4, 2.0], [0, 3]).value
    0.5
    """
    p, g = pair(predicted, gold)
    return mean_figure((nearest_level(p) == nearest_level(g)).astype(np.float64))


def within_one(predicted: ArrayLike, gold: ArrayLike) -> Figure:
    """Share of rows whose nearest levels differ by one at most; parameters, errors and rounding as in :func:`exact_agreement`.

    Examples
    --------
    >>> within_one([0, 4], [1, 2]).value
    0.5
    """
    p, g = pair(predicted, gold)
    return mean_figure((np.abs(nearest_level(p) - nearest_level(g)) <= 1).astype(np.float64))


def spearman(predicted: ArrayLike, gold: ArrayLike) -> Figure:
    """Spearman's ρ, ties at their mean rank; parameters and errors as in :func:`mae`.

    Examples
    --------
    >>> round(spearman([1, 2, 3, 4], [1, 3, 2, 4]).value, 2)
    0.8
    """
    p, g = pair(predicted, gold)
    if missing := _unranked(p, g):
        return missing
    from scipy.stats import spearmanr

    return Figure(value=float(spearmanr(p, g).statistic), n=len(p))


def kendall_tau_b(predicted: ArrayLike, gold: ArrayLike) -> Figure:
    """Kendall's τ-b, which allows for ties; parameters and errors as in :func:`mae`.

    Examples
    --------
    >>> round(kendall_tau_b([1, 2, 3, 4], [1, 3, 2, 4]).value, 3)
    0.667
    """
    p, g = pair(predicted, gold)
    if missing := _unranked(p, g):
        return missing
    from scipy.stats import kendalltau

    return Figure(value=float(kendalltau(p, g).statistic), n=len(p))


def level_counts(values: ArrayLike, n_levels: int) -> tuple[int, ...]:
    """Rows nearest to each level, lowest first.

    Parameters
    ----------
    values : array_like, shape (n_items,)
        In level indices; midway between two levels counts as the lower.
    n_levels : int

    Returns
    -------
    tuple of int, length n_levels

    Raises
    ------
    CalibrationError
        A value is off the scale or not finite.

    Examples
    --------
    >>> level_counts([0, 1, 1.2, 3], 5)
    (1, 2, 0, 1, 0)
    """
    nearest = nearest_level(one_dimensional(values, "values"))
    off = (nearest < 0) | (nearest >= n_levels)
    if off.any():
        raise CalibrationError(f"row {int(np.flatnonzero(off)[0])}: the value is off the scale 0 … {n_levels - 1}")
    return tuple(np.bincount(nearest.astype(np.intp), minlength=n_levels).tolist())


def bootstrap_figure(
    measure: Callable[..., Figure],
    *arrays: ArrayLike,
    groups: Groups | None = None,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    method: IntervalMethod = "percentile",
    rng: RNG = None,
) -> Figure:
    """Measure a figure and its interval by bootstrap over groups.

    Parameters
    ----------
    measure : callable
        Any measure of this package: arrays in, a Figure out.
    *arrays : array_like, shape (n_items, …)
        Its arguments; rows are resampled in all of them alike.
    groups, n_resamples, confidence_level, method, rng
        As in :func:`~isograde.calibration.bootstrap`; without groups each row stands by itself.

    Returns
    -------
    Figure

    Examples
    --------
    >>> figure = bootstrap_figure(mae, [0, 1, 2, 3] * 5, [0, 1, 2, 4] * 5, rng=0)
    >>> figure.value, figure.interval.low, figure.interval.high
    (0.25, 0.1, 0.45)
    """
    columns = [np.asarray(array) for array in arrays]
    whole = measure(*columns)
    interval = bootstrap(
        lambda rows: measure(*(column[rows] for column in columns)).value,
        range(len(columns[0])) if groups is None else groups,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        method=method,
        rng=rng,
    )
    return replace(whole, interval=interval)


def nearest_level(values: FloatArray) -> FloatArray:
    """Nearest whole level, the lower of two that are as near."""
    nearest: FloatArray = np.ceil(values - 0.5)
    return nearest


def pair(predicted: ArrayLike, gold: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Two finite arrays of the same length."""
    p = one_dimensional(predicted, "predicted")
    g = one_dimensional(gold, "gold")
    if len(p) != len(g):
        raise CalibrationError(f"{len(p)} predictions and {len(g)} gold labels; give one an item")
    return p, g


def _unranked(predicted: FloatArray, gold: FloatArray) -> Figure | None:
    """Say why a rank correlation is not defined."""
    if len(gold) < 2:
        return Figure(value=None, n=len(gold), reason="fewer than two rows")
    for name, values in (("predictions", predicted), ("gold labels", gold)):
        if (values == values[0]).all():
            return Figure(value=None, n=len(gold), reason=f"all {name} are the same")
    return None
