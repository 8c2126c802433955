"""The arithmetic behind ``estimate_mean`` and ``compare_means``: a mean of few labels, rectified by a judge of many rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from isograde.calibration.bounded import bounded_mean_interval
from isograde.calibration.isotonic import distinct, weighted_isotonic
from isograde.calibration.resampling import grouped_folds

if TYPE_CHECKING:
    from collections.abc import Callable

    from isograde.calibration._inputs import FloatArray, IntArray
    from isograde.calibration.bounded import BoundedMethod

__all__ = ["Estimand", "MeanMethod"]

Estimand = Literal["population", "set"]
MeanMethod = Literal["prediction-powered", "label-only", "bounded", "census"]

# With fewer labelled groups than this the judge is left out: what it gains cannot be told from chance.
MIN_GROUPS = 10
# A share of the labels' variance that is rounding.
ROUNDING = 1e-18
# Cochran (Sampling Techniques, 1977, section 2.15): a normal interval needs n > 25 × skewness².
COCHRAN = 25
# So many groups off the most common level are enough however many there are; else half of the groups must be.
ENOUGH_OFF_MODE = 20
# So many groups must carry the rectified mean's variance, or a quarter of them.
ENOUGH_CARRIERS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Which rows of a judged set are labelled, and how they were drawn.

    Attributes
    ----------
    labelled : ndarray of int, shape (n,)
        Rows with gold.
    group : ndarray of int, shape (n_rows,)
        Of every row.
    weight : ndarray of float, shape (n,)
        Of the labelled rows; sums to 1.
    unsure : ndarray of float, shape (n,)
        Share of a labelled row's variance that is left: 1 − its inclusion probability for the mean of this set, else 1.
    scale : pair of float
        Its ends.
    step : float
        From one level to the next; gold nearer than half of it is alike.
    estimand : {"population", "set"}
    """

    labelled: IntArray
    group: IntArray
    weight: FloatArray
    unsure: FloatArray
    scale: tuple[float, float]
    step: float
    estimand: Estimand

    @property
    def n_rows(self) -> int:
        """Rows of the set."""
        return len(self.group)

    def labelled_groups(self) -> tuple[IntArray, IntArray]:
        """Groups with labels, and for each labelled row the place of its group among them."""
        groups, at = np.unique(self.group[self.labelled], return_inverse=True)
        return groups, at


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """A mean, and how far each labelled group pulls it from where it would lie."""

    mean: float
    variance: float
    by_group: FloatArray  # (n_groups,)
    outside: float  # the part of the variance that rows in groups without labels add


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A mean and its interval."""

    mean: float
    low: float
    high: float
    error: float
    method: MeanMethod
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """The best mean, the labels' own beside it, and what they are made of."""

    best: Limits
    label_only: Limits
    trust: float
    effective_n: float
    n_groups: int
    degrees: float
    mass: FloatArray  # (n_groups,), the groups' shares of the weight
    by_group: FloatArray  # (n_groups,), as in Pulled
    outside: float  # variance that rows in groups without labels add


def infer(
    design: Design,
    gold: FloatArray,
    predict: Callable[[IntArray], FloatArray] | None,
    *,
    confidence_level: float,
    bounded: BoundedMethod,
    n_splits: int,
    rng: np.random.Generator,
) -> Inferred:
    """Estimate a mean by the judge and the labels where Student's t holds for it, by the labels alone where not.

    ``predict`` takes positions in ``design.labelled`` to fit on and returns a calibrated level for every row; None for no judge.
    """
    groups, at = design.labelled_groups()
    mass = np.bincount(at, design.weight).astype(np.float64)
    degrees = float(1 / (mass @ mass)) - 1  # groups of unequal weight count as fewer equal ones
    plain = _pulled(design, gold, np.zeros(len(gold)), np.zeros(design.n_rows))
    regular = _labels_regular(plain, np.round(gold / design.step), at)
    label_only = _label_limits(
        design, gold, plain, degrees=degrees, confidence_level=confidence_level, bounded=None if regular else bounded
    )
    n = len(gold)
    alone = Inferred(
        best=label_only,
        label_only=label_only,
        trust=0.0,
        effective_n=float(n),
        n_groups=len(groups),
        degrees=degrees,
        mass=mass,
        by_group=plain.by_group,
        outside=0.0,
    )
    if predict is None or len(groups) < MIN_GROUPS or label_only.method == "census":
        return alone
    own, everywhere, trust = _cross_predicted(design, gold, predict, n_splits=n_splits, rng=rng)
    rectified = _pulled(design, gold, own, everywhere)
    # As if one more group had been seen, as far off as groups are from the labels' mean: a judge that erred on none of few labels
    # may err on the next.
    variance = rectified.variance + plain.variance / len(groups)
    if not (trust > 0 and variance < plain.variance and (regular or _carried(rectified))):
        return alone
    return Inferred(
        best=_t_limits(
            design,
            gold,
            rectified.mean,
            variance,
            degrees=degrees,
            confidence_level=confidence_level,
            method="prediction-powered",
        ),
        label_only=label_only,
        trust=trust,
        effective_n=n * plain.variance / variance,
        n_groups=len(groups),
        degrees=degrees,
        mass=mass,
        by_group=rectified.by_group,
        outside=rectified.outside,
    )


