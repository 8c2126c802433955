"""Whether one system's answers are better than another's, from a judge of both and few gold labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration._inputs import ScoreScale, as_rng, group_codes
from isograde.calibration.estimation import MeanInterval, gold_labels, interval_of
from isograde.calibration.rectified import Design, Inferred, MeanMethod, calibrated_levels, infer
from isograde.errors import CalibrationError, StatisticsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from isograde.calibration._inputs import RNG, FloatArray, Groups, IntArray
    from isograde.calibration.bounded import BoundedMethod

__all__ = ["MeanComparison", "compare_judged", "compare_means"]

# With fewer labelled groups the p-value is that of sign flips.
FEW_GROUPS = 20
# Groups up to which every pattern of signs is counted: 2¹³ of them.
MOST_ENUMERATED = 13
N_FLIPS = 9_999
# Flipped sums that differ by less, as a share, are the same sum.
SAME_SUM = 1e-9
POWER = 0.8
# A judge's scores have no steps but rounding.
NO_STEP = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanComparison:
    """How much higher B's mean is than A's, in scores: 1 is the whole scale.

    Attributes
    ----------
    difference, low, high : float
        B − A and its interval.
    confidence_level : float
    p_value : float
        Two-sided, of no difference: Student's t, or sign flips of whole groups where there are fewer than 20 or t does not hold.
    detectable : float
        The difference that had 80 % power to be shown, at this spread and this number of labels.
    debiased : bool
        Whether gold labels of both systems stand behind it; else it is what the judge says, bias and all.
    method : {"prediction-powered", "label-only", "bounded", "census"}
        As in :class:`MeanEstimate`.
    reason : str
    label_only : MeanInterval or None
        The labelled pairs alone; None where there are no labels.
    judge_only : MeanInterval or None
        The raw judge's difference over all pairs; None for plain scores without a range.
    n_pairs, n_labelled, n_groups : int
        Pairs, pairs with gold on both sides, and groups that the figures rest on.
    trust, effective_n : float
        As in :class:`MeanEstimate`.
    """

    difference: float
    low: float
    high: float
    confidence_level: float
    p_value: float
    detectable: float
    debiased: bool
    method: MeanMethod
    reason: str
    label_only: MeanInterval | None
    judge_only: MeanInterval | None
    n_pairs: int
    n_labelled: int
    n_groups: int
    trust: float
    effective_n: float


def compare_means(
    probabilities_a: ArrayLike,
    probabilities_b: ArrayLike,
    gold_a: Sequence[float | None] | ArrayLike,
    gold_b: Sequence[float | None] | ArrayLike,
    *,
    groups: Groups | None = None,
    n_levels: int | None = None,
    score_range: tuple[float, float] | None = None,
    confidence_level: float = 0.95,
    bounded: BoundedMethod = "gaffke",
    n_splits: int = 10,
    rng: RNG = None,
) -> MeanComparison:
    """Estimate B's mean minus A's on the population that the pairs were drawn from, free of the judge's bias.

    The difference of a pair's gold is rectified by the difference of its calibrated levels, as in :func:`estimate_mean`; one
    calibrator is fitted to the labels of both systems, since one judge graded both. What is wrong with that (a judge that favours
    one system) costs width and not truth. Only pairs with gold on both sides count as labelled.

    Parameters
    ----------
    probabilities_a, probabilities_b : array_like, shape (n_pairs, n_levels) or (n_pairs,)
        What one judge says of both answers to the same input.
    gold_a, gold_b : sequence of float or None, length n_pairs
        In level indices; None (or NaN) where unlabelled.
    groups : sequence, shape (n_pairs,), optional
        Pairs that share a question.
    n_levels, score_range
        As in :class:`~isograde.calibration.Calibrator`.
    confidence_level, bounded, n_splits, rng
        As in :func:`estimate_mean`; rng draws the sign flips, too.

    Returns
    -------
    MeanComparison

    Raises
    ------
    CalibrationError
        The inputs do not fit together; the message names the row.
    StatisticsError
        No pair has gold on both sides.

    References
    ----------
    Those of :func:`estimate_mean`; Fisher (1935), The design of experiments, section 21 (sign flips); Winkler et al. (2014),
    Permutation inference for the general linear model, NeuroImage 92, doi 10.1016/j.neuroimage.2014.01.060 (whole groups).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> quality = rng.integers(0, 4, 1000)
    >>> a, b = quality + rng.normal(size=1000), quality + 1 + rng.normal(size=1000)  # B is a level better
    >>> labels = [float(level) if row < 80 else None for row, level in enumerate(quality)]
    >>> found = compare_means(a, b, labels, [None if level is None else level + 1 for level in labels])
    >>> found.low <= 0.25 <= found.high, found.p_value < 0.001
    (True, True)
    """
    scale, score_a, score_b = _both(probabilities_a, probabilities_b, n_levels=n_levels, score_range=score_range)
    n, top = len(score_a), scale.n_levels - 1
    level_a, rows_a = gold_labels(gold_a, n, scale.n_levels)
    level_b, rows_b = gold_labels(gold_b, n, scale.n_levels)
    labelled, at_a, at_b = np.intersect1d(rows_a, rows_b, assume_unique=True, return_indices=True)
    if not len(labelled):
        raise StatisticsError("no pair has gold labels on both sides, so there is no difference to estimate")
    level_a, level_b = level_a[at_a], level_b[at_b]
    both, own_a, own_b = np.concatenate([score_a, score_b]), score_a[labelled], score_b[labelled]

    def predict(train: IntArray) -> FloatArray:
        levels = calibrated_levels(
            both, np.concatenate([own_a[train], own_b[train]]), np.concatenate([level_a[train], level_b[train]])
        )
        moved: FloatArray = (levels[n:] - levels[:n]) / top
        return moved

    code = group_codes(groups, n)
    generator = as_rng(rng)
    design = _design(code, labelled, step=1 / top)
    found = infer(
        design,
        (level_b - level_a) / top,
        predict,
        confidence_level=confidence_level,
        bounded=bounded,
        n_splits=n_splits,
        rng=generator,
    )
    judged = _judged(score_a, score_b, scale, code, confidence_level=confidence_level, bounded=bounded, rng=generator)
    judge_only = None if judged is None else interval_of(judged.best)
    return _comparison(design, found, judge_only=judge_only, debiased=True, confidence_level=confidence_level, rng=generator)


def compare_judged(
    probabilities_a: ArrayLike,
    probabilities_b: ArrayLike,
    *,
    groups: Groups | None = None,
    n_levels: int | None = None,
    score_range: tuple[float, float] | None = None,
    confidence_level: float = 0.95,
    bounded: BoundedMethod = "gaffke",
    rng: RNG = None,
) -> MeanComparison:
    """Compare what the judge says of both systems, without gold: a judge that favours one of them stays unseen.

    Parameters
    ----------
    probabilities_a, probabilities_b, groups, n_levels, score_range, confidence_level, bounded, rng
        As in :func:`compare_means`.

    Returns
    -------
    MeanComparison
        With ``debiased`` False.

    Raises
    ------
    CalibrationError
        The inputs do not fit together, or plain scores come without a range.
    StatisticsError
        There are no pairs.

    Examples
    --------
    >>> found = compare_judged([0.2, 0.4, 0.6, 0.5], [0.4, 0.5, 0.6, 0.9], score_range=(0, 1))
    >>> found.debiased, round(found.difference, 3), found.p_value  # three pairs differ, all one way: 2 ÷ 2³
    (False, 0.175, 0.25)
    """
    scale, score_a, score_b = _both(probabilities_a, probabilities_b, n_levels=n_levels, score_range=score_range)
    if not len(score_a):
        raise StatisticsError("there are no pairs to compare")
    code = group_codes(groups, len(score_a))
    generator = as_rng(rng)
    found = _judged(score_a, score_b, scale, code, confidence_level=confidence_level, bounded=bounded, rng=generator)
    if found is None:
        raise CalibrationError(
            "plain scores have no unit without score_range; give the scores of the lowest and the highest level"
        )
    design = _design(code, np.arange(len(score_a)), step=NO_STEP)
    return _comparison(
        design, found, judge_only=interval_of(found.best), debiased=False, confidence_level=confidence_level, rng=generator
    )


def _both(
    probabilities_a: ArrayLike, probabilities_b: ArrayLike, *, n_levels: int | None, score_range: tuple[float, float] | None
) -> tuple[ScoreScale, FloatArray, FloatArray]:
    """Scores of both systems, on one scale."""
    scale, score_a = ScoreScale.of(probabilities_a, n_levels=n_levels, score_range=score_range)
    other, score_b = ScoreScale.of(probabilities_b, n_levels=n_levels, score_range=score_range)
    if scale.n_levels < 2:
        raise CalibrationError("a scale of one level has nothing to compare; set n_levels")
    if other != scale or len(score_a) != len(score_b):
        raise CalibrationError(
            f"the systems' judgements differ in form ({len(score_a)} rows of {scale.n_levels} levels, {len(score_b)} of "
            f"{other.n_levels}); give one row a pair to both"
        )
    return scale, score_a, score_b


def _design(code: IntArray, labelled: IntArray, *, step: float) -> Design:
    """Labels drawn evenly from a population of pairs."""
    n = len(labelled)
    return Design(
        labelled=labelled,
        group=code,
        weight=np.full(n, 1 / n),
        unsure=np.ones(n),
        scale=(-1.0, 1.0),
        step=step,
        estimand="population",
    )


def _judged(
    score_a: FloatArray,
    score_b: FloatArray,
    scale: ScoreScale,
    code: IntArray,
    *,
    confidence_level: float,
    bounded: BoundedMethod,
    rng: np.random.Generator,
) -> Inferred | None:
    """Infer the raw judge's mean difference, in scores; None where nobody said what scores stand for."""
    level_a, level_b = scale.level(score_a), scale.level(score_b)
    if level_a is None or level_b is None:
        return None
    return infer(
        _design(code, np.arange(len(code)), step=NO_STEP),
        (level_b - level_a) / (scale.n_levels - 1),
        None,
        confidence_level=confidence_level,
        bounded=bounded,
        n_splits=2,
        rng=rng,
    )


