"""The signals of a result by their names, and a calibrator of several signals at work on results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from isograde.applied import calibrated_from, judge_of
from isograde.correctness.results import Correctness
from isograde.errors import CalibrationError
from isograde.records import Grade, GradeFailure
from isograde.rubric import Rubric

if TYPE_CHECKING:
    from isograde.calibration import JudgeFingerprint, SignalCalibrator

__all__ = ["CLAIM_SIGNALS", "SIGNALS", "SignalCalibration", "holds_signals", "part_signal", "settings_of"]

CLAIM_SIGNALS: Mapping[str, str] = {"claim_f1": "f_beta", "precision": "precision", "recall": "recall"}
"""Signals that claims give, and their names on a result."""

SIGNALS = ("rubric", *CLAIM_SIGNALS, "similarity")
"""Signals that answer correctness gives."""


class _Metric(Protocol):
    """What makes the signals."""

    beta: float

    @property
    def verdicts(self) -> str: ...

    @property
    def recall_over(self) -> str: ...

    @property
    def embeddings(self) -> _Named | None: ...


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def part_signal(result: Correctness, name: str) -> float | None:
    """A signal of claims, or the similarity; an answer that equals its reference has full marks by every one."""
    value: float | None = 1.0 if result.identical else getattr(result, CLAIM_SIGNALS.get(name, name))
    return value


def settings_of(metric: _Metric, names: Sequence[str]) -> dict[str, str]:
    """How a metric makes the signals that are named, as a calibrator of signals compares it."""
    settings: dict[str, str] = {}
    if any(name in CLAIM_SIGNALS for name in names):
        settings |= {"verdicts": metric.verdicts, "recall_over": metric.recall_over, "beta": f"{metric.beta:g}"}
    if metric.embeddings is not None and "similarity" in names:
        settings["embeddings"] = metric.embeddings.name
    return settings


def holds_signals(path: str | Path) -> bool:
    """Whether a file is a calibrator of several signals; what it is otherwise, or why it cannot be read, others say."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("kind") == "isograde.signal_calibrator"


class SignalCalibration:
    """A calibrator of several signals, bound to what makes them.

    Parameters
    ----------
    calibrator : SignalCalibrator, str or pathlib.Path
        A fitted one, or the path of its JSON file.
    rubric : Rubric
        Of the grade beside the claims.
    metric : AnswerCorrectness

    Raises
    ------
    CalibrationError
        If the file cannot be read, the metric lacks a signal or makes one in another way; each difference is named.
    """

    def __init__(self, calibrator: SignalCalibrator | str | Path, rubric: Rubric, metric: _Metric) -> None:
        if rubric.scale != "ordered":
            raise CalibrationError(f"rubric {rubric.name} is a choice without order; only an ordered rubric can be calibrated")
        self._calibrator = _loaded(calibrator) if isinstance(calibrator, str | Path) else calibrator
        self._rubric = rubric
        self._checked: JudgeFingerprint | None = None
        if lacking := [name for name in self._calibrator.names if name not in SIGNALS]:
            made = ", ".join(SIGNALS)
            raise CalibrationError(f"this calibrator needs the signal {', '.join(lacking)}, and this run makes {made} alone")
        if "similarity" in self._calibrator.names and metric.embeddings is None:
            raise CalibrationError("this calibrator needs the signal similarity, and this run has no embeddings")
        needed = settings_of(metric, self._calibrator.names)
        self._calibrator.check_settings({**(self._calibrator.settings or {}), **needed})

    @property
    def needs_rubric(self) -> bool:
        """Whether the rubric's grade is one of the signals."""
        return "rubric" in self._calibrator.names

    def applied(self, result: Correctness) -> Correctness:
        """Put the calibrated values beside the raw ones; a result that lacks a signal stays without.

        Raises
        ------
        CalibrationError
            If the calibrator was fitted on another judge; each difference is named.
        """
        import numpy as np

        grade = result.rubric
        labels = self._rubric.labels
        support = self._calibrator.support_
        if isinstance(grade, Grade) and grade.method == "blank_output":  # given by rule, to judge and human alike
            lowest = (support == 0).astype(np.float64)
            return replace(result, calibrated=calibrated_from(lowest, support, labels, self._rubric.pass_at))
        if isinstance(grade, Grade) and (judge := judge_of(grade)) != self._checked:
            self._calibrator.check_judge(judge)
            self._checked = judge
        values: dict[str, list[float]] = {}
        for name in self._calibrator.names:
            value = _rubric_score(grade) if name == "rubric" else part_signal(result, name)
            if value is None:
                return result
            values[name] = [value]
        distribution = self._calibrator.predict_distribution(values)[0]
        return replace(result, calibrated=calibrated_from(distribution, support, labels, self._rubric.pass_at))


def _rubric_score(grade: Grade | GradeFailure | None) -> float | None:
    """The rubric as a signal."""
    return grade.score if isinstance(grade, Grade) else None


def _loaded(path: str | Path) -> SignalCalibrator:
    """Read a file."""
    from isograde.calibration import SignalCalibrator

    try:
        return SignalCalibrator.from_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CalibrationError(f"calibrator {path}: {getattr(error, 'strerror', None) or 'is no text file'}") from None
    except CalibrationError as error:
        raise CalibrationError(f"calibrator {path}: {error}") from None
