"""Conformal intervals on the ordinal scale: cross-conformal (CV+), with groups as the units that are exchangeable.

**Score.** From the most probable level an interval grows, each time by its likelier neighbour; a level's score is the probability
that the interval holds before the level is added (ordinal APS: Lu, Angelopoulos & Pomerantz 2022, after Romano, Sesia & Candès
2020). The forecast is the calibrator's pool, so the set is narrow where the judge is sure and rightly so.

**Set.** Every label is scored by a forecast fitted on the other folds. A level of a new item stays where more than α (G + 1) − 1
of the G groups have a score as high as its own, each group compared by its own fold's forecast (CV+: Barber, Candès, Ramdas &
Tibshirani 2021); the interval runs from the lowest to the highest level that stays. A group counts once, shared by its labels
(Dunn, Wasserman & Ramdas 2022; Lee, Barber & Willett 2023).

**What is proven.** For an item of a new group, if groups are exchangeable and whatever the judge, the interval holds gold with
probability of at least 1 − 2α with a fold a group (up to 10 groups; Lee, Barber & Willett 2023), and at least
1 − 2α − min{2 (1 − 1/K) ÷ (n/K + 1), (1 − K/n) ÷ (K + 1)} with K folds of n labels that stand alone (Barber et al. 2021, theorem
4). In simulation it is 1 − α or more (tests/bench/conformal_coverage.py). It is coverage on average over items, not on each level
or slice. What is stored, fold forecasts rounded to thousandths on a few knots and scores in 500ths, is what is scored, so nothing
of this is lost by rounding.

References
----------
Barber, Candès, Ramdas & Tibshirani (2021), Predictive inference with the jackknife+, Ann. Statist. 49, doi 10.1214/20-AOS1965.
Romano, Sesia & Candès (2020), Classification with valid and adaptive coverage, NeurIPS 33, arXiv 2006.02544.
Lu, Angelopoulos & Pomerantz (2022), Improving trustworthiness of AI disease severity rating in medical imaging with ordinal
conformal prediction sets, MICCAI, arXiv 2207.02238.
Dunn, Wasserman & Ramdas (2022), Distribution-free prediction sets for two-layer hierarchical models, JASA, arXiv 1809.07441.
Lee, Barber & Willett (2023), Distribution-free inference with hierarchical data, arXiv 2306.06342.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Self

import numpy as np

from isograde.calibration._inputs import Sample
from isograde.calibration.pool import fit_pool, pooled_cdf
from isograde.calibration.provenance import FoldFile, IntervalsFile
from isograde.calibration.resampling import grouped_folds
from isograde.errors import CalibrationError

if TYPE_CHECKING:
    from isograde.calibration._inputs import BoolArray, FloatArray, IntArray, ScoreScale

__all__ = ["Conformal", "PredictionInterval"]

# Folds of whole groups, and the number of labels above which half as many do.
N_FOLDS = 10
MANY_LABELS = 5_000
# Half-samples of a fold's forecast; more cost time and narrow nothing.
MAX_SUBSAMPLES = 20
# A fold's forecast is drawn by this many points beside the rubric's levels, in thousandths; scores are in 500ths. All of it is
# part of the forecast that is scored, so the guarantee holds for what is stored, and a file stays small.
MAX_KNOTS = 32
THOUSANDTHS = 1_000
SCORE_STEPS = 500
# Shares of a group are rounded up to this many decimals: never against coverage.
WEIGHT_DECIMALS = 6
# Sums of shares that differ by less than this are the same.
ROUNDING = 1e-9
# Items at a time: their forecasts by every fold stay in the cache.
CHUNK = 2_048


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionInterval:
    """Where the gold level of each item lies, with a stated probability.

    Attributes
    ----------
    low, high : ndarray of float, shape (n_items,)
        Ends of the interval, in level indices.
    levels : ndarray of bool, shape (n_items, n_levels)
        The set: the levels from low to high, ends between two levels rounded outwards. Never empty unless randomized; where it is
        empty, low and high are the level that was excluded last.
    confidence_level : float
    n_groups : int
        Groups of labels behind it.
    reason : str or None
        Why the interval is the whole scale; None where the labels are enough for the level asked.
    """

    low: FloatArray
    high: FloatArray
    levels: BoolArray
    confidence_level: float
    n_groups: int
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A forecast fitted on the other folds, and the scores of this fold's labels.

    Attributes
    ----------
    knots : ndarray of float, shape (n_knots,)
    cdf : ndarray of int, shape (n_knots, n_support − 1)
        P(gold ≤ support) in thousandths.
    score, weight : ndarray, shape (n_distinct,)
        Distinct scores, ascending, in steps of 1 ÷ 500, and the groups that each stands for.
    """

    knots: FloatArray
    cdf: IntArray
    score: IntArray
    weight: FloatArray


