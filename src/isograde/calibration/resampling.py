"""Groups kept together: folds, bootstrap intervals, and limits on a mean difference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from isograde.calibration._inputs import as_rng, group_codes, one_dimensional
from isograde.errors import StatisticsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import RNG, FloatArray, Groups, IntArray

__all__ = ["Interval", "MeanLimit", "bootstrap", "bootstrap_mean", "grouped_folds", "mean_limit"]

IntervalMethod = Literal["percentile", "BCa"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure's interval; low and high are None where it is not defined, and reason says why."""

    low: float | None
    high: float | None
    confidence_level: float
    n_groups: int
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanLimit:
    """A mean and its one-sided upper limit by group; None where not defined, and reason says why."""

    mean: float | None
    upper: float | None
    confidence_level: float
    n: int
    n_groups: int
    reason: str | None = None


def grouped_folds(groups: Groups, *, n_splits: int = 10, rng: RNG = None) -> IntArray:
    """Assign whole groups to folds of about equal size.

    Parameters
    ----------
    groups : sequence, shape (n_items,)
        Items that share a question. None in it is a group of its own.
    n_splits : int, default 10
        Number of folds; as many as there are groups where those are fewer.
    rng : numpy.random.Generator or int, optional
        Orders the groups. None is a fixed stream.

    Returns
    -------
    ndarray of int, shape (n_items,)
        The fold in which a row is held out, from 0.

    Raises
    ------
    CalibrationError
        ``groups`` is not one-dimensional.
    StatisticsError
        There are fewer than two groups or folds, so nothing can be held out.

    Examples
    --------
    >>> grouped_folds(["a", "a", "b", "c"], n_splits=2, rng=0)
    array([0, 0, 1, 1])
    """
    code = group_codes(groups, len(groups))
    size = np.bincount(code)
    n_folds = min(n_splits, len(size))
    if n_folds < 2:
        raise StatisticsError(f"nothing can be held out of {len(size)} group(s) in {n_splits} fold(s); two or more are needed")
    # Largest groups first, each into the fold that is smallest so far; a random order breaks ties.
    shuffled = as_rng(rng).permutation(len(size))
    fold_of = np.empty(len(size), dtype=np.intp)
    if size.max() == size.min():
        fold_of[shuffled] = np.arange(len(size)) % n_folds
        return fold_of[code]
    filled = np.zeros(n_folds, dtype=np.intp)
    for group in shuffled[np.argsort(-size[shuffled], kind="stable")]:
        fold = int(filled.argmin())
        fold_of[group] = fold
        filled[fold] += size[group]
    return fold_of[code]


def mean_limit(differences: ArrayLike, *, groups: Groups | None = None, confidence_level: float = 0.95) -> MeanLimit:
    """One-sided upper limit of a mean, with groups as the units that vary.

    The standard error is that of a ratio of group totals with the G ÷ (G − 1) correction (CR1), and the limit takes Student's t
    with G − 1 degrees of freedom.

    Parameters
    ----------
    differences : array_like, shape (n_items,)
    groups : sequence, shape (n_items,), optional
        Each row by itself where not given.
    confidence_level : float, default 0.95

    Returns
    -------
    MeanLimit

    Raises
    ------
    CalibrationError
        A value is not finite, or the lengths differ.

    References
    ----------
    Cameron & Miller (2015), A practitioner's guide to cluster-robust inference, J. Human Resources 50, doi 10.3368/jhr.50.2.317.

    Examples
    --------
    >>> limit = mean_limit([-1.0, -2.0, -3.0])
    >>> limit.mean, round(limit.upper, 3)  # −2 + 2.920 × 1 ÷ √3
    (-2.0, -0.314)
    """
    values = one_dimensional(differences, "differences")
    code = group_codes(groups, len(values))
    n_groups = int(code.max()) + 1 if len(code) else 0
    mean = float(values.mean()) if len(values) else None
    limit = MeanLimit(mean=mean, upper=None, confidence_level=confidence_level, n=len(values), n_groups=n_groups)
    if mean is None:
        return replace(limit, reason="no rows")
    if n_groups < 2:
        return replace(limit, reason="one group only: how it varies is unknown")
    from scipy.special import stdtrit

    residual = np.bincount(code, values - mean)
    error = np.sqrt(n_groups / (n_groups - 1) * float(residual @ residual)) / len(values)
    return replace(limit, upper=mean + float(stdtrit(n_groups - 1, confidence_level)) * float(error))


