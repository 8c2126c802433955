"""What a calibrator was fitted on, by which judge, and its file."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from isograde.errors import CalibrationError

if TYPE_CHECKING:
    from isograde.calibration._inputs import Sample

__all__ = ["CalibratorFile", "FoldFile", "IntervalsFile", "JudgeFingerprint", "PoolWeights", "Provenance", "check_same_judge"]

Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
# Weights and climatologies are sums of floats.
ROUNDING = 1e-9


class _Frozen(BaseModel):
    """An own file: frozen, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class JudgeFingerprint(_Frozen):
    """What makes two judges the same one; None where it does not apply or is not known.

    Attributes
    ----------
    model, adapter, rubric, prompt, method : str or None
        The model and adapter served, the rubric's and the prompt's fingerprints, and how levels were read.
    labels : tuple of str or None
        The rubric's level labels, lowest first.

    Examples
    --------
    >>> fitted = JudgeFingerprint(model="a-4b", rubric="r1", labels=("0", "1"))
    >>> fitted.differences(JudgeFingerprint(model="b-8b", rubric="r1", labels=("0", "1")))
    ["model: 'a-4b' and 'b-8b'"]
    """

    model: str | None = None
    adapter: str | None = None
    rubric: str | None = None
    prompt: str | None = None
    labels: tuple[str, ...] | None = None
    method: str | None = None

    def differences(self, other: JudgeFingerprint) -> list[str]:
        """Each field in which two judges differ, as «field: this and that»."""
        return [
            f"{name}: {getattr(self, name)!r} and {getattr(other, name)!r}"
            for name in type(self).model_fields
            if getattr(self, name) != getattr(other, name)
        ]


def check_same_judge(fitted: JudgeFingerprint | None, judge: JudgeFingerprint) -> None:
    """Raise CalibrationError, naming each difference, unless the calibrator was fitted on this judge."""
    if fitted is None:
        raise CalibrationError("this calibrator does not say which judge it was fitted on; fit it with judge=")
    if different := fitted.differences(judge):
        raise CalibrationError(f"this calibrator was fitted on another judge ({'; '.join(different)}); fit one for this judge")


class Provenance(_Frozen):
    """Where a calibrator comes from.

    Attributes
    ----------
    n, n_groups : int
        Labels of positive weight, and the groups they fall into.
    label_source : str or None
        Who gave the labels, in the user's words.
    data_hash : str
        SHA-256 of the sorted (score, gold, weight) rows: the same labels give the same hash in any order.
    library_version : str
        The isograde that fitted it.
    judge : JudgeFingerprint or None
        The judge that gave the scores.
    """

    n: Annotated[int, Field(ge=1)]
    n_groups: Annotated[int, Field(ge=1)]
    label_source: str | None
    data_hash: str
    library_version: str
    judge: JudgeFingerprint | None


def data_hash(sample: Sample) -> str:
    """SHA-256 of the canonical labels."""
    rows = np.column_stack([sample.score, sample.gold, sample.weight]).astype("<f8")
    return hashlib.sha256(rows.tobytes()).hexdigest()


class PoolWeights(_Frozen):
    """Weights of the three forecasts in the pool; they sum to 1."""

    isotonic: Probability
    climatology: Probability
    raw: Probability

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        """Refuse weights that are no pool."""
        if abs(self.isotonic + self.climatology + self.raw - 1) > ROUNDING:
            raise ValueError("pool weights do not sum to 1")
        return self