def grown_before(masses: FloatArray, support: FloatArray) -> FloatArray:
    """Mass held by an interval, grown from the mode by the likelier neighbour, before each point is added; (n, n_support).

    What is likelier is told by the masses within a level, the nearer the more: gold that is a mean of raters takes some values
    seldom by chance. Where gold is whole, that is the point's own mass.

    >>> grown_before(np.array([[0.1, 0.2, 0.5, 0.2]]), np.arange(4.0))
    array([[0.9, 0.7, 0. , 0.5]])
    """
    n, width = masses.shape
    rows = np.arange(n)
    near = np.clip(1 - np.abs(support[:, np.newaxis] - support), 0, None)
    likely = masses if (np.diff(support) == 1).all() else masses @ near / near.sum(axis=0)
    # Beyond the scale there is nothing to grow into.
    padded = np.pad(likely, ((0, 0), (1, 1)), constant_values=-1.0)
    low = likely.argmax(axis=1)
    high = low.copy()
    held: FloatArray = masses[rows, low]
    before = np.zeros((n, width))
    for _ in range(width - 1):
        down = padded[rows, low] > padded[rows, high + 2]
        new = np.where(down, low - 1, high + 1)
        before[rows, new] = held
        held = held + masses[rows, new]
        low, high = low - down, high + ~down
    return before


