"""What a report holds. Everything that is shown comes from here alone, so a report read back from JSON renders the same."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from isograde.errors import DataError
from isograde.report.text import visible

__all__ = [
    "Answer",
    "CalibrationReport",
    "Case",
    "Counts",
    "Estimate",
    "Failure",
    "Heatmap",
    "Human",
    "IsotonicCurve",
    "Learning",
    "LearningPoint",
    "PointFigure",
    "Reliability",
    "RubricRun",
    "RunReport",
    "RunSlice",
    "SignalTest",
    "Slice",
    "SpreadFigure",
    "Threshold",
    "ThresholdFigure",
    "Trust",
]

Shown: TypeAlias = Annotated[str, BeforeValidator(visible)]
"""Text in which nothing acts: a report cannot hold any other."""
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Trust: TypeAlias = Literal["yes", "a little", "no", "not known"]


class _Model(BaseModel):
    """Own file: frozen, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Estimate(_Model):
    """A figure with its 95 % interval; ``reason`` says why the value, or the interval, is not there."""

    value: Finite | None
    low: Finite | None = None
    high: Finite | None = None
    n: Count
    reason: Shown | None = None


class Answer(_Model):
    """A section's first sentence, for a reader who reads no other."""

    sentence: Shown
    details: tuple[Shown, ...] = ()


class PointFigure(_Model):
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


class SpreadFigure(_Model):
    """One measure of predicted distributions."""

    name: Shown
    meaning: Shown
    calibrated: Estimate
    raw: Estimate
    constant: Estimate
    climatology: Estimate


class ThresholdFigure(_Model):
    """How well P(gold ≥ level) is forecast."""

    level: Count
    event_rate: Estimate
    brier_calibrated: Estimate
    brier_raw: Estimate
    brier_climatology: Estimate
    ece_calibrated: Estimate
    ece_raw: Estimate


class Reliability(_Model):
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


class Heatmap(_Model):
    """Rows by predicted level (first index) and gold level (second)."""

    name: Shown
    counts: tuple[tuple[Count, ...], ...]


class Counts(_Model):
    """Rows by level."""

    name: Shown
    counts: tuple[Count, ...]


class IsotonicCurve(_Model):
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


class SignalTest(_Model):
    """Gain of the calibrated judge on ignoring the judge: mean and one-sided 95 % upper limit; below 0 is a gain."""

    name: Shown
    mean: Finite | None
    upper: Finite | None
    hindsight_upper: Finite | None
    claimed: bool
    reason: Shown | None = None


class Human(_Model):
    """The judge beside the raters, each rater held out in turn."""

    human_mae: Estimate
    judge_mae: Estimate
    judge_nearer: Estimate
    alpha: Estimate
    alpha_with_judge: Estimate
    winning_rate: Estimate
    n_items: Count
    n_raters: Count


class Slice(_Model):
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


class Case(_Model):
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


class LearningPoint(_Model):
    """Calibrated MAE on held-out groups when fitted to n labels."""

    n: Count
    mae: Estimate


class Learning(_Model):
    """How the calibrated MAE falls as labels grow."""

    points: tuple[LearningPoint, ...]
    more: Literal["pays", "may pay", "pays little", "cannot be told"]
    sentence: Shown


class Failure(_Model):
    """Rows that could not be graded, by status, with examples."""

    status: Shown
    count: Count
    examples: tuple[tuple[Shown, Shown], ...] = ()


