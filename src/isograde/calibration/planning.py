"""Which items to label next, and what more labels would buy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration._inputs import as_rng, one_dimensional
from isograde.errors import CalibrationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import RNG, FloatArray, IntArray

__all__ = ["Allocation", "allocate", "draw", "half_widths"]

# Labels a stratum needs so that its variance can be estimated.
LEAST = 2
# No item's spread counts as less than this share of the largest: a calibrator of few labels may be too sure.
FLOOR = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """A stratified design with known inclusion probabilities.

    Attributes
    ----------
    stratum : ndarray of int, shape (n_items,)
        Ascending along the calibrated level.
    n_items, n_drawn : tuple of int
        Of each stratum.
    inclusion : ndarray of float, shape (n_items,)
        Probability of each item to be drawn: the stratum's n_drawn ÷ n_items.
    """

    stratum: IntArray
    n_items: tuple[int, ...]
    n_drawn: tuple[int, ...]
    inclusion: FloatArray


def allocate(level: ArrayLike, spread: ArrayLike, n: int, *, n_strata: int = 5) -> Allocation:
    """Stratify items along the calibrated level, and share n labels out where the calibrator is least sure.

    Strata are cut so that each holds the same sum of spreads, and labels are shared out in proportion to a stratum's size times
    its mean spread (Neyman's allocation), two at least. Cutting along the level rather than the spread saves more, since it also
    takes out what the calibrator gets wrong on one part of the scale. Spreads under a fifth of the largest count as that fifth,
    since a calibrator of few labels may be too sure; whatever the spreads, the inclusion probabilities are known, so weighted
    means stay unbiased.

    Parameters
    ----------
    level : array_like, shape (n_items,)
        Mean gold level that the calibrator expects for each item.
    spread : array_like, shape (n_items,)
        Standard deviation of gold that the calibrator expects for each item, in levels.
    n : int
        Labels to give; all items if there are fewer.
    n_strata : int, default 5
        At most so many; fewer where n is under twice that.

    Returns
    -------
    Allocation

    Raises
    ------
    CalibrationError
        There is no item, n is below 1, the lengths differ, or a spread is negative.

    References
    ----------
    Neyman (1934), On the two different aspects of the representative method, JRSS 97, doi 10.2307/2342192; Särndal, Swensson &
    Wretman (1992), Model Assisted Survey Sampling, §§ 3.7 and 12.4.

    Examples
    --------
    >>> plan = allocate([4.0] * 64 + [1.0] * 16, [0.25] * 64 + [1.0] * 16, 20, n_strata=2)
    >>> plan.n_items, plan.n_drawn  # 16 × 1.0 and 64 × 0.25 are 16 each: 10 labels each
    ((16, 64), (10, 10))
    """
    values = one_dimensional(spread, "spread")
    along = one_dimensional(level, "level", len(values))
    if not len(values) or n < 1:
        raise CalibrationError(f"{len(values)} items and {n} labels: give at least one of each")
    if (values < 0).any():
        raise CalibrationError(f"row {int(np.flatnonzero(values < 0)[0])}: spread is negative")
    n = min(n, len(values))
    raised = np.maximum(values, FLOOR * values.max())
    if raised.max() == 0:
        raised = np.ones(len(values))
    order = np.lexsort((raised, along))
    n_strata = max(1, min(n_strata, n // LEAST))
    # The middle of each item's own stretch of the summed spreads says in which stratum it lies.
    middle = np.cumsum(raised[order]) - raised[order] / 2
    stratum = np.empty(len(values), dtype=np.intp)
    stratum[order] = np.unique((middle / raised.sum() * n_strata).astype(np.intp), return_inverse=True)[1]
    size = np.bincount(stratum)
    drawn = _shared_out(n, size, np.bincount(stratum, raised).astype(np.float64))
    return Allocation(
        stratum=stratum,
        n_items=tuple(size.tolist()),
        n_drawn=tuple(drawn.tolist()),
        inclusion=(drawn / size)[stratum],
    )


def _shared_out(n: int, size: IntArray, weight: FloatArray) -> IntArray:
    """Whole labels a stratum in proportion to weight, two at least and no more than there are items."""
    least = np.minimum(size, min(LEAST, n))
    low, high = 0.0, float(size.max()) / float(weight.min())
    for _ in range(100):  # the factor by which the weights, kept within bounds, sum to n
        middle = (low + high) / 2
        below = np.clip(middle * weight, least, size).sum() <= n
        low, high = (middle, high) if below else (low, middle)
    share = np.clip(low * weight, least, size)
    drawn = np.minimum(np.floor(share).astype(np.intp), size)
    order = np.argsort(drawn - share, kind="stable")  # largest remainders first
    for stratum in order[drawn[order] < size[order]][: n - int(drawn.sum())]:
        drawn[stratum] += 1
    return drawn


def draw(allocation: Allocation, *, rng: RNG = None) -> IntArray:
    """Draw the items of a design, each stratum's at random without replacement.

    Parameters
    ----------
    allocation : Allocation
    rng : numpy.random.Generator or int, optional
        None is a fixed stream.

    Returns
    -------
    ndarray of int, shape (n_drawn,)
        Ascending.

    Examples
    --------
    >>> draw(allocate(range(10), [1.0] * 10, 4), rng=0)
    array([3, 4, 6, 9])
    """
    generator = as_rng(rng)
    chosen = [
        generator.choice(np.flatnonzero(allocation.stratum == stratum), n, replace=False)
        for stratum, n in enumerate(allocation.n_drawn)
    ]
    return np.sort(np.concatenate(chosen))


def half_widths(
    spread: float, n_labels: Sequence[int], *, n_items: int | None = None, confidence_level: float = 0.95
) -> list[float | None]:
    """Half the width of a mean's interval, as labels grow.

    Parameters
    ----------
    spread : float
        Standard deviation of what the labels must still tell, an independent label's: of gold for the labels' own mean, of gold
        minus the calibrated level for a prediction-powered one.
    n_labels : sequence of int
        Independent labels (groups, where items share questions).
    n_items : int or None
        Items of the set whose mean is wanted, of which the labels are a part; None for the population that it stands for.
    confidence_level : float, default 0.95

    Returns
    -------
    list of float or None
        Student's t × spread × √(1/n − 1/N); None under two labels, 0 where all are labelled.

    References
    ----------
    Cochran (1977), Sampling Techniques, §§ 2.5–2.6.

    Examples
    --------
    >>> [round(width, 3) for width in half_widths(1.0, [10, 40])]  # 2.262 ÷ √10, 2.023 ÷ √40
    [0.715, 0.32]
    """
    from scipy.special import stdtrit

    widths: list[float | None] = []
    for n in n_labels:
        if n < 2:
            widths.append(None)
            continue
        share = 1 / n - (0.0 if n_items is None else 1 / max(n, n_items))
        widths.append(float(stdtrit(n - 1, (1 + confidence_level) / 2) * spread * np.sqrt(share)))
    return widths
