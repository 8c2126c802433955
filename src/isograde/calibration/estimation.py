"""Mean level and pass rate of a large judged set from few gold labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration._inputs import ScoreScale, as_rng, group_codes
from isograde.calibration.rectified import Design, Estimand, Inferred, Limits, MeanMethod, calibrated_levels, infer
from isograde.errors import CalibrationError, StatisticsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import RNG, BoolArray, FloatArray, Groups, IntArray
    from isograde.calibration.bounded import BoundedMethod

__all__ = ["MeanEstimate", "MeanInterval", "estimate_mean", "estimate_pass_rate"]

# Gold this little under the pass level passes: fractional gold, such as thirds, is not exact in binary.
SAME_LEVEL = 1e-9
# Share of the scale from which an answer passes, unless a rubric says otherwise.
PASS_AT = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanInterval:
    """A mean and its two-sided interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanEstimate:
    """A mean of a judged set, beside what the labels and the judge say alone.

    Attributes
    ----------
    mean, low, high : float
        The estimate and its interval: in level indices, or a share for a pass rate.
    confidence_level : float
    estimand : {"population", "set"}
        What it is the mean of: the population that the judged rows were drawn from, or these very rows.
    method : {"prediction-powered", "label-only", "bounded", "census"}
        How it was come by; "bounded" and "census" use the labels alone.
    reason : str
        Why so, for people.
    label_only : MeanInterval
        The labels alone; the estimate itself unless that is prediction-powered.
    judge_mean : float or None
        The raw judge alone, with the judge's bias in it; None for plain scores without a range.
    rogan_gladen : MeanInterval or None
        For a pass rate: the textbook correction of the judge's rate by its sensitivity and specificity. It takes both as the same
        for every item and its interval as normal, so it is shown for comparison only; None where it is not defined.
    n_items, n_labelled, n_groups : int
        Rows of the set, labelled ones, and groups with labels.
    trust : float
        λ: 0 ignores the judge, 1 takes the calibrated levels as they are.
    effective_n : float
        Labels that would have given this interval without a judge.
    standard_error : float
        Of the estimate; where the interval is bounded it is not what the interval is made of.
    """

    mean: float
    low: float
    high: float
    confidence_level: float
    estimand: Estimand
    method: MeanMethod
    reason: str
    label_only: MeanInterval
    judge_mean: float | None
    rogan_gladen: MeanInterval | None = None
    n_items: int
    n_labelled: int
    n_groups: int
    trust: float
    effective_n: float
    standard_error: float