class FoldFile(_Frozen):
    """What the intervals keep of one fold.

    Attributes
    ----------
    knots : tuple of float
        Scores at which the forecast fitted on the other folds bends, ascending.
    cdf : tuple of tuple of int
        Its P(gold ≤ support[j]) there, in thousandths, for every support point but the last.
    score : tuple of int
        Distinct conformity scores of this fold's labels in steps of 1 ÷ 500, ascending.
    weight : tuple of float
        Groups that each score stands for; the labels of a group share its 1.
    """

    knots: Annotated[tuple[Finite, ...], Field(min_length=1)]
    cdf: tuple[tuple[Annotated[int, Field(ge=0, le=1000)], ...], ...]
    score: tuple[Annotated[int, Field(ge=0, le=500)], ...]
    weight: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Refuse tables that do not fit together."""
        if len(self.cdf) != len(self.knots) or len(self.score) != len(self.weight):
            raise ValueError("cdf must have a row a knot, and weight a value a score")
        if (np.diff(self.knots) <= 0).any():
            raise ValueError("knots must ascend")
        return self


class IntervalsFile(_Frozen):
    """Fold forecasts and out-of-fold conformity scores, from which prediction intervals are made.

    Attributes
    ----------
    n_groups : int
        Groups of labels behind them.
    folds : tuple of FoldFile
        None where all labels are in one group.
    """

    n_groups: Annotated[int, Field(ge=1)]
    folds: tuple[FoldFile, ...]


class CalibratorFile(_Frozen):
    """A fitted calibrator on disk.

    Attributes
    ----------
    kind, format
        Always ``"isograde.calibrator"`` and 1.
    input : {"probabilities", "scores"}
        What it was fitted on.
    n_levels : int
        Levels of the rubric.
    score_range : tuple of float or None
        The scores that stand for the lowest and the highest level.
    support : tuple of float
        Levels that the calibrated distribution can take, ascending.
    thresholds : tuple of float
        Scores at which the isotonic part bends, ascending.
    cdf : tuple of tuple of float
        P(gold ≤ support[j]) at each threshold, for every support point but the last.
    climatology : tuple of float
        The labels' own P(gold ≤ support[j]), for every support point but the last.
    weights : PoolWeights
    provenance : Provenance
    intervals : IntervalsFile or None
        None in files of versions that had no intervals.
    """

    kind: Literal["isograde.calibrator"] = "isograde.calibrator"
    format: Literal[1] = 1
    input: Literal["probabilities", "scores"]
    n_levels: Annotated[int, Field(ge=1)]
    score_range: tuple[Finite, Finite] | None
    support: Annotated[tuple[Finite, ...], Field(min_length=1)]
    thresholds: Annotated[tuple[Finite, ...], Field(min_length=1)]
    cdf: tuple[tuple[Probability, ...], ...]
    climatology: tuple[Probability, ...]
    weights: PoolWeights
    provenance: Provenance
    intervals: IntervalsFile | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Refuse tables that are no family of distributions rising with the score."""
        support, thresholds = np.asarray(self.support), np.asarray(self.thresholds)
        shape = (len(thresholds), len(support) - 1)
        if len(self.cdf) != shape[0] or any(len(row) != shape[1] for row in self.cdf) or len(self.climatology) != shape[1]:
            raise ValueError(f"cdf must have {shape[0]} rows of {shape[1]}, and climatology {shape[1]} values")
        if (np.diff(support) <= 0).any() or (np.diff(thresholds) <= 0).any():
            raise ValueError("support and thresholds must ascend")
        if support[0] != 0 or support[-1] != self.n_levels - 1:
            raise ValueError(f"support must run from 0 to {self.n_levels - 1}")
        cdf = np.asarray(self.cdf).reshape(shape)
        if (np.diff(cdf, axis=0) > ROUNDING).any() or (np.diff(cdf, axis=1) < 0).any() or (np.diff(self.climatology) < 0).any():
            raise ValueError("cdf must fall along the thresholds and rise along the support")
        if self.score_range is not None and not self.score_range[0] < self.score_range[1]:
            raise ValueError("score_range must be (lowest, highest)")
        folds = () if self.intervals is None else self.intervals.folds
        if any(len(row) != shape[1] for fold in folds for row in fold.cdf):
            raise ValueError(f"a fold's cdf must have rows of {shape[1]}")
        return self

    @classmethod
    def read(cls, text: str) -> Self:
        """Parse a file's text; CalibrationError names the first field that is wrong."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "file"
            if where == "kind" and first["input"] == "isograde.signal_calibrator":
                raise CalibrationError(
                    "this calibrator is of several signals, which a judge's grade alone does not have; use it with "
                    "isograde score --metric claim_f1 (AnswerCorrectness), or fit one without --signals"
                ) from error
            if where == "format":
                raise CalibrationError(
                    f"this calibrator's file has format {first['input']!r}, and this isograde reads 1: fit it anew, or upgrade"
                ) from error
            raise CalibrationError(f"this is no isograde calibrator: {where}: {first['msg']}") from error
