"""How far raters agree with one another, and the judge with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from isograde.calibration._inputs import as_gold, one_dimensional
from isograde.calibration.metrics import Figure, mean_figure, nearest_level
from isograde.errors import CalibrationError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import FloatArray

__all__ = [
    "AlternativeAnnotatorTest",
    "HumanYardstick",
    "RaterAdvantage",
    "alternative_annotator_test",
    "human_yardstick",
    "krippendorff_alpha",
    "quadratic_weighted_kappa",
]

# Calderon, Reichart & Dror ask for 30 items a rater, for the t-test to hold.
MIN_ITEMS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanYardstick:
    """The judge beside the raters, each measured against a rater held out; over all (item, held-out rater) pairs.

    Attributes
    ----------
    human_mae : Figure
        Of the other raters' median against the held-out rater, in levels.
    judge_mae : Figure
        Of the judge against the same held-out rater, on the same items.
    judge_nearer : Figure
        How often the judge is nearer to the held-out rater than the other raters' median is; a tie counts half.
    n_items, n_raters : int
        Items with two ratings or more, and raters of such items.
    """

    human_mae: Figure
    judge_mae: Figure
    judge_nearer: Figure
    n_items: int
    n_raters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterAdvantage:
    """One held-out rater in the alternative annotator test.

    Attributes
    ----------
    rater : int
        Column of the ratings.
    n : int
        Items that this rater and another rated.
    advantage : float
        How often the judge is at least as near to the remaining raters as this rater is.
    p_value : float
        One-sided, of «the judge falls behind this rater by epsilon or more».
    won : bool
        Rejected at the false discovery rate.
    """

    rater: int
    n: int
    advantage: float
    p_value: float
    won: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternativeAnnotatorTest:
    """Result of the alternative annotator test.

    Attributes
    ----------
    winning_rate : Figure
        Share of raters that the judge wins against; 0.5 or more passes. Its n counts raters.
    advantage : Figure
        Mean over raters of how often the judge is at least as near to the others. Its n counts raters.
    raters : tuple of RaterAdvantage
        Those with enough items.
    epsilon : float
    """

    winning_rate: Figure
    advantage: Figure
    raters: tuple[RaterAdvantage, ...]
    epsilon: float


def quadratic_weighted_kappa(first: ArrayLike, second: ArrayLike, *, n_levels: int) -> Figure:
    """Cohen's κ with quadratic weights.

    Parameters
    ----------
    first, second : array_like, shape (n_items,)
        Levels 0 … n_levels − 1; a fraction counts as its nearest level, midway as the lower.
    n_levels : int

    Returns
    -------
    Figure
        Undefined where both give one and the same level to every item.

    Raises
    ------
    CalibrationError
        The lengths differ, or a value is off the scale.

    References
    ----------
    Cohen (1968), Weighted kappa, Psychological Bulletin 70, doi 10.1037/h0026256.

    Examples
    --------
    >>> quadratic_weighted_kappa([0, 1, 2], [0, 1, 1], n_levels=3).value  # 1 − (1/3) ÷ (9/9)
    0.6666666666666667
    """
    raw = one_dimensional(first, "first")
    a = nearest_level(as_gold(raw, len(raw), n_levels))
    b = nearest_level(as_gold(second, len(raw), n_levels))
    if not len(a):
        return Figure(value=None, n=0, reason="no rows")
    # Σ weights × chance table needs no table: it is the mean squared difference of independent draws.
    chance = float(a.var() + b.var() + (a.mean() - b.mean()) ** 2)
    if chance == 0:
        return Figure(value=None, n=len(a), reason="both give one and the same level to every item")
    return Figure(value=1 - float(((a - b) ** 2).mean()) / chance, n=len(a))


def krippendorff_alpha(ratings: ArrayLike, *, metric: Literal["nominal", "ordinal", "interval"] = "ordinal") -> Figure:
    """Krippendorff's α of any number of raters.

    Parameters
    ----------
    ratings : array_like, shape (n_items, n_raters)
        None or NaN where a rater did not rate an item.
    metric : {"ordinal", "nominal", "interval"}, default "ordinal"
        How differences count.

    Returns
    -------
    Figure
        Its n counts the items with two ratings or more. Undefined where there is none, or where all their ratings are the same.

    Raises
    ------
    CalibrationError
        The shape is wrong or a rating is infinite.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability, https://repository.upenn.edu/asc_papers/43.

    Examples
    --------
    >>> krippendorff_alpha([[1, 1], [2, 2], [3, None], [1, 2]], metric="nominal").value  # 1 − 5 × 2 ÷ 18
    0.4444444444444444
    """
    table = _ratings(ratings)
    table = table[np.isfinite(table).sum(axis=1) >= 2]
    n_items = len(table)
    if not n_items:
        return Figure(value=None, n=0, reason="no item has two ratings")
    present = np.isfinite(table)
    values, codes = np.unique(table[present], return_inverse=True)
    if len(values) == 1:
        return Figure(value=None, n=n_items, reason="all ratings are the same")
    counts = np.zeros((n_items, len(values)))
    np.add.at(counts, (np.nonzero(present)[0], codes), 1)
    total = counts.sum(axis=0)
    if metric == "nominal":
        distance = 1 - np.eye(len(values))
    else:
        # Ordinal distances count the ratings between two values, with half of those at either end.
        place = np.cumsum(total) - total / 2 if metric == "ordinal" else values
        distance = (place[:, np.newaxis] - place) ** 2
    pairs = counts / (counts.sum(axis=1, keepdims=True) - 1)
    # A rating is not paired with itself, but its distance to itself is 0.
    observed = float(np.einsum("ia,ib,ab->", pairs, counts, distance, optimize=True))
    expected = float(total @ distance @ total) / float(total.sum() - 1)
    return Figure(value=1 - observed / expected, n=n_items)


def human_yardstick(ratings: ArrayLike, predicted: ArrayLike) -> HumanYardstick:
    """Compare the judge with the raters, against a rater that neither saw.

    For each item with two ratings or more, each rater is held out once.

    Parameters
    ----------
    ratings : array_like, shape (n_items, n_raters)
        In level indices; None or NaN where a rater did not rate an item.
    predicted : array_like, shape (n_items,)
        The judge's level.

    Returns
    -------
    HumanYardstick

    Raises
    ------
    CalibrationError
        The shapes differ or a prediction is not finite.

    Examples
    --------
    >>> yardstick = human_yardstick([[2, 2, 3], [0, 1, 1]], [2, 1])
    >>> yardstick.human_mae.value, yardstick.judge_mae.value, yardstick.judge_nearer.value
    (0.6666666666666666, 0.3333333333333333, 0.8333333333333334)
    """
    table = _ratings(ratings)
    judge = one_dimensional(predicted, "predicted", len(table))
    humans: list[FloatArray] = []
    judges: list[FloatArray] = []
    rated = np.isfinite(table)
    shared = rated.sum(axis=1) >= 2
    for rater in range(table.shape[1]):
        rows = np.flatnonzero(rated[:, rater] & shared)
        held_out = table[rows, rater]
        humans.append(np.abs(np.nanmedian(np.delete(table[rows], rater, axis=1), axis=1) - held_out))
        judges.append(np.abs(judge[rows] - held_out))
    human, machine = np.concatenate(humans), np.concatenate(judges)
    return HumanYardstick(
        human_mae=mean_figure(human),
        judge_mae=mean_figure(machine),
        judge_nearer=mean_figure((machine < human) + 0.5 * (machine == human)),
        n_items=int(shared.sum()),
        n_raters=int((rated & shared[:, np.newaxis]).any(axis=0).sum()),
    )


def alternative_annotator_test(
    ratings: ArrayLike, predicted: ArrayLike, *, epsilon: float = 0.2, false_discovery_rate: float = 0.05
) -> AlternativeAnnotatorTest:
    """Test whether the judge may stand in for a rater.

    Each rater in turn is held out, and rater and judge are scored by their RMSE against the item's remaining raters. The judge
    wins against a rater when a one-sided t-test rejects that it is as near less often than the rater by epsilon or more, at a
    false discovery rate over raters (Benjamini & Yekutieli).

    Parameters
    ----------
    ratings : array_like, shape (n_items, n_raters)
        None or NaN where a rater did not rate an item.
    predicted : array_like, shape (n_items,)
        The judge's level.
    epsilon : float, default 0.2
        What a judge's lower cost is worth: 0.2 beside experts, 0.15 beside skilled raters, 0.1 beside crowd workers.
    false_discovery_rate : float, default 0.05

    Returns
    -------
    AlternativeAnnotatorTest
        Undefined where no rater shares 30 items or more with another.

    Raises
    ------
    CalibrationError
        The shapes differ or a prediction is not finite.

    References
    ----------
    Calderon, Reichart & Dror (2025), The alternative annotator test for LLM-as-a-judge, ACL, doi 10.18653/v1/2025.acl-long.782.

    Examples
    --------
    >>> ratings = [[0, 0, 1], [1, 1, 2], [3, 3, 4]] * 20
    >>> result = alternative_annotator_test(ratings, [0, 1, 3] * 20)
    >>> result.winning_rate.value, result.advantage.value
    (1.0, 1.0)
    """
    table = _ratings(ratings)
    judge = one_dimensional(predicted, "predicted", len(table))
    rated = np.isfinite(table)
    shared = rated.sum(axis=1) >= 2
    tested: list[tuple[int, int, float, float]] = []
    for rater in range(table.shape[1]):
        rows = np.flatnonzero(rated[:, rater] & shared)
        if len(rows) < MIN_ITEMS:
            continue
        others = np.delete(table[rows], rater, axis=1)
        human = np.nanmean((others - table[rows, rater, np.newaxis]) ** 2, axis=1)
        machine = np.nanmean((others - judge[rows, np.newaxis]) ** 2, axis=1)
        behind = (human <= machine).astype(np.float64) - (machine <= human)
        tested.append((rater, len(rows), float((machine <= human).mean()), _less_than(behind, epsilon)))
    if not tested:
        reason = f"no rater shares {MIN_ITEMS} items or more with another"
        undefined = Figure(value=None, n=0, reason=reason)
        return AlternativeAnnotatorTest(winning_rate=undefined, advantage=undefined, raters=(), epsilon=epsilon)
    won = _benjamini_yekutieli(np.array([p for *_, p in tested]), false_discovery_rate)
    raters = tuple(
        RaterAdvantage(rater=rater, n=n, advantage=advantage, p_value=p, won=bool(win))
        for (rater, n, advantage, p), win in zip(tested, won, strict=True)
    )
    return AlternativeAnnotatorTest(
        winning_rate=mean_figure(won.astype(np.float64)),
        advantage=mean_figure(np.array([rater.advantage for rater in raters])),
        raters=raters,
        epsilon=epsilon,
    )


def _ratings(ratings: ArrayLike) -> FloatArray:
    """(n_items, n_raters) with NaN for missing."""
    try:
        table = np.asarray(ratings, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CalibrationError(f"ratings must be numbers, None where missing, one row an item: {error}") from error
    if table.ndim != 2:
        raise CalibrationError(f"ratings must have shape (n_items, n_raters), not {table.shape}")
    if np.isinf(table).any():
        raise CalibrationError(f"row {int(np.argwhere(np.isinf(table))[0][0])}: a rating is infinite")
    return table


def _less_than(values: FloatArray, bound: float) -> float:
    """P-value of a one-sided t-test that the mean is below bound."""
    from scipy.special import stdtr

    spread = float(values.std(ddof=1))
    gap = float(values.mean()) - bound
    if spread == 0:
        return float(gap >= 0)
    return float(stdtr(len(values) - 1, gap / spread * np.sqrt(len(values))))


def _benjamini_yekutieli(p_values: FloatArray, rate: float) -> FloatArray:
    """Which hypotheses are rejected at the false discovery rate, whatever their dependence."""
    m = len(p_values)
    order = np.argsort(p_values)
    ranks = np.arange(1, m + 1)
    passing = np.flatnonzero(p_values[order] <= ranks / m * rate / (1 / ranks).sum())
    rejected = np.zeros(m, dtype=bool)
    if len(passing):
        rejected[order[: passing[-1] + 1]] = True
    return rejected