class Conformal:
    """Fold forecasts and out-of-fold scores at work.

    Parameters
    ----------
    support : ndarray of float, shape (n_support,)
    n_groups : int
        Groups of labels behind the folds.
    folds : tuple of Fold
    """

    def __init__(self, support: FloatArray, n_groups: int, folds: tuple[Fold, ...]) -> None:
        self.support = support
        self.n_groups = n_groups
        self.folds = folds
        width = max((len(fold.knots) for fold in folds), default=1)
        # A fold with fewer knots ends in copies of its last.
        self._knots = np.array([np.pad(f.knots, (0, width - len(f.knots)), mode="edge") for f in folds]).reshape(-1, width)
        tables = [np.pad(f.cdf, ((0, width - len(f.cdf)), (0, 0)), mode="edge") / THOUSANDTHS for f in folds]
        self._cdf = np.array(tables).reshape(len(folds), width, len(support) - 1)
        counts = [np.bincount(f.score, f.weight, SCORE_STEPS + 2) for f in folds]
        # Groups whose score is at least this; one more column, of nothing, for «more than the highest».
        self._at_least = np.array([count[::-1].cumsum()[::-1] for count in counts]).reshape(-1, SCORE_STEPS + 2)

    @classmethod
    def fit(cls, sample: Sample, support: FloatArray, scale: ScoreScale, n_subsamples: int, rng: np.random.Generator) -> Self:
        """Fit a forecast a fold and score the fold by it; none where there is one group only."""
        if sample.n_groups < 2:
            return cls(support, sample.n_groups, ())
        fold = folds_of(sample, rng)
        parts = [
            scored_fold(fit_forecast(sample, fold != k, support, scale, n_subsamples, rng), sample, fold == k, support)
            for k in range(int(fold.max()) + 1)
        ]
        return cls(support, sample.n_groups, tuple(parts))

    @classmethod
    def from_file(cls, file: IntervalsFile, support: FloatArray) -> Self:
        """Read what ``to_file`` wrote."""
        folds = [
            Fold(
                knots=np.asarray(fold.knots),
                cdf=np.asarray(fold.cdf, dtype=np.intp).reshape(len(fold.knots), len(support) - 1),
                score=np.asarray(fold.score, dtype=np.intp),
                weight=np.asarray(fold.weight),
            )
            for fold in file.folds
        ]
        return cls(support, file.n_groups, tuple(folds))

    def to_file(self) -> IntervalsFile:
        """Write as part of a calibrator's file."""
        folds = [
            FoldFile(
                knots=tuple(fold.knots.tolist()),
                cdf=tuple(tuple(row) for row in fold.cdf.tolist()),
                score=tuple(fold.score.tolist()),
                weight=tuple(fold.weight.tolist()),
            )
            for fold in self.folds
        ]
        return IntervalsFile(n_groups=self.n_groups, folds=tuple(folds))

    def predict(
        self, score: FloatArray, n_levels: int, confidence_level: float, uniform: FloatArray | None
    ) -> PredictionInterval:
        """Intervals of items (n_items,); ``uniform`` (n_items,) breaks ties at random, None keeps them in."""
        if not 0 < confidence_level < 1:
            raise CalibrationError(f"confidence_level must lie between 0 and 1, not {confidence_level:g}")
        most_left_out = (1 - confidence_level) * (self.n_groups + 1)
        low, high = np.empty(len(score)), np.empty(len(score))
        empty = np.zeros(len(score), dtype=bool)
        for start in range(0, len(score), CHUNK):
            rows = slice(start, start + CHUNK)
            standing = self._standing(score[rows], None if uniform is None else uniform[rows])
            kept = standing > most_left_out + ROUNDING
            empty[rows] = ~kept.any(axis=1)
            kept[np.arange(len(kept)), standing.argmax(axis=1)] |= empty[rows]
            low[rows] = self.support[kept.argmax(axis=1)]
            high[rows] = self.support[len(self.support) - 1 - kept[:, ::-1].argmax(axis=1)]
        level = np.arange(n_levels)
        levels = (level >= np.floor(low)[:, np.newaxis]) & (level <= np.ceil(high)[:, np.newaxis]) & ~empty[:, np.newaxis]
        return PredictionInterval(
            low=low,
            high=high,
            levels=levels,
            confidence_level=confidence_level,
            n_groups=self.n_groups,
            reason=None if uniform is not None else too_few(self.n_groups, confidence_level),
        )

    def _standing(self, score: FloatArray, uniform: FloatArray | None) -> FloatArray:
        """(G + 1) × the conformal p-value of every support point, shape (n_items, n_support)."""
        if not self.folds:
            return np.ones((len(score), len(self.support))) * (1 if uniform is None else uniform[:, np.newaxis])
        width = len(self.support)
        cdf = self.forecast(score).reshape(len(score) * len(self.folds), width - 1)
        own = scores_of(cdf, self.support).reshape(len(score), len(self.folds), width)
        fold = np.arange(len(self.folds))[:, np.newaxis]
        at_least: FloatArray = self._at_least[fold, own].sum(axis=1)
        if uniform is None:
            return at_least + 1
        above: FloatArray = self._at_least[fold, own + 1].sum(axis=1)
        return above + uniform[:, np.newaxis] * (at_least - above + 1)

    def forecast(self, score: FloatArray) -> FloatArray:
        """Cumulative probabilities by every fold, shape (n_items, n_folds, n_support − 1)."""
        at = score[:, np.newaxis]
        last = self._knots.shape[1] - 1
        left = np.clip((self._knots <= at[:, :, np.newaxis]).sum(axis=2) - 1, 0, max(last - 1, 0))
        fold = np.arange(len(self.folds))
        right = np.minimum(left + 1, last)
        start, width = self._knots[fold, left], self._knots[fold, right] - self._knots[fold, left]
        # Between copies of the last knot there is nowhere to go.
        step = np.clip((at - start) / np.where(width > 0, width, np.inf), 0, 1)[:, :, np.newaxis]
        low: FloatArray = self._cdf[fold, left]
        moved: FloatArray = low + step * (self._cdf[fold, right] - low)
        return moved


