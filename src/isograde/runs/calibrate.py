"""Grades and gold labels together: what ``isograde calibrate`` does before it reports."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from isograde.applied import judge_of
from isograde.backends.loop import run
from isograde.calibration import Calibrator, JudgeFingerprint, SignalCalibrator
from isograde.datasets import Row
from isograde.datasets.columns import ALIASES
from isograde.errors import CalibrationError, DataError
from isograde.judge import Judge, grades
from isograde.records import Calibrated, Grade, GradeFailure, Item, LevelDistribution, LevelInterval, Samples, Usage
from isograde.runs.results import CalibratedLine, FailureLine, GradeLine
from isograde.runs.signals import Signals, fitted_signals, table_of

__all__ = [
    "Labelled",
    "fitted",
    "grade_of",
    "graded_by",
    "only_rubric",
    "read_grades",
    "read_line",
    "reported",
    "with_grades",
    "with_scores",
]

if TYPE_CHECKING:
    from isograde.report import CalibrationReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Rows with gold labels and what a judge says of them.

    Attributes
    ----------
    rows : tuple of Row
        All with gold.
    grades : tuple of Grade or GradeFailure, or None
        One a row; None where plain scores stand in their place.
    scores : tuple of float or None
        One a row; None where there are grades.
    n_levels : int
    score_range : tuple of float or None
        The plain scores that stand for the lowest and the highest level.
    signals : Signals or None
        What a calibrator of several signals is fitted on, in place of one of the judge alone.
    """

    rows: tuple[Row, ...]
    grades: tuple[Grade | GradeFailure, ...] | None
    scores: tuple[float | None, ...] | None
    n_levels: int
    score_range: tuple[float, float] | None = None
    signals: Signals | None = None


def graded_by(
    judge: Judge,
    rows: Sequence[Row],
    *,
    on_grade: Callable[[Row, Grade | GradeFailure], Any],
    stopped: Callable[[], bool] = lambda: False,
) -> Labelled:
    """Grade the labelled rows; only as far as ``stopped`` lets it come."""

    async def collect() -> list[Grade | GradeFailure]:
        collected = []
        async for row, grade in grades(rows, [judge], ordered=True, stopped=stopped):
            on_grade(row, grade)
            collected.append(grade)
        return collected

    found = tuple(run(collect()))
    return Labelled(rows=tuple(rows[: len(found)]), grades=found, scores=None, n_levels=len(judge.rubric.labels))


def read_grades(path: Path) -> dict[tuple[str, str], GradeLine | FailureLine]:
    """Read the lines that ``isograde score`` wrote, by id and rubric.

    Raises
    ------
    DataError
        If the file cannot be read, a line is none of them, or two are of one row and rubric; they are named.
    """
    lines: dict[tuple[str, str], GradeLine | FailureLine] = {}
    numbers: dict[tuple[str, str], int] = {}
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, text in enumerate(file, 1):
                line = read_line(text, f"{path}, line {number}")
                key = (line.id, line.rubric)
                if key in lines:
                    both = f"lines {numbers[key]} and {number}"
                    raise DataError(f"{path}, {both}: id {line.id!r} is graded twice by {line.rubric}; take out one of the two")
                lines[key], numbers[key] = line, number
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {getattr(error, 'strerror', None) or 'is no UTF-8 text'}") from None
    if not lines:
        raise DataError(f"{path}: there are no grades in it")
    return lines


def read_line(text: str, where: str) -> GradeLine | FailureLine:
    """Read one line of a file of grades.

    Raises
    ------
    DataError
        If it is none; ``where`` is what the message calls it.
    """
    try:
        content = json.loads(text)
        if isinstance(content, dict) and content.get("metric") == "claim_f1":
            raise DataError(f"{where}: holds claim_f1 results; this command takes grades by a rubric")
        graded = isinstance(content, dict) and content.get("status") == "graded"
        return (GradeLine if graded else FailureLine).model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        said = f"{'.'.join(map(str, problem['loc'])) or 'line'}: {problem['msg']}"
    except ValueError:
        said = "not JSON"
    raise DataError(f"{where}: is no grade that isograde score wrote ({said})")


