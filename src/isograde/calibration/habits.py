"""Does a judge favour something beside quality: its level regressed on gold and on one thing more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration._inputs import group_codes, one_dimensional
from isograde.errors import CalibrationError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import FloatArray, Groups, IntArray

__all__ = ["Habit", "habit"]

# Gold with more distinct values than this enters as its nearest levels and a slope.
MAX_CATEGORIES = 11
# What is left of a regressor's sum of squares, below which gold or a constant says all of it.
NOTHING_LEFT = 1e-9
# A group whose leverage is this near 1 fits itself; the adjustment is then that of a pseudo-inverse.
FULL_LEVERAGE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """Difference in the judge's level that goes with one more unit of something, at equal gold.

    Attributes
    ----------
    slope, low, high : float or None
        In levels, with its interval; None where not defined, and reason says why.
    p_value : float or None
        Two-sided, of no difference; of this look alone.
    degrees_of_freedom : float or None
        Of Student's t.
    confidence_level : float
    n, n_groups : int
    reason : str or None
    """

    slope: float | None
    low: float | None
    high: float | None
    p_value: float | None
    degrees_of_freedom: float | None
    confidence_level: float
    n: int
    n_groups: int
    reason: str | None = None


def habit(
    levels: ArrayLike, gold: ArrayLike, values: ArrayLike, *, groups: Groups | None = None, confidence_level: float = 0.95
) -> Habit:
    """Regress the judge's level on gold, as categories, and on one thing more.

    Least squares of the level on an indicator for each gold level and on ``values``. The interval is cluster-robust: CR2, with
    Student's t on the degrees of freedom of Bell and McCaffrey, which holds with few or unequal groups too. It shows an
    association and no cause; and where gold is noisy, true quality that gold missed counts too.

    Parameters
    ----------
    levels : array_like, shape (n_items,)
        The judge's expected level.
    gold : array_like, shape (n_items,)
        In level indices. With more than 11 distinct values it enters as the nearest levels and a slope.
    values : array_like, shape (n_items,)
        What may go with the level: the logarithm of a length, 1 and 0 for one language and the others.
    groups : sequence, shape (n_items,), optional
        Items that share a question. None in it is a group of its own.
    confidence_level : float, default 0.95

    Returns
    -------
    Habit

    Raises
    ------
    CalibrationError
        A value is not finite, or the lengths differ.

    References
    ----------
    Bell & McCaffrey (2002), Bias reduction in standard errors for linear regression with multi-stage samples, Survey Method. 28.
    Cameron & Miller (2015), A practitioner's guide to cluster-robust inference, J. Human Resources 50, doi 10.3368/jhr.50.2.317.
    Pustejovsky & Tipton (2018), Small-sample methods for cluster-robust variance estimation, JBES 36, doi
    10.1080/07350015.2016.1247004.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> gold, doublings = np.tile([0, 1, 2, 3, 4], 40), rng.normal(size=200)
    >>> judge = 0.8 * gold + 0.2 * doublings + 0.3 * rng.normal(size=200)
    >>> found = habit(judge, gold, doublings)
    >>> round(found.slope, 2), round(found.low, 2), round(found.high, 2)
    (0.17, 0.13, 0.22)
    """
    y = one_dimensional(levels, "levels")
    truth, x = one_dimensional(gold, "gold", len(y)), one_dimensional(values, "values", len(y))
    if not 0 < confidence_level < 1:
        raise CalibrationError(f"confidence_level must lie between 0 and 1, not {confidence_level:g}")
    code = np.unique(group_codes(groups, len(y)), return_inverse=True)[1]
    n_groups = int(code.max(initial=-1)) + 1

    def made(reason: str | None, figures: tuple[float, ...] = ()) -> Habit:
        names = ("slope", "low", "high", "p_value", "degrees_of_freedom")
        found: dict[str, float | None] = dict(zip(names, figures or (None,) * len(names), strict=True))
        return Habit(**found, confidence_level=confidence_level, n=len(y), n_groups=n_groups, reason=reason)

    if n_groups < 2:
        return made("fewer than two groups")
    controls = _controls(truth)
    if len(y) <= controls.shape[1] + 1:
        return made("no more rows than gold levels")
    other = np.linalg.qr(controls)[0]
    centred = x - x.mean()
    left = centred - other @ (other.T @ centred)
    strength = float(left @ left)
    if strength <= NOTHING_LEFT * max(float(centred @ centred), np.finfo(float).tiny):
        return made("the same at every row of equal gold")
    slope = float(left @ y) / strength
    direction = left / np.sqrt(strength)
    basis = np.column_stack([other, direction])
    residual = y - basis @ (basis.T @ y)
    error, freedom = _clustered(left / strength, residual, basis, code)
    if freedom < 1 or error <= NOTHING_LEFT * max(abs(slope), 1.0):
        return made("too few groups differ in it" if freedom < 1 else "the judge's level is told by gold and this alone")
    from scipy.special import stdtr, stdtrit

    reach = float(stdtrit(freedom, (1 + confidence_level) / 2)) * error
    p_value = 2 * float(stdtr(freedom, -abs(slope) / error))
    return made(None, (slope, slope - reach, slope + reach, p_value, freedom))


def _controls(gold: FloatArray) -> FloatArray:
    """Indicators of the gold levels, shape (n_items, n_controls)."""
    kinds = np.unique(gold)
    if len(kinds) <= MAX_CATEGORIES:
        indicators: FloatArray = (gold[:, np.newaxis] == kinds).astype(np.float64)
        return indicators
    nearest = np.round(gold)
    within = gold - nearest
    columns = [(nearest == level).astype(np.float64) for level in np.unique(nearest)]
    return np.column_stack([*columns, within])


def _clustered(weight: FloatArray, residual: FloatArray, basis: FloatArray, code: IntArray) -> tuple[float, float]:
    """CR2 standard error of weight · y and its Bell–McCaffrey degrees of freedom; basis (n, p) is orthonormal.

    A group's adjustment (I − Q_g Q_g′)^−½ is I + Q_g f(Q_g′ Q_g) Q_g′ with f(λ) = ((1 − λ)^−½ − 1) ÷ λ, so no matrix is larger
    than p × p, however large the groups.
    """
    order = np.argsort(code, kind="stable")
    weight, residual, basis, code = weight[order], residual[order], basis[order], code[order]
    starts = np.flatnonzero(np.diff(code, prepend=-1))

    def by_group(rows: FloatArray) -> FloatArray:
        summed: FloatArray = np.add.reduceat(rows, starts, axis=0)
        return summed

    leverage = by_group(basis[:, :, np.newaxis] * basis[:, np.newaxis, :])
    value, vector = np.linalg.eigh(leverage)
    value = np.clip(value, 0, 1)
    inverse_root = np.where(value < 1 - FULL_LEVERAGE, 1 / np.sqrt(np.maximum(1 - value, FULL_LEVERAGE)), 0.0)
    factor = np.where(value > FULL_LEVERAGE, (inverse_root - 1) / np.maximum(value, FULL_LEVERAGE), 0.5)
    along = np.einsum("gji,gj->gi", vector, by_group(basis * weight[:, np.newaxis]))
    moved = np.einsum("gij,gj->gi", vector, factor * along)
    adjusted = weight + (basis * moved[code]).sum(axis=1)
    variance = float((by_group(adjusted * residual) ** 2).sum())
    # P = diag(|a_g|²) − B B′ is what the variance estimate is a quadratic form in, were the errors alike and independent.
    size, shared = by_group(adjusted**2), by_group(basis * adjusted[:, np.newaxis])
    overlap = (shared**2).sum(axis=1)
    trace = float(size.sum() - overlap.sum())
    square = float((size**2).sum() - 2 * (size * overlap).sum() + ((shared.T @ shared) ** 2).sum())
    freedom = trace**2 / square if square > 0 else 0.0
    return float(np.sqrt(variance)), freedom