def bootstrap_mean(
    values: ArrayLike,
    *,
    groups: Groups | None = None,
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
    rng: RNG = None,
) -> Interval:
    """Percentile interval of a mean, resampling whole groups; needs only the groups' sums, so it is quick on any number of rows.

    Parameters
    ----------
    values : array_like, shape (n_items,)
    groups : sequence, shape (n_items,), optional
        Each row by itself where not given.
    n_resamples : int, default 2000
    confidence_level : float, default 0.95
    rng : numpy.random.Generator or int, optional
        None is a fixed stream.

    Returns
    -------
    Interval

    Raises
    ------
    CalibrationError
        A value is not finite, or the lengths differ.

    Examples
    --------
    >>> interval = bootstrap_mean([0.0, 1.0] * 50, rng=0)
    >>> interval.low < 0.5 < interval.high
    True
    """
    array = one_dimensional(values, "values")
    code = group_codes(groups, len(array))
    total, size = np.bincount(code, array), np.bincount(code)
    if len(size) < 2:
        return _undefined(confidence_level, len(size), "fewer than two groups")
    generator = as_rng(rng)
    means = np.empty(n_resamples)
    for resample in range(n_resamples):
        drawn = generator.integers(0, len(size), len(size))
        means[resample] = total[drawn].sum() / size[drawn].sum()
    low, high = np.quantile(means, _tails(confidence_level))
    return Interval(low=float(low), high=float(high), confidence_level=confidence_level, n_groups=len(size))


def bootstrap(
    statistic: Callable[[IntArray], float | None],
    groups: Groups,
    *,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    method: IntervalMethod = "percentile",
    rng: RNG = None,
) -> Interval:
    """Interval of any figure, resampling whole groups with replacement.

    Parameters
    ----------
    statistic : callable
        Takes row numbers (repeats allowed) and returns the figure, or None where it is not defined on them.
    groups : sequence, shape (n_items,)
        Items that share a question. None in it is a group of its own.
    n_resamples : int, default 1000
    confidence_level : float, default 0.95
    method : {"percentile", "BCa"}, default "percentile"
        BCa corrects for bias and skewness, and evaluates the figure once more a group.
    rng : numpy.random.Generator or int, optional
        None is a fixed stream.

    Returns
    -------
    Interval
        Undefined where there are fewer than two groups, or where the figure is undefined in more than 5 % of the resamples.

    References
    ----------
    Efron (1987), Better bootstrap confidence intervals, JASA 82; Field & Welsh (2007), Bootstrapping clustered data, JRSS B 69.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 3.0, 10.0] * 10)
    >>> interval = bootstrap(lambda rows: float(np.median(x[rows])), range(40), rng=0)
    >>> interval.low, interval.high
    (2.0, 3.0)
    """
    code = group_codes(groups, len(groups))
    order = np.argsort(code, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(code))[:-1]) if len(code) else []
    n_groups = len(members)
    if n_groups < 2:
        return _undefined(confidence_level, n_groups, "fewer than two groups")
    generator = as_rng(rng)
    drawn = (generator.integers(0, n_groups, n_groups) for _ in range(n_resamples))
    figures = [statistic(np.concatenate([members[group] for group in groups_drawn])) for groups_drawn in drawn]
    defined = np.array([figure for figure in figures if figure is not None])
    if len(defined) < 0.95 * n_resamples:
        return _undefined(confidence_level, n_groups, f"undefined in {n_resamples - len(defined)} of {n_resamples} resamples")
    tails = _tails(confidence_level)
    if method == "BCa":
        whole = statistic(order)
        left_out = [statistic(np.concatenate([*members[:g], *members[g + 1 :]])) for g in range(n_groups)]
        if whole is None or any(figure is None for figure in left_out):
            return _undefined(confidence_level, n_groups, "undefined without one of the groups")
        tails = _bca_tails(tails, defined, whole, np.array(left_out, dtype=np.float64))
    low, high = np.quantile(defined, tails)
    return Interval(low=float(low), high=float(high), confidence_level=confidence_level, n_groups=n_groups)


def _tails(confidence_level: float) -> FloatArray:
    """Cumulative probabilities of a central interval's two ends."""
    return np.array([(1 - confidence_level) / 2, (1 + confidence_level) / 2])


def _bca_tails(tails: FloatArray, resampled: FloatArray, whole: float, left_out: FloatArray) -> FloatArray:
    """Efron's corrected cumulative probabilities (1987, eqs. 2.3 and 6.6)."""
    from scipy.special import ndtr, ndtri

    # Ties count half, so that a discrete figure has no bias of its own.
    below = ((resampled < whole).mean() + (resampled <= whole).mean()) / 2
    shift = ndtri(np.clip(below, 1 / (2 * len(resampled)), 1 - 1 / (2 * len(resampled))))
    pull = left_out.mean() - left_out
    spread = float((pull**2).sum())
    acceleration = float((pull**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    z = shift + ndtri(tails)
    corrected: FloatArray = ndtr(shift + z / (1 - acceleration * z))
    return corrected


def _undefined(confidence_level: float, n_groups: int, reason: str) -> Interval:
    """Return an interval that these numbers do not define."""
    return Interval(low=None, high=None, confidence_level=confidence_level, n_groups=n_groups, reason=reason)