def estimate_mean(
    probabilities: ArrayLike,
    gold: Sequence[float | None] | ArrayLike,
    *,
    groups: Groups | None = None,
    inclusion_probabilities: ArrayLike | None = None,
    estimand: Estimand = "population",
    n_levels: int | None = None,
    score_range: tuple[float, float] | None = None,
    confidence_level: float = 0.95,
    bounded: BoundedMethod = "gaffke",
    n_splits: int = 10,
    rng: RNG = None,
) -> MeanEstimate:
    """Estimate the mean gold level of a judged set of which few rows have gold labels.

    The labels' mean is corrected by how far the labelled rows are, in the judge's eyes, from all rows: the mean of y − λf over
    the labelled rows, plus λ times the mean of f over all (prediction-powered inference). f is the judge's level calibrated to
    the labels, out of fold; λ minimises the variance, out of fold too, and is drawn towards 0 by what chance may gain. A judge
    that is biased, compressed or worthless leaves the interval as wide as the labels' own; it does not make it wrong.

    Intervals are Student's t on group totals. One more group, as far off as groups are from the labels' mean, is thrown in, so
    that a judge which erred on none of few labels is not taken to err never. Where too few groups differ from the most common
    level (fewer than 20 and than half), or where they are too skew (Cochran's n > 25 × skewness²), t does not hold: the interval
    is then a bounded-mean interval of the labels alone (:func:`bounded_mean_interval`, of as many draws as the groups are worth
    by Korn and Graubard), unless the rectified labels are regular where the labels are not. With fewer than 10 labelled groups
    the judge is left out.

    Assumptions: the labelled groups are a random draw (with the probabilities given, if any) from the judged ones, labels of
    different groups are independent, and gold is what is wanted to know: the rater's errors are not removed.

    Parameters
    ----------
    probabilities : array_like, shape (n_items, n_levels) or (n_items,)
        The judge's probability of each level, or plain scores that rise with quality, for every row, labelled or not.
    gold : sequence of float or None, length n_items
        In level indices 0 … n_levels − 1; None (or NaN) where a row is unlabelled.
    groups : sequence, shape (n_items,), optional
        Items that share a question. None in it is a group of its own.
    inclusion_probabilities : array_like, shape (n_items,), optional
        With what probability each row's label was drawn, in (0, 1]; read for labelled rows only. Labels are then weighted by its
        inverse (Hájek's ratio estimator). Without it every row had the same.
    estimand : {"population", "set"}, default "population"
        The mean of what the rows were drawn from, or of these rows alone: then labelled rows are known, and the interval shrinks
        as their share grows (finite-population correction).
    n_levels, score_range
        As in :class:`~isograde.calibration.Calibrator`.
    confidence_level : float, default 0.95
    bounded : {"gaffke", "betting"}, default "gaffke"
        The interval where t does not hold; "betting" is proven and about a third wider.
    n_splits : int, default 10
        Folds, split by group.
    rng : numpy.random.Generator or int, optional
        Draws the folds. None is a fixed stream.

    Returns
    -------
    MeanEstimate

    Raises
    ------
    CalibrationError
        The inputs do not fit together; the message names the row.
    StatisticsError
        No row has a gold label.

    References
    ----------
    Angelopoulos, Duchi & Zrnic (2023), PPI++: efficient prediction-powered inference, arXiv 2311.01453; Zrnic & Candès (2024),
    Cross-prediction-powered inference, PNAS 121, doi 10.1073/pnas.2322083121; Cochran (1977), Sampling techniques, 3rd ed.,
    sections 2.15 and 7; Särndal, Swensson & Wretman (1992), Model assisted survey sampling, section 5.7 (Hájek's estimator);
    Korn & Graubard (1998), Confidence intervals for proportions …, Survey Methodology 24 (effective sample size of groups);
    Carter, Schnepel & Steigerwald (2017), Asymptotic behavior of a t-test robust to cluster heterogeneity, Rev. Econ. Stat. 99,
    doi 10.1162/REST_a_00639 (degrees of freedom).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> quality = rng.integers(0, 5, 2000)  # gold, were it known
    >>> score = (quality + rng.normal(size=2000)) / 4
    >>> gold = [float(level) if row < 60 else None for row, level in enumerate(quality)]
    >>> found = estimate_mean(score, gold)
    >>> found.method, bool(found.low < quality.mean() < found.high), found.effective_n > 100
    ('prediction-powered', True, True)
    """
    scale, score = ScoreScale.of(probabilities, n_levels=n_levels, score_range=score_range)
    level, labelled = gold_labels(gold, len(score), scale.n_levels)
    design = _design(score, labelled, groups, inclusion_probabilities, estimand, top=scale.n_levels - 1.0)
    found = _infer(design, level, score, confidence_level=confidence_level, bounded=bounded, n_splits=n_splits, rng=rng)
    raw = scale.level(score)
    return _estimate(design, found, confidence_level, judge_mean=None if raw is None else float(raw.mean()))