def too_few(n_groups: int, confidence_level: float) -> str | None:
    """Say that no interval short of the whole scale can hold with this probability."""
    needed = ceil(1 / (1 - confidence_level) - 1 - ROUNDING)
    if n_groups >= needed:
        return None
    groups = "1 group of labels is" if n_groups == 1 else f"{n_groups} groups of labels are"
    return (
        f"the interval is the whole scale: {groups} too few to bound gold at {100 * confidence_level:.4g} %, which takes {needed}"
    )


def folds_of(sample: Sample, rng: np.random.Generator) -> IntArray:
    """Assign the labels' groups to folds."""
    return grouped_folds(sample.group, n_splits=N_FOLDS if len(sample.score) <= MANY_LABELS else N_FOLDS // 2, rng=rng)


def fit_forecast(
    sample: Sample, rows: BoolArray, support: FloatArray, scale: ScoreScale, n_subsamples: int, rng: np.random.Generator
) -> tuple[FloatArray, IntArray]:
    """Fit the pool on some labels and draw it by a few knots; knots and cumulative probabilities in thousandths."""
    code = np.unique(sample.group[rows], return_inverse=True)[1]
    score = sample.score[rows]
    part = Sample(score=score, gold=sample.gold[rows], weight=sample.weight[rows], group=code, n_groups=int(code.max()) + 1)
    pool = fit_pool(part, support, scale.level(score), min(n_subsamples, MAX_SUBSAMPLES), rng)
    drawn = np.linspace(0, len(pool.knots) - 1, min(MAX_KNOTS, len(pool.knots))).round().astype(np.intp)
    # The raw forecast bends at the levels.
    knots = np.unique([float(f"{knot:.6g}") for knot in [*pool.knots[drawn], *scale.scores_of_levels()]])
    cdf = pooled_cdf(pool, knots, scale.level(knots), support)
    return knots, np.rint(THOUSANDTHS * cdf).astype(np.intp)


def scored_fold(forecast: tuple[FloatArray, IntArray], sample: Sample, rows: BoolArray, support: FloatArray) -> Fold:
    """Score the labels that a forecast was not fitted on; a group counts once, shared by its labels."""
    knots, cdf = forecast
    empty = Fold(knots=knots, cdf=cdf, score=np.empty(0, dtype=np.intp), weight=np.empty(0))
    # The very code that predicts makes the scores, so that ties are ties.
    own = scores_of(Conformal(support, 0, (empty,)).forecast(sample.score[rows])[:, 0], support)
    label = own[np.arange(len(own)), np.searchsorted(support, sample.gold[rows])]
    share = (sample.weight / np.bincount(sample.group, sample.weight)[sample.group])[rows]
    weight = np.bincount(label, share, SCORE_STEPS + 1)
    score = np.flatnonzero(weight)
    unit = 10.0**WEIGHT_DECIMALS
    return Fold(knots=knots, cdf=cdf, score=score, weight=np.ceil(weight[score] * unit - ROUNDING * unit) / unit)


def scores_of(cdf: FloatArray, support: FloatArray) -> IntArray:
    """Conformity scores of every support point in steps of 1 ÷ 500, from cumulative probabilities (n, n_support − 1)."""
    masses = np.diff(np.pad(cdf, ((0, 0), (1, 0))), axis=1, append=1.0)
    score: IntArray = np.clip(np.rint(SCORE_STEPS * grown_before(masses, support)), 0, SCORE_STEPS).astype(np.intp)
    return score
