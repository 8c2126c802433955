"""A calibrator at work on grades: compared with the judge, then applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from isograde.errors import CalibrationError
from isograde.records import Calibrated, Grade, LevelInterval
from isograde.rubric import Rubric

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from isograde.calibration import Calibrator, JudgeFingerprint

__all__ = ["Calibration", "calibrated_from", "judge_of", "load_calibrator"]

CONFIDENCE_LEVEL = 0.9  # of the interval on every calibrated grade


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
        self._calibrator = load_calibrator(calibrator) if isinstance(calibrator, str | Path) else calibrator
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

        if grade.method == "blank_output":  # given by rule, to judge and human alike
            sure = LevelInterval(low=0.0, high=0.0, levels=(next(iter(grade.probabilities)),), confidence_level=CONFIDENCE_LEVEL)
            return replace(
                grade,
                calibrated=Calibrated(level=0.0, score=0.0, probabilities=grade.probabilities, p_pass=0.0, interval=sure),
            )
        judge = judge_of(grade)
        if judge != self._checked:
            self._calibrator.check_judge(judge)
            self._checked = judge
        given = np.array([grade.distribution.probabilities])
        distribution = self._calibrator.predict_distribution(given)[0]
        calibrated = calibrated_from(
            distribution,
            self._calibrator.support_,
            tuple(grade.probabilities),
            self._rubric.pass_at,
            interval=self._interval(given, tuple(grade.probabilities)),
        )
        return replace(grade, calibrated=calibrated)

    def _interval(self, given: NDArray[float64], labels: tuple[str, ...]) -> LevelInterval | None:
        """Where the gold level lies; None where the calibrator carries no intervals."""
        if not self._calibrator.has_intervals:
            return None
        found = self._calibrator.predict_interval(given, CONFIDENCE_LEVEL)
        return LevelInterval(
            low=float(found.low[0]),
            high=float(found.high[0]),
            levels=tuple(label for label, inside in zip(labels, found.levels[0], strict=True) if inside),
            confidence_level=CONFIDENCE_LEVEL,
            reason=found.reason,
        )


def calibrated_from(
    distribution: NDArray[float64],
    support: NDArray[float64],
    labels: Sequence[str],
    pass_at: float,
    *,
    interval: LevelInterval | None = None,
) -> Calibrated:
    """Sum up one calibrated distribution, shape (n_support,), as a grade shows it."""
    import numpy as np

    from isograde.calibration import level_probabilities
    from isograde.calibration.calibrator import lower_median

    n = len(labels)
    levels = level_probabilities(distribution[np.newaxis], support, n)[0].tolist()
    return Calibrated(
        level=float(lower_median(np.cumsum(distribution)[np.newaxis], support)[0]),
        score=min(1.0, float(distribution @ support) / (n - 1)),
        probabilities=dict(zip(labels, levels, strict=True)),
        p_pass=min(1.0, float(distribution[support >= pass_at * (n - 1) - 1e-9].sum())),
        interval=interval,
    )


def load_calibrator(path: str | Path) -> Calibrator:
    """Read a calibrator's file.

    Raises
    ------
    CalibrationError
        If it cannot be read or is none; the file is named.
    """
    from isograde.calibration import Calibrator

    try:
        return Calibrator.from_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CalibrationError(f"calibrator {path}: {getattr(error, 'strerror', None) or 'is no text file'}") from None
    except CalibrationError as error:
        raise CalibrationError(f"calibrator {path}: {error}") from None