def estimate_pass_rate(
    probabilities: ArrayLike,
    gold: Sequence[float | None] | ArrayLike,
    *,
    pass_level: float | None = None,
    groups: Groups | None = None,
    inclusion_probabilities: ArrayLike | None = None,
    estimand: Estimand = "population",
    n_levels: int | None = None,
    score_range: tuple[float, float] | None = None,
    confidence_level: float = 0.95,
    bounded: BoundedMethod = "gaffke",
    n_splits: int = 10,
    rng: RNG = None,
) -> MeanEstimate:
    """Estimate the share of a judged set that people would pass; as :func:`estimate_mean`, on whether gold reaches a level.

    The bounded interval is Clopper–Pearson's where each row is a group of its own.

    Parameters
    ----------
    probabilities, gold, groups, inclusion_probabilities, estimand, n_levels, score_range
        As in :func:`estimate_mean`.
    pass_level : float, optional
        Level index from which gold passes; three quarters of the scale unless given.
    confidence_level, bounded, n_splits, rng
        As in :func:`estimate_mean`.

    Returns
    -------
    MeanEstimate
        In shares; with ``rogan_gladen``.

    Raises
    ------
    CalibrationError, StatisticsError
        As in :func:`estimate_mean`.

    References
    ----------
    Those of :func:`estimate_mean`; Rogan & Gladen (1978), Estimating prevalence from the results of a screening test, Am. J.
    Epidemiology 107, doi 10.1093/oxfordjournals.aje.a112510.

    Examples
    --------
    >>> score = np.tile([0.1, 0.9], 200)
    >>> gold = [4.0 * (row % 2) if row < 40 else None for row in range(400)]
    >>> found = estimate_pass_rate(score, gold, score_range=(0, 1))
    >>> round(found.mean, 2), found.judge_mean, found.rogan_gladen.mean
    (0.5, 0.5, 0.5)
    """
    scale, score = ScoreScale.of(probabilities, n_levels=n_levels, score_range=score_range)
    level, labelled = gold_labels(gold, len(score), scale.n_levels)
    at_least = (PASS_AT * (scale.n_levels - 1) if pass_level is None else pass_level) - SAME_LEVEL
    passed = (level >= at_least).astype(np.float64)
    design = _design(score, labelled, groups, inclusion_probabilities, estimand, top=1.0)
    found = _infer(design, passed, score, confidence_level=confidence_level, bounded=bounded, n_splits=n_splits, rng=rng)
    raw = scale.level(score)
    if raw is None:
        return _estimate(design, found, confidence_level, judge_mean=None)
    said = raw >= at_least
    textbook = _rogan_gladen(said, said[labelled], passed, confidence_level)
    return _estimate(design, found, confidence_level, judge_mean=float(said.mean()), rogan_gladen=textbook)


def gold_labels(gold: Sequence[float | None] | ArrayLike, n: int, n_levels: int) -> tuple[FloatArray, IntArray]:
    """Gold of the labelled rows, and which rows they are."""
    if n_levels < 2:
        raise CalibrationError("a scale of one level has no mean to estimate; set n_levels")
    try:
        every = np.asarray(gold, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError) as error:
        raise CalibrationError(f"gold must be numbers, or None where a row is unlabelled: {error}") from error
    if every.shape != (n,):
        raise CalibrationError(
            f"gold has shape {every.shape} and the scores have {n} rows; give one an item, None where unlabelled"
        )
    labelled = np.flatnonzero(~np.isnan(every))
    if not len(labelled):
        raise StatisticsError("no row has a gold label, so there is nothing to estimate from")
    level = every[labelled]
    off = ~((level >= 0) & (level <= n_levels - 1))
    if off.any():
        row = int(labelled[np.flatnonzero(off)[0]])
        raise CalibrationError(
            f"row {row}: gold {every[row]:g} is off the scale 0 … {n_levels - 1}; convert gold to level indices"
        )
    return level, labelled