def only_rubric(lines: Iterable[tuple[str, str]], path: Path) -> str:
    """Name the one rubric of a file of grades, from its lines' ids and rubrics.

    Raises
    ------
    DataError
        If there are several.
    """
    found = sorted({name for _, name in lines})
    if len(found) > 1:
        raise DataError(f"{path}: holds grades by {', '.join(found)}; say which with --rubric")
    return found[0]


def with_grades(rows: Sequence[Row], path: Path, *, rubric: str | None = None) -> Labelled:
    """Join labelled rows with grades by id.

    Raises
    ------
    DataError
        If the file holds several rubrics and none is named, or a labelled row has no grade.
    """
    lines = read_grades(path)
    rubric = rubric or only_rubric(lines, path)
    joined: list[Grade | GradeFailure] = []
    for row in rows:
        line = lines.get((row.key, rubric))
        if line is None:
            raise DataError(f"{row.place} (id {row.key!r}) has a gold label but no grade by {rubric} in {path}; grade it first")
        joined.append(grade_of(line, row.item))
    n_levels = next((len(grade.probabilities) for grade in joined if isinstance(grade, Grade)), 5)
    return Labelled(rows=tuple(rows), grades=tuple(joined), scores=None, n_levels=n_levels)


def grade_of(line: GradeLine | FailureLine, item: Item) -> Grade | GradeFailure:
    """Make of a line what it was written from."""
    about: dict[str, Any] = {"item": item, "index": line.index, "rubric": line.rubric}
    if isinstance(line, FailureLine):
        return GradeFailure(status=line.status, message=line.message, **about)
    probabilities = tuple(line.probabilities.values())
    low, high = line.expected_level_bounds
    top = len(probabilities) - 1
    # bounds = scaled ÷ (m+u) and (scaled + top·u) ÷ (m+u): their difference gives back u, the unseen mass
    share = (high - low) / top
    unseen = line.observed_mass * share / (1 - share) if share < 1 else 0.0
    return Grade(
        score=line.score,
        label=line.label,
        level=line.level,
        probabilities=line.probabilities,
        confidence=line.confidence,
        passed=line.passed,
        distribution=LevelDistribution(
            labels=tuple(line.probabilities),
            probabilities=probabilities,
            observed_mass=line.observed_mass,
            unseen_mass=unseen,
            missing_levels=line.missing_levels,
            prefix_probability=line.prefix_probability,
        ),
        rubric_fingerprint=line.rubric_fingerprint,
        prompt_fingerprint=line.prompt_fingerprint,
        model=line.model,
        method=line.method,
        adapter=line.adapter,
        calibrated=None if line.calibrated is None else _calibrated(line.calibrated),
        caveat=line.caveat,
        reference_index=line.reference_index,
        samples=None
        if line.n_samples is None
        else Samples(n=line.n_samples, n_invalid=line.n_invalid or 0, sd=line.expected_level_sd),
        usage=Usage(input_tokens=line.input_tokens, output_tokens=line.output_tokens, cached_tokens=line.cached_tokens),
        latency_s=line.latency_s,
        server=line.server,
        question_fingerprint=line.question_fingerprint,
        stored=True,
        **about,
    )


def _calibrated(line: CalibratedLine) -> Calibrated:
    """Make of a line's calibrated values what they were written from."""
    content = dict(line)
    return Calibrated(**content | {"interval": None if line.interval is None else LevelInterval(**dict(line.interval))})


def with_scores(rows: Sequence[Row], column: str, *, n_levels: int, score_range: tuple[float, float] | None = None) -> Labelled:
    """Take another judge's plain scores from a column.

    Raises
    ------
    DataError
        If the column is missing, or a score is no finite number; the row is named.
    """
    scores = []
    for row in rows:
        value = row.item.metadata.get(column)
        try:
            score = float(value) if value is not None and not isinstance(value, bool) else math.nan
        except (TypeError, ValueError):
            score = math.nan
        if not math.isfinite(score):
            said = f"holds {value!r}" if column in row.item.metadata else _why_missing(column, row)
            raise DataError(f"{row.place} (id {row.key!r}), column {column!r}: {said}; a score is a finite number")
        scores.append(score)
    return Labelled(rows=tuple(rows), grades=None, scores=tuple(scores), n_levels=n_levels, score_range=score_range)