class _Report(_Model):
    """Renders itself."""

    def to_json(self) -> str:
        """Write the report as JSON; ``from_json`` reads it back."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote.

        Raises
        ------
        DataError
            The text is no such report; the message names the field.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise DataError(f"no {cls.__name__}: {where}: {first['msg']}") from None


class CalibrationReport(_Report):
    """What a judge is worth beside human gold labels; made by :func:`~isograde.report.calibration_report`.

    Attributes
    ----------
    trust, trust_answer, gain_answer, errors_answer
        The three questions: can it be trusted, does calibration help, where is it wrong.
    n, n_graded, n_failed, n_by_rule : int
        Rows; rows that the judge graded, could not grade, and that were blank and graded by the rubric's rule.
    n_labelled, n_unlabelled, n_used, n_groups : int
        Rows with and without a gold label; rows that the judge graded with a label, on which all is measured; their groups.
    """

    kind: Literal["calibration"] = "calibration"
    title: Shown
    labels: tuple[Shown, ...]
    label_source: Shown | None
    judge: tuple[tuple[Shown, Shown], ...]
    library_version: Shown
    n: Count
    n_graded: Count
    n_failed: Count
    n_by_rule: Count
    n_labelled: Count
    n_unlabelled: Count
    n_used: Count
    n_groups: Count
    failures: tuple[Failure, ...]
    trust: Trust
    trust_answer: Answer
    gain_answer: Answer
    errors_answer: Answer
    signal: tuple[SignalTest, ...]
    human: Human | None
    point_figures: tuple[PointFigure, ...]
    spread_figures: tuple[SpreadFigure, ...]
    threshold_figures: tuple[ThresholdFigure, ...]
    reliability: tuple[Reliability, ...]
    curve: IsotonicCurve | None
    learning: Learning | None
    heatmaps: tuple[Heatmap, ...]
    distributions: tuple[Counts, ...]
    slices: tuple[Slice, ...]
    n_columns_left_out: Count
    worst: tuple[Case, ...]
    n_disagreements: Count

    def to_markdown(self) -> str:
        """Write the report as Markdown: the same order, tables instead of plots."""
        from isograde.report.markdown import calibration_markdown

        return calibration_markdown(self)

    def to_html(self) -> str:
        """Write the report as one self-contained HTML file.

        Raises
        ------
        UserError
            matplotlib or Jinja2 is missing.
        """
        from isograde.report.html import calibration_html

        return calibration_html(self)


class Threshold(_Model):
    """The run cut in two at a score."""

    at: Finite
    n_pass: Count
    n_fail: Count


class RunSlice(_Model):
    """Rows of a run that share a value of a metadata column."""

    column: Shown
    value: Shown
    n: Count
    n_failed: Count
    mean_score: Finite | None
    pass_rate: Finite | None
    pass_rate_bounds: tuple[Finite, Finite] | None


class RubricRun(_Model):
    """A run by one rubric.

    Attributes
    ----------
    mean_score_bounds, pass_rate_bounds : pair of float or None
        If every failed row had scored 0, and 1.
    score_histogram : tuple of int, length 20
        Rows by score, in bins of equal width.
    """

    rubric: Shown
    labels: tuple[Shown, ...]
    judge: tuple[tuple[Shown, Shown], ...]
    answer: Answer
    n: Count
    n_graded: Count
    n_failed: Count
    failures: tuple[Failure, ...]
    mean_score: Finite | None
    mean_score_bounds: tuple[Finite, Finite] | None
    pass_rate: Finite | None
    pass_rate_bounds: tuple[Finite, Finite] | None
    threshold: Threshold | None
    levels: tuple[Count, ...]
    score_histogram: tuple[Count, ...]
    slices: tuple[RunSlice, ...]
    n_columns_left_out: Count
    lowest: tuple[Case, ...]


class RunReport(_Report):
    """What a run looks like, without gold labels; made by :func:`~isograde.report.run_report`."""

    kind: Literal["run"] = "run"
    title: Shown
    library_version: Shown
    rubrics: tuple[RubricRun, ...]

    def to_markdown(self) -> str:
        """Write the report as Markdown: the same order, tables instead of plots."""
        from isograde.report.markdown import run_markdown

        return run_markdown(self)

    def to_html(self) -> str:
        """Write the report as one self-contained HTML file.

        Raises
        ------
        UserError
            matplotlib or Jinja2 is missing.
        """
        from isograde.report.html import run_html

        return run_html(self)