def _design(
    score: FloatArray, labelled: IntArray, groups: Groups | None, inclusion: ArrayLike | None, estimand: Estimand, *, top: float
) -> Design:
    """How the labels were drawn."""
    n, n_rows = len(labelled), len(score)
    drawn = np.full(n, n / n_rows)
    if inclusion is not None:
        drawn = _inclusion(inclusion, n_rows, labelled)
        if estimand == "set" and n < n_rows and (drawn == 1).all():
            raise CalibrationError(
                "every labelled row has inclusion probability 1, yet rows of the set are unlabelled; correct the probabilities"
            )
    weight = 1 / drawn
    return Design(
        labelled=labelled,
        group=group_codes(groups, n_rows),
        weight=weight / weight.sum(),
        unsure=1 - drawn if estimand == "set" else np.ones(n),
        scale=(0.0, top),
        step=1.0,
        estimand=estimand,
    )


def _inclusion(inclusion: ArrayLike, n_rows: int, labelled: IntArray) -> FloatArray:
    """Inclusion probabilities of the labelled rows."""
    array = np.asarray(inclusion, dtype=np.float64)
    if array.shape != (n_rows,):
        raise CalibrationError(f"inclusion_probabilities have shape {array.shape} and the scores have {n_rows} rows")
    drawn: FloatArray = array[labelled]
    off = ~((drawn > 0) & (drawn <= 1))
    if off.any():
        row = int(labelled[np.flatnonzero(off)[0]])
        raise CalibrationError(f"row {row}: inclusion probability {array[row]:g} is not in (0, 1], and the row is labelled")
    return drawn


def _infer(
    design: Design,
    gold: FloatArray,
    score: FloatArray,
    *,
    confidence_level: float,
    bounded: BoundedMethod,
    n_splits: int,
    rng: RNG,
) -> Inferred:
    """Infer a mean with the judge's scores as the help."""
    own = score[design.labelled]
    return infer(
        design,
        gold,
        lambda train: calibrated_levels(score, own[train], gold[train]),
        confidence_level=confidence_level,
        bounded=bounded,
        n_splits=n_splits,
        rng=as_rng(rng),
    )


def _estimate(
    design: Design,
    found: Inferred,
    confidence_level: float,
    *,
    judge_mean: float | None,
    rogan_gladen: MeanInterval | None = None,
) -> MeanEstimate:
    """Put an estimate together."""
    best = found.best
    return MeanEstimate(
        mean=best.mean,
        low=best.low,
        high=best.high,
        confidence_level=confidence_level,
        estimand=design.estimand,
        method=best.method,
        reason=best.reason,
        label_only=interval_of(found.label_only),
        judge_mean=judge_mean,
        rogan_gladen=rogan_gladen,
        n_items=design.n_rows,
        n_labelled=len(design.labelled),
        n_groups=found.n_groups,
        trust=found.trust,
        effective_n=found.effective_n,
        standard_error=best.error,
    )


def interval_of(limits: Limits) -> MeanInterval:
    """Keep only what is shown of a comparison figure."""
    return MeanInterval(mean=limits.mean, low=limits.low, high=limits.high)


def _rogan_gladen(said: BoolArray, said_labelled: BoolArray, passed: FloatArray, confidence_level: float) -> MeanInterval | None:
    """Rate that the judge's rate stands for, given its sensitivity and specificity on the labels; delta-method interval."""
    from scipy.special import ndtri

    n_pass, n_fail = passed.sum(), (1 - passed).sum()
    if not (n_pass and n_fail):
        return None
    rate = said.mean()
    sensitivity, specificity = (said_labelled * passed).sum() / n_pass, (~said_labelled * (1 - passed)).sum() / n_fail
    informed = sensitivity + specificity - 1
    if informed <= 0:
        return None
    mean = float(np.clip((rate + specificity - 1) / informed, 0, 1))
    spread = (
        rate * (1 - rate) / len(said)
        + mean**2 * sensitivity * (1 - sensitivity) / n_pass
        + (1 - mean) ** 2 * specificity * (1 - specificity) / n_fail
    ) / informed**2
    half = float(ndtri((1 + confidence_level) / 2) * np.sqrt(spread))
    return MeanInterval(mean=mean, low=max(mean - half, 0.0), high=min(mean + half, 1.0))
