"""The parts of a report: figures with their intervals, curves, slices, cases to read."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from isograde.report.text import visible

__all__ = [
    "Answer",
    "Case",
    "Count",
    "Counts",
    "Estimate",
    "Failure",
    "Finite",
    "HabitRow",
    "Habits",
    "Heatmap",
    "Human",
    "IntervalSlice",
    "Intervals",
    "IsotonicCurve",
    "Learning",
    "LearningPoint",
    "Model",
    "PointFigure",
    "Reliability",
    "Shown",
    "SignalTest",
    "Slice",
    "SpreadFigure",
    "ThresholdFigure",
    "Trust",
]

Shown: TypeAlias = Annotated[str, BeforeValidator(visible)]
"""Text in which nothing acts: a report cannot hold any other."""
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Trust: TypeAlias = Literal["yes", "a little", "no", "not known"]


class Model(BaseModel):
    """Own file: frozen, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Estimate(Model):
    """A figure with its 95 % interval; ``reason`` says why the value, or the interval, is not there."""

    value: Finite | None
    low: Finite | None = None
    high: Finite | None = None
    n: Count
    reason: Shown | None = None


class Answer(Model):
    """A section's first sentence, for a reader who reads no other."""

    sentence: Shown
    details: tuple[Shown, ...] = ()


class PointFigure(Model):
    """One measure of predicted levels; absent predictions are an Estimate with a reason.

    Attributes
    ----------
    calibrated, calibrated_mean : Estimate
        Median and mean of the calibrated distribution, out of fold.
    expected_level, most_probable : Estimate
        The raw judge.
    constant : Estimate
        Always the training labels' median, out of fold.
    """

    name: Shown
    meaning: Shown
    unit: Literal["levels", "share", "number"]
    calibrated: Estimate
    calibrated_mean: Estimate
    expected_level: Estimate
    most_probable: Estimate
    constant: Estimate


class SpreadFigure(Model):
    """One measure of predicted distributions."""

    name: Shown
    meaning: Shown
    calibrated: Estimate
    raw: Estimate
    constant: Estimate
    climatology: Estimate


class ThresholdFigure(Model):
    """How well P(gold ≥ level) is forecast."""

    level: Count
    event_rate: Estimate
    brier_calibrated: Estimate
    brier_raw: Estimate
    brier_climatology: Estimate
    ece_calibrated: Estimate
    ece_raw: Estimate


class Reliability(Model):
    """CORP reliability diagram of P(gold ≥ level): (forecast, how often it came true), ascending.

    Attributes
    ----------
    calibrated, raw : tuple of pair of float
    histogram : tuple of int, length 10
        Rows by calibrated forecast, in bins of equal width.
    """

    level: Count
    calibrated: tuple[tuple[Finite, Finite], ...]
    raw: tuple[tuple[Finite, Finite], ...]
    histogram: tuple[Count, ...]


class Heatmap(Model):
    """Rows by predicted level (first index) and gold level (second)."""

    name: Shown
    counts: tuple[tuple[Count, ...], ...]


class Counts(Model):
    """Rows by level."""

    name: Shown
    counts: tuple[Count, ...]


class IsotonicCurve(Model):
    """The calibrator fitted to all labels, and the labels.

    Attributes
    ----------
    score_name : str
        What the judge's axis is.
    score, mean, median : tuple of float
        The curve.
    points : tuple of (score, gold, count)
        Labels, gathered where they are many.
    isotonic_weight, climatology_weight, raw_weight : float
        How far the pool trusts each forecast.
    """

    score_name: Shown
    score: tuple[Finite, ...]
    mean: tuple[Finite, ...]
    median: tuple[Finite, ...]
    points: tuple[tuple[Finite, Finite, Count], ...]
    isotonic_weight: Finite
    climatology_weight: Finite
    raw_weight: Finite


class SignalTest(Model):
    """Gain of the calibrated judge on ignoring the judge: mean and one-sided 95 % upper limit; below 0 is a gain."""

    name: Shown
    mean: Finite | None
    upper: Finite | None
    hindsight_upper: Finite | None
    claimed: bool
    reason: Shown | None = None


class Human(Model):
    """The judge beside the raters, each rater held out in turn."""

    human_mae: Estimate
    judge_mae: Estimate
    judge_nearer: Estimate
    alpha: Estimate
    alpha_with_judge: Estimate
    winning_rate: Estimate
    n_items: Count
    n_raters: Count


class Slice(Model):
    """Rows that share a value of a metadata column."""

    column: Shown
    value: Shown
    n: Count
    n_groups: Count
    mean_gold: Finite
    mean_judge: Finite | None
    bias: Estimate
    mae_raw: Estimate
    mae_calibrated: Estimate


class Case(Model):
    """An item to read.

    Attributes
    ----------
    direction : {"too high", "too low"} or None
        Of the judge beside gold; None without gold.
    predicted : float or None
        Calibrated level, or the raw one where nothing could be calibrated.
    """

    id: Shown
    group: Shown | None
    direction: Literal["too high", "too low"] | None
    gold: Finite | None
    predicted: Finite | None
    expected_level: Finite | None
    score: Finite | None
    probabilities: tuple[Finite, ...]
    slices: tuple[tuple[Shown, Shown], ...]
    texts: tuple[tuple[Shown, Shown], ...]


class LearningPoint(Model):
    """Calibrated MAE on held-out groups when fitted to n labels."""

    n: Count
    mae: Estimate


class Learning(Model):
    """How the calibrated MAE falls as labels grow."""

    points: tuple[LearningPoint, ...]
    more: Literal["pays", "may pay", "pays little", "cannot be told"]
    sentence: Shown


class Failure(Model):
    """Rows that could not be graded, by status, with examples."""

    status: Shown
    count: Count
    examples: tuple[tuple[Shown, Shown], ...] = ()


class IntervalSlice(Model):
    """How often the intervals of the rows that share a value of a metadata column hold gold, and their mean width in levels."""

    column: Shown
    value: Shown
    n: Count
    n_groups: Count
    coverage: Estimate
    width: Estimate


class Intervals(Model):
    """The intervals of single grades, out of fold.

    Attributes
    ----------
    confidence_level : float
        How often they should hold gold.
    coverage, width : Estimate
        How often they do; mean distance of their ends, in levels.
    single, whole : float or None
        Share of the rows whose interval is one level, and the whole scale.
    """

    answer: Answer
    confidence_level: Finite
    coverage: Estimate
    width: Estimate
    single: Finite | None
    whole: Finite | None
    slices: tuple[IntervalSlice, ...]


class HabitRow(Model):
    """Difference in the judge's level that goes with something beside gold.

    Attributes
    ----------
    name : str
        What: «answers twice as long», «language = de».
    difference : Estimate
        In levels, at equal gold.
    p_value : float or None
        Corrected for as many looks as there are rows (Holm).
    shown : bool
        Whether it is below 0.05.
    """

    name: Shown
    difference: Estimate
    n_groups: Count
    p_value: Finite | None
    shown: bool


class Habits(Model):
    """Whether the judge favours something beside quality."""

    answer: Answer
    rows: tuple[HabitRow, ...]