def calibrated_levels(score: FloatArray, score_labelled: FloatArray, gold: FloatArray) -> FloatArray:
    """Mean gold level at every score: half an isotonic fit, half a straight line that does not fall.

    The line makes do with a dozen labels, the isotonic fit bends where the judge does; nothing else is asked of them, for what
    they get wrong widens the interval and does not move the mean.
    """
    order = np.argsort(score_labelled, kind="stable")
    at, row = distinct(score_labelled[order])
    kept, means = weighted_isotonic(row, len(at), gold[order], np.ones(len(gold)), increasing=True)
    centre = score_labelled.mean()
    spread = score_labelled - centre
    squared = float(spread @ spread)
    slope = max(float(spread @ gold) / squared, 0.0) if squared > ROUNDING else 0.0
    levels: FloatArray = (np.interp(score, at[kept], means) + gold.mean() + slope * (score - centre)) / 2
    return levels


def _cross_predicted(
    design: Design, gold: FloatArray, predict: Callable[[IntArray], FloatArray], *, n_splits: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, float]:
    """λ × calibrated level of the labelled rows (n,) and of all rows (n_rows,), out of fold; and the mean λ."""
    fold = grouped_folds(design.group[design.labelled], n_splits=n_splits, rng=rng)
    levels = np.array([predict(np.flatnonzero(fold != held_out)) for held_out in range(int(fold.max()) + 1)])
    # Each fold's model is centred over all rows, so that it moves the mean only by where the labelled rows lie among them.
    levels -= levels.mean(axis=1, keepdims=True)
    trust = _trust(design, gold, levels, fold)
    return *_out_of_fold(design, levels * trust[:, np.newaxis], fold), float(trust.mean())


def _out_of_fold(design: Design, levels: FloatArray, fold: IntArray) -> tuple[FloatArray, FloatArray]:
    """Levels of the labelled rows (n,) and of all rows (n_rows,) by models that never saw the row's group."""
    everywhere = levels.mean(axis=0)
    fold_of = np.full(int(design.group.max()) + 1, -1)
    fold_of[design.group[design.labelled]] = fold
    seen = np.flatnonzero(fold_of[design.group] >= 0)
    everywhere[seen] = levels[fold_of[design.group[seen]], seen]
    return everywhere[design.labelled], everywhere


def _trust(design: Design, gold: FloatArray, levels: FloatArray, fold: IntArray) -> FloatArray:
    """λ for each fold, from the labels of the others: it minimises the variance, drawn towards 0 by what chance may gain."""
    own, everywhere = _out_of_fold(design, levels, fold)
    groups, at = design.labelled_groups()
    pull = np.sqrt(design.unsure) * design.weight
    label = np.bincount(at, pull * (gold - design.weight @ gold))
    inside, outside = _spread(design, groups, everywhere)
    judge = inside - np.bincount(at, pull * own)
    fold_of = np.empty(len(groups), dtype=np.intp)
    fold_of[at] = fold
    both, alone, squared = (
        total.sum() - np.bincount(fold_of, total, len(levels)) for total in (label * judge, label * label, judge * judge)
    )
    others = (len(levels) - 1) / len(levels)
    # A judge that says the same of everything moves by rounding alone.
    found = np.flatnonzero((squared > ROUNDING * alone) & (both < 0))
    both, alone, squared = both[found], alone[found], squared[found]
    explained = np.clip(both**2 / (squared * alone), 0, 1)
    chance = (1 - explained) / np.maximum(explained * (others * len(groups) - 2), ROUNDING)
    trust = np.zeros(len(levels))
    trust[found] = np.clip(-both / (squared + others * outside), 0, 1) * np.clip(1 - chance, 0, 1)
    return trust


def _spread(design: Design, groups: IntArray, everywhere: FloatArray) -> tuple[FloatArray, float]:
    """What drawing the rows adds to the mean's variance: the pull of each labelled group, the squared pulls of the others."""
    if design.estimand == "set":
        return np.zeros(len(groups)), 0.0
    pull = np.bincount(design.group, everywhere) / design.n_rows
    inside = pull[groups]
    return inside, max(float(pull @ pull - inside @ inside), 0.0)


def _pulled(design: Design, gold: FloatArray, own: FloatArray, everywhere: FloatArray) -> Pulled:
    """Mean of gold − own (Hájek's), and its variance by group with the G ÷ (G − 1) correction."""
    rest = gold - own
    mean = float(design.weight @ rest)
    groups, at = design.labelled_groups()
    inside, outside = _spread(design, groups, everywhere)
    pull = inside + np.bincount(at, np.sqrt(design.unsure) * design.weight * (rest - mean))
    correction = len(groups) / max(len(groups) - 1, 1)
    return Pulled(mean=mean, variance=float(pull @ pull) * correction + outside, by_group=pull, outside=outside)