def _why_missing(column: str, row: Row) -> str:
    """Say why a column is not among those that feed nothing."""
    field = "gold" if column == "gold" else next((field for field, names in ALIASES.items() if column in names), None)
    if field == "gold" or (field is not None and getattr(row.item, field) is not None):
        return f"is read as {field}, and a judge's scores stand in a column of their own"
    return f"is missing, or is read as gold or another field; columns left: {', '.join(row.item.metadata) or 'none'}"


def fitted(labelled: Labelled, *, label_source: str | None, rng: int | None = None) -> Calibrator | SignalCalibrator:
    """Fit a calibrator to all labelled rows that the judge could grade.

    Parameters
    ----------
    labelled : Labelled
    label_source : str or None
        Who gave the labels.
    rng : int or None
        Seed; None is a fixed one.

    Returns
    -------
    Calibrator, or SignalCalibrator where there are signals

    Raises
    ------
    CalibrationError
        If nothing was graded, or the grades are of several judges.
    """
    if labelled.signals is not None:
        judge = _one_judge(
            [grade for grade in labelled.grades or () if isinstance(grade, Grade) and grade.method != "blank_output"]
        )
        about: dict[str, Any] = {"n_levels": labelled.n_levels, "judge": judge, "label_source": label_source, "rng": rng}
        return fitted_signals(labelled.rows, labelled.signals, **about)
    if labelled.scores is not None:
        kept: list[tuple[Row, Any]] = list(zip(labelled.rows, labelled.scores, strict=True))
        judge = None
    else:
        pairs = zip(labelled.rows, labelled.grades or (), strict=True)
        # what the rubric gives a blank output by rule says nothing about the model
        read = [(row, grade) for row, grade in pairs if isinstance(grade, Grade) and grade.method != "blank_output"]
        judge = _one_judge([grade for _, grade in read])
        kept = [(row, grade.distribution.probabilities) for row, grade in read]
    if not kept:
        raise CalibrationError("no labelled row could be graded, so there is nothing to fit")
    calibrator = Calibrator(n_levels=labelled.n_levels, score_range=labelled.score_range, judge=judge, label_source=label_source)
    return calibrator.fit(
        [given for _, given in kept],
        [row.gold if row.gold is not None else math.nan for row, _ in kept],
        groups=[row.item.group for row, _ in kept],
        rng=rng,
    )


def reported(labelled: Labelled, *, label_source: str | None, title: str, rng: int | None = None) -> CalibrationReport:
    """Measure the judge beside the labels, out of fold; parameters as for :func:`fitted`."""
    from isograde.report import calibration_report

    plain: dict[str, Any] = {"n_levels": labelled.n_levels, "score_range": labelled.score_range}
    signals = labelled.signals
    given: Any = labelled.grades if labelled.grades is not None else list(labelled.scores or ())
    return calibration_report(
        given,
        [row.gold for row in labelled.rows],
        raters=[row.raters for row in labelled.rows],
        items=[row.item for row in labelled.rows],
        label_source=label_source,
        title=title,
        signals=None if signals is None else table_of(labelled.rows, signals, n_levels=labelled.n_levels, rng=rng),
        rng=rng,
        **(plain if labelled.grades is None else {}),
    )


def _one_judge(grades: Sequence[Grade]) -> JudgeFingerprint | None:
    """Name the judge of all grades."""
    judges = [judge_of(grade) for grade in grades]
    for other in judges[1:]:
        if different := judges[0].differences(other):
            raise CalibrationError(f"the grades are of different judges ({'; '.join(different)}); calibrate each apart")
    return judges[0] if judges else None
