"""A calibrator at work on grades: compared with the judge, then applied."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from isograde.errors import CalibrationError
from isograde.records import Calibrated, Grade
from isograde.rubric import Rubric

if TYPE_CHECKING:
    from isograde.calibration import Calibrator, JudgeFingerprint

__all__ = ["Calibration", "judge_of"]


def judge_of(grade: Grade) -> JudgeFingerprint:
    """Name the judge that gave a grade, as a calibrator compares it."""
    from isograde.calibration import JudgeFingerprint

    return JudgeFingerprint(
        model=grade.model,
        adapter=grade.adapter,
        rubric=grade.rubric_fingerprint,
        prompt=grade.prompt_fingerprint,
        labels=tuple(grade.probabilities),
        method=grade.method,
    )


class Calibration:
    """A calibrator bound to a rubric.

    Parameters
    ----------
    calibrator : Calibrator, str or pathlib.Path
        A fitted one, or the path of its JSON file.
    rubric : Rubric

    Raises
    ------
    CalibrationError
        If the file cannot be read, or the rubric has no order.
    """

    def __init__(self, calibrator: Calibrator | str | Path, rubric: Rubric) -> None:
        if rubric.scale != "ordered":
            raise CalibrationError(f"rubric {rubric.name} is a choice without order; only an ordered rubric can be calibrated")
        self._calibrator = _loaded(calibrator) if isinstance(calibrator, str | Path) else calibrator
        self._rubric = rubric
        self._checked: JudgeFingerprint | None = None

    def applied(self, grade: Grade) -> Grade:
        """Put the calibrated values beside the raw ones.

        Raises
        ------
        CalibrationError
            If the calibrator was fitted on another judge; each difference is named.
        """
        import numpy as np

        from isograde.calibration import level_probabilities
        from isograde.calibration.calibrator import lower_median

        if grade.method == "blank_output":  # given by rule, to judge and human alike
            return replace(grade, calibrated=Calibrated(level=0.0, score=0.0, probabilities=grade.probabilities, p_pass=0.0))
        judge = judge_of(grade)
        if judge != self._checked:
            self._calibrator.check_judge(judge)
            self._checked = judge
        support = self._calibrator.support_
        distribution = self._calibrator.predict_distribution(np.array([grade.distribution.probabilities]))
        n = len(grade.probabilities)
        levels = level_probabilities(distribution, support, n)[0].tolist()
        calibrated = Calibrated(
            level=float(lower_median(np.cumsum(distribution, axis=1), support)[0]),
            score=min(1.0, float(distribution[0] @ support) / (n - 1)),
            probabilities=dict(zip(grade.probabilities, levels, strict=True)),
            p_pass=min(1.0, float(distribution[0, support >= self._rubric.pass_at * (n - 1) - 1e-9].sum())),
        )
        return replace(grade, calibrated=calibrated)


def _loaded(path: str | Path) -> Calibrator:
    """Read a calibrator's file."""
    from isograde.calibration import Calibrator

    try:
        return Calibrator.from_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CalibrationError(f"calibrator {path}: {getattr(error, 'strerror', None) or 'is no text file'}") from None
    except CalibrationError as error:
        raise CalibrationError(f"calibrator {path}: {error}") from None