def _labels_regular(plain: Pulled, level: FloatArray, at: IntArray) -> bool:
    """Whether Student's t holds for the labels alone: enough groups off the most common level, and not too skew."""
    n_groups = len(plain.by_group)
    values, counts = np.unique(level, return_counts=True)
    off_mode = len(np.unique(at[level != values[counts.argmax()]]))
    return n_groups > 1 and off_mode >= min(ENOUGH_OFF_MODE, n_groups / 2) and _not_skew(plain.by_group)


def _carried(rectified: Pulled) -> bool:
    """Whether Student's t holds for the rectified mean where it does not for the labels."""
    squared = rectified.by_group**2
    total = float(squared.sum())
    carriers = total**2 / float(squared @ squared) if total > 0 else 0.0
    return carriers >= min(ENOUGH_CARRIERS, len(squared) / 4) and _not_skew(rectified.by_group)


def _not_skew(pull: FloatArray) -> bool:
    """Cochran's rule."""
    squared = float(pull @ pull)
    return squared > 0 and COCHRAN * float((pull**3).sum()) ** 2 <= squared**3  # skewness² = n (Σ d³)² ÷ (Σ d²)³


def _label_limits(
    design: Design,
    gold: FloatArray,
    plain: Pulled,
    *,
    degrees: float,
    confidence_level: float,
    bounded: BoundedMethod | None,
) -> Limits:
    """Interval of the labels' own mean."""
    if design.estimand == "set" and len(gold) == design.n_rows:
        reason = "every row of the set is labelled"
        return Limits(mean=plain.mean, low=plain.mean, high=plain.mean, error=0.0, method="census", reason=reason)
    if bounded is None:
        return _t_limits(
            design, gold, plain.mean, plain.variance, degrees=degrees, confidence_level=confidence_level, method="label-only"
        )
    _, at = design.labelled_groups()
    values, weights, draws = gold, design.weight, None
    if bounded == "gaffke":
        draws = _independent_draws(design, gold, at, degrees=degrees, confidence_level=confidence_level)
    else:  # proven for independent draws, and those are the groups
        weights = np.bincount(at, design.weight).astype(np.float64)
        values = np.bincount(at, design.weight * gold) / weights
    low, high = bounded_mean_interval(
        values,
        low=design.scale[0],
        high=design.scale[1],
        weights=weights,
        effective_n=draws,
        confidence_level=confidence_level,
        method=bounded,
    )
    left = float(np.sqrt(design.weight @ design.unsure))
    low, high = _within(design, gold, plain.mean - left * (plain.mean - low), plain.mean + left * (high - plain.mean))
    reason = "too few labels differ from the most common one, or a few differ too much, for Student's t to hold"
    error = float(np.sqrt(plain.variance))
    return Limits(mean=plain.mean, low=low, high=high, error=error, method="bounded", reason=reason)


def _independent_draws(design: Design, gold: FloatArray, at: IntArray, *, degrees: float, confidence_level: float) -> float:
    """Korn and Graubard's effective sample size: no fewer draws than groups, no more than rows."""
    from scipy.special import stdtrit

    rows, n_groups = float(1 / (design.weight @ design.weight)), degrees + 1
    rest = gold - design.weight @ gold
    pull = np.bincount(at, design.weight * rest)
    between = float(pull @ pull) * len(pull) / max(len(pull) - 1, 1)
    within = float(design.weight @ rest**2) * rows / max(rows - 1, ROUNDING)
    if between <= 0 or degrees <= 0 or rows <= n_groups:
        return n_groups
    at_rows, at_groups = stdtrit([rows - 1, degrees], (1 + confidence_level) / 2)
    return float(np.clip(within / between * (at_rows / at_groups) ** 2, n_groups, rows))


_WHY: dict[MeanMethod, str] = {
    "prediction-powered": "the judge narrows the interval",
    "label-only": "the judge does not narrow the interval",
}


def _t_limits(
    design: Design,
    gold: FloatArray,
    mean: float,
    variance: float,
    *,
    degrees: float,
    confidence_level: float,
    method: MeanMethod,
) -> Limits:
    """Student's t interval, within the scale."""
    from scipy.special import stdtrit

    error = float(np.sqrt(variance))
    half = float(stdtrit(degrees, (1 + confidence_level) / 2)) * error
    low, high = _within(design, gold, mean - half, mean + half)
    mean, _ = _within(design, gold, mean, mean)
    return Limits(mean=mean, low=low, high=high, error=error, method=method, reason=_WHY[method])


def _within(design: Design, gold: FloatArray, low: float, high: float) -> tuple[float, float]:
    """Keep an interval on the scale, and a set's within what its labels leave open."""
    bottom, top = design.scale
    if design.estimand == "set":
        known, unknown = float(gold.sum()), design.n_rows - len(gold)
        bottom, top = (known + unknown * bottom) / design.n_rows, (known + unknown * top) / design.n_rows
    return min(max(low, bottom), top), max(min(high, top), bottom)
