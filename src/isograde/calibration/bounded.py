"""Intervals for the mean of a bounded quantity that hold where Student's t does not: few labels, most of them alike."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from isograde.calibration._inputs import as_weight, one_dimensional
from isograde.errors import CalibrationError, StatisticsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import FloatArray

__all__ = ["BoundedMethod", "bounded_mean_interval"]

BoundedMethod = Literal["gaffke", "betting"]

# Bisections of the scale: its 2⁻³⁰th part is nothing.
N_BISECTIONS = 30
# Nodes of the quadrature of Imhof's integral; 200 change the limits by less than 10⁻⁵ of the scale.
N_NODES = 100
# Bets that the capital is spread over, as shares of the largest that cannot ruin.
BETS = np.linspace(0.02, 1, 50)


def bounded_mean_interval(
    values: ArrayLike,
    *,
    low: float,
    high: float,
    weights: ArrayLike | None = None,
    effective_n: float | None = None,
    confidence_level: float = 0.95,
    method: BoundedMethod = "gaffke",
) -> tuple[float, float]:
    """Interval for the mean of independent draws of a quantity that lies between two known ends.

    Each limit has half the error, and neither needs the draws to differ from one another.

    - ``"gaffke"``: the quantile of the draws' mean under Dirichlet weights, one more draw at the end of the scale thrown in. For
      draws of the two ends it is the Clopper–Pearson interval and holds exactly; that it holds for others is a conjecture without
      a known exception (tests/bench/mean_coverage.py enumerates small samples of five levels).
    - ``"betting"``: the means that no gambler could have become 2 ÷ (1 − confidence_level) times richer on, had they been true;
      its stakes are spread evenly over the possible ones. It is proven for every distribution and about a third wider.

    Parameters
    ----------
    values : array_like, shape (n,)
    low, high : float
        The ends of the scale.
    weights : array_like, shape (n,), optional
        How much of the mean each draw makes up, in any unit. Under ``"betting"`` each draw stakes in proportion to its weight,
        which keeps the proof; under ``"gaffke"`` unequal ones are an approximation.
    effective_n : float, optional
        For ``"gaffke"``: how many independent draws of equal weight these are worth, where they come in groups (Korn & Graubard
        do so for shares); (Σw)² ÷ Σw² unless given.
    confidence_level : float, default 0.95
    method : {"gaffke", "betting"}, default "gaffke"

    Returns
    -------
    low, high : float

    Raises
    ------
    CalibrationError
        A value is not finite or off the scale, or the lengths differ.
    StatisticsError
        There are no values.

    References
    ----------
    Gaffke (2005), Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable,
    Mathematical Methods of Statistics 14; Learned-Miller & Thomas (2019), A new confidence interval for the mean of a bounded
    random variable, arXiv 1905.06208; Imhof (1961), Computing the distribution of quadratic forms in normal variables, Biometrika
    48; Korn & Graubard (1998), Confidence intervals for proportions with small expected number of positive counts estimated from
    survey data, Survey Methodology 24; Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting,
    JRSS B 86, doi 10.1093/jrsssb/qkad009 (its capital with the bets spread over a grid).

    Examples
    --------
    >>> limits = bounded_mean_interval([4.0] * 8, low=0, high=4)  # lower: 4 × 0.025 to the power of 1 ÷ 8
    >>> [round(limit, 3) for limit in limits]
    [2.522, 4.0]
    """
    array = one_dimensional(values, "values")
    weight = as_weight(weights, len(array))
    if not len(array):
        raise StatisticsError("an interval for a mean needs at least one value")
    share = (array - low) / (high - low)
    off = (share < -1e-9) | (share > 1 + 1e-9)
    if off.any():
        row = int(np.flatnonzero(off)[0])
        raise CalibrationError(f"row {row}: {array[row]:g} is off the scale {low:g} … {high:g}")
    share, weight = np.clip(share, 0, 1), weight / weight.max()
    error = (1 - confidence_level) / 2
    if method == "gaffke":
        count = weight * (weight.sum() / (weight @ weight) if effective_n is None else effective_n / weight.sum())
        lower, upper = _gaffke_lower(share, count, error), 1 - _gaffke_lower(1 - share, count, error)
    else:
        lower, upper = _betting_lower(share, weight, error), 1 - _betting_lower(1 - share, weight, error)
    return low + (high - low) * lower, low + (high - low) * upper


def _gaffke_lower(share: FloatArray, draws: FloatArray, error: float) -> float:
    """Lower limit of Gaffke's bound on [0, 1]: the error-quantile of Σ Dᵢ xᵢ, D Dirichlet over so many draws each and a 0."""
    at, where = np.unique(np.append(share, 0.0), return_inverse=True)
    count = np.bincount(where, np.append(draws, 1.0)).astype(np.float64)
    if len(at) == 1:
        return 0.0
    # Σ Dᵢ xᵢ ≤ m exactly where Σ Gᵢ (xᵢ − m) ≤ 0, with G independent gamma variables of shape count.
    low, high = 0.0, float(at[-1])
    for _ in range(N_BISECTIONS):
        middle = (low + high) / 2
        if _below_zero(at - middle, count) < error:
            low = middle
        else:
            high = middle
    return low


@cache
def _nodes() -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre nodes and weights on [0, 1]."""
    node, weight = np.polynomial.legendre.leggauss(N_NODES)
    return (node + 1) / 2, weight / 2


def _below_zero(factor: FloatArray, count: FloatArray) -> float:
    """P(Σ factor × gamma(count) ≤ 0) by Imhof's integral, over u = x ÷ (1 − x) standard deviations."""
    node, node_weight = _nodes()
    spread = np.sqrt(count @ factor**2)
    u = node / (1 - node) / spread
    turned = np.outer(u, factor)
    angle = np.arctan(turned) @ count
    shrunk = 0.5 * np.log1p(turned**2) @ count
    inner = np.sin(angle) * np.exp(-shrunk) / u / (1 - node) ** 2 / spread
    return float(0.5 - (node_weight @ inner) / np.pi)


def _betting_lower(share: FloatArray, weight: FloatArray, error: float) -> float:
    """Least mean on [0, 1] that the capital does not speak against."""
    at, where = np.unique(np.column_stack([share, weight]), axis=0, return_inverse=True)
    value, stake = at.T
    count = np.bincount(where.ravel())
    low, high = 0.0, float(weight @ share / weight.sum())
    for _ in range(N_BISECTIONS):
        middle = (low + high) / 2
        with np.errstate(divide="ignore"):  # a bet of everything may be lost: no capital is left
            grown = np.log1p(np.outer(BETS, stake * (value - middle) / max(middle, 1e-300))) @ count
        most = float(grown.max())
        if most + float(np.log(np.exp(grown - most).mean())) >= -np.log(error):
            low = middle
        else:
            high = middle
    return low
