"""Whole reports. Everything that is shown comes from here alone, so a report read back from JSON renders the same."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import ValidationError

from isograde.errors import DataError
from isograde.report.parts import (
    Answer,
    Case,
    Count,
    Counts,
    Failure,
    Finite,
    Habits,
    Heatmap,
    Human,
    Intervals,
    IsotonicCurve,
    Learning,
    Model,
    PointFigure,
    Reliability,
    Shown,
    SignalTest,
    Slice,
    SpreadFigure,
    ThresholdFigure,
    Trust,
)
from isograde.report.signal_parts import SignalTable

__all__ = ["CalibrationReport", "Report", "RubricRun", "RunReport", "RunSlice", "Threshold"]


class Report(Model):
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


class CalibrationReport(Report):
    """What a judge is worth beside human gold labels; made by :func:`~isograde.report.calibration_report`.

    Attributes
    ----------
    trust, trust_answer, gain_answer, errors_answer
        The three questions: can it be trusted, does calibration help, where is it wrong.
    n, n_graded, n_failed, n_by_rule : int
        Rows; rows that the judge graded, could not grade, and that were blank and graded by the rubric's rule.
    n_labelled, n_unlabelled, n_used, n_groups : int
        Rows with and without a gold label; rows that the judge graded with a label, on which all is measured; their groups.
    signal_table : SignalTable or None
        The judge beside other signals, where there are any.
    intervals : Intervals or None
        How often the intervals of single grades hold gold, out of fold; None in reports of versions that had none.
    habits : Habits or None
        What the judge's level goes with beside gold; None in reports of versions that had none.
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
    signal_table: SignalTable | None = None
    intervals: Intervals | None = None
    habits: Habits | None = None

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


class Threshold(Model):
    """The run cut in two at a score."""

    at: Finite
    n_pass: Count
    n_fail: Count


class RunSlice(Model):
    """Rows of a run that share a value of a metadata column."""

    column: Shown
    value: Shown
    n: Count
    n_failed: Count
    mean_score: Finite | None
    pass_rate: Finite | None
    pass_rate_bounds: tuple[Finite, Finite] | None


class RubricRun(Model):
    """A run by one rubric.

    Attributes
    ----------
    calibrated : bool
        Whether scores and passes are the calibrated ones.
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
    calibrated: bool
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


class RunReport(Report):
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