def _comparison(
    design: Design,
    found: Inferred,
    *,
    judge_only: MeanInterval | None,
    debiased: bool,
    confidence_level: float,
    rng: np.random.Generator,
) -> MeanComparison:
    """Put a comparison together."""
    from scipy.special import stdtr, stdtrit

    best = found.best
    if found.n_groups < FEW_GROUPS or best.method == "bounded":
        p_value = _flipped(found, rng)
    else:
        p_value = 2 * float(stdtr(found.degrees, -abs(best.mean) / best.error))
    at_error, at_power = stdtrit(max(found.degrees, 1.0), [(1 + confidence_level) / 2, POWER])
    return MeanComparison(
        difference=best.mean,
        low=best.low,
        high=best.high,
        confidence_level=confidence_level,
        p_value=p_value,
        detectable=min(1.0, (best.high - best.low) / 2 * float(1 + at_power / at_error)),
        debiased=debiased,
        method=best.method,
        reason=best.reason,
        label_only=interval_of(found.label_only) if debiased else None,
        judge_only=judge_only,
        n_pairs=design.n_rows,
        n_labelled=len(design.labelled),
        n_groups=found.n_groups,
        trust=found.trust,
        effective_n=found.effective_n,
    )


def _flipped(found: Inferred, rng: np.random.Generator) -> float:
    """Two-sided p-value of no difference: how often the groups' shares of it, with random signs, sum to as much."""
    share = found.by_group + found.best.mean * found.mass
    share = share[np.abs(share) > 0]
    observed = abs(float(share.sum())) * (1 - SAME_SUM)
    if len(share) <= MOST_ENUMERATED:
        signs = 1.0 - 2.0 * ((np.arange(2 ** len(share))[:, np.newaxis] >> np.arange(len(share))) & 1)
        return float((_sums(signs, share, found.outside, rng) >= observed).mean())
    signs = 2.0 * rng.integers(0, 2, size=(N_FLIPS, len(share))) - 1.0
    return (1 + int((_sums(signs, share, found.outside, rng) >= observed).sum())) / (N_FLIPS + 1)


def _sums(signs: NDArray[np.floating], share: FloatArray, outside: float, rng: np.random.Generator) -> FloatArray:
    """Absolute flipped sums; what drawing the pairs without labels adds to the spread is added as normal noise."""
    sums = signs @ share
    if outside > 0:
        sums = sums + np.sqrt(outside) * rng.normal(size=len(sums))
    absolute: FloatArray = np.abs(sums)
    return absolute
