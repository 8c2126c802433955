"""Graded rows as lines of a file: JSONL (read back by other commands) and CSV (for people)."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict

from isograde.datasets import Row
from isograde.errors import UserError
from isograde.records import Calibrated, FailureStatus, Grade, GradeFailure, Method

if TYPE_CHECKING:
    from isograde.report.models import Report

__all__ = [
    "FailureLine",
    "GradeLine",
    "ResultWriter",
    "grades_file",
    "json_line",
    "line_of",
    "line_text",
    "new_file",
    "report_file",
    "safe_cell",
    "write_report",
]


class _Line(BaseModel):
    """What every line says of its row."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    index: int
    group: str | None
    rubric: str


class IntervalLine(BaseModel):
    """As :class:`isograde.records.LevelInterval`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: float
    high: float
    levels: tuple[str, ...]
    confidence_level: float
    reason: str | None = None


class CalibratedLine(BaseModel):
    """As :class:`isograde.records.Calibrated`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: float
    score: float
    probabilities: dict[str, float]
    p_pass: float
    interval: IntervalLine | None = None  # not in the lines of versions that had no intervals


class GradeLine(_Line):
    """A graded row; the words are those of :class:`isograde.records.Grade` and :class:`~isograde.records.LevelDistribution`."""

    status: Literal["graded"] = "graded"
    score: float | None
    label: str
    level: int
    passed: bool | None
    confidence: float
    probabilities: dict[str, float]
    expected_level: float
    expected_level_bounds: tuple[float, float]
    observed_mass: float
    missing_levels: tuple[str, ...]
    prefix_probability: float | None
    reference_index: int | None
    n_samples: int | None = None
    n_invalid: int | None = None
    expected_level_sd: float | None = None
    calibrated: CalibratedLine | None
    caveat: str | None
    gold: float | None
    raters: tuple[float | None, ...]
    model: str
    adapter: str | None
    method: Method
    rubric_fingerprint: str
    prompt_fingerprint: str
    question_fingerprint: str | None = None  # not in the lines of the first version
    server: str | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    latency_s: float | None
    metadata: dict[str, Any]


class FailureLine(_Line):
    """A row that could not be graded: why, and nothing that could be taken for a score."""

    status: FailureStatus
    message: str
    gold: float | None
    raters: tuple[float | None, ...]
    metadata: dict[str, Any]


def line_of(row: Row, grade: Grade | GradeFailure) -> GradeLine | FailureLine:
    """Write a row and its grade as a line.

    Parameters
    ----------
    row : Row
        Where the item came from, with its gold label.
    grade : Grade or GradeFailure

    Returns
    -------
    GradeLine or FailureLine
    """
    item = row.item
    about: dict[str, Any] = {
        "id": row.key,
        "index": row.index,
        "group": item.group,
        "rubric": grade.rubric or "",
        "gold": row.gold,
        "raters": row.raters,
        "metadata": dict(item.metadata),
    }
    if isinstance(grade, GradeFailure):
        return FailureLine.model_construct(**about, status=grade.status, message=grade.message)
    seen, usage = grade.distribution, grade.usage
    return GradeLine.model_construct(
        **about,
        status="graded",
        score=grade.score,
        label=grade.label,
        level=grade.level,
        passed=grade.passed,
        confidence=grade.confidence,
        probabilities=grade.probabilities,
        expected_level=seen.expected_level,
        expected_level_bounds=seen.expected_level_bounds,
        observed_mass=seen.observed_mass,
        missing_levels=seen.missing_levels,
        prefix_probability=seen.prefix_probability,
        reference_index=grade.reference_index,
        n_samples=grade.samples and grade.samples.n,
        n_invalid=grade.samples and grade.samples.n_invalid,
        expected_level_sd=grade.samples and grade.samples.sd,
        calibrated=None if grade.calibrated is None else _calibrated(grade.calibrated),
        caveat=grade.caveat,
        model=grade.model,
        adapter=grade.adapter,
        method=grade.method,
        rubric_fingerprint=grade.rubric_fingerprint,
        prompt_fingerprint=grade.prompt_fingerprint,
        question_fingerprint=grade.question_fingerprint,
        server=grade.server,
        input_tokens=usage and usage.input_tokens,
        output_tokens=usage and usage.output_tokens,
        cached_tokens=usage and usage.cached_tokens,
        latency_s=None if grade.latency_s is None else round(grade.latency_s, 6),
    )


def _calibrated(values: Calibrated) -> CalibratedLine:
    """Write the calibrated values of a line."""
    content = asdict(values)
    interval = content.pop("interval")
    return CalibratedLine.model_construct(
        **content, interval=None if interval is None else IntervalLine.model_construct(**interval)
    )


_ORDER = [*GradeLine.model_fields]
_GRADES = (".jsonl", ".ndjson", ".csv", "")  # a name without an ending is a pipe or a device
_REPORTS = {".html": "to_html", ".md": "to_markdown", ".json": "to_json"}
_CALIBRATED = ("level", "score", "p_pass")
_INTERVAL = ("low", "high")
_NESTED = {"probabilities", "metadata", "calibrated", "expected_level_bounds"}
_CELLS = [name for name in _ORDER if name not in _NESTED] + ["expected_level_low", "expected_level_high"]


def line_text(line: GradeLine | FailureLine) -> str:
    """Write a graded row or a failure as JSON."""
    content = {name: getattr(line, name) for name in _ORDER if name in type(line).model_fields}
    if isinstance(line, FailureLine):
        content["message"] = line.message
    elif line.calibrated is not None:
        content["calibrated"] = line.calibrated.model_dump()
    return json_line(content)


def json_line(content: Mapping[str, Any]) -> str:
    """Write one line of JSON that any reader takes: no NaN, no lone surrogates, no line break but the last."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, TypeError):  # metadata may hold what JSON or UTF-8 has not
        text = json.dumps(_jsonable(content))
    return text + "\n"


def _jsonable(value: Any) -> Any:
    """Bring metadata of any kind into what JSON has: null for NaN and infinities, numbers for NumPy's, text for the rest."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): _jsonable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(each) for each in value]
    if hasattr(value, "tolist"):
        return _jsonable(value.tolist())
    return str(value)


def new_file(name: str | Path, *, force: bool, apart_from: Sequence[str | Path] = ()) -> Path:
    """Check, before anything is spent, that a file can be written and that nothing else of the run is lost by it.

    Parameters
    ----------
    name : str or pathlib.Path
    force : bool
        Whether a file that is there already may be written over.
    apart_from : sequence of str or pathlib.Path
        The run's other files, which it must not be even if forced.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    UserError
        If it is another file of the run, is there already and not forced, or its folder is not there.
    """
    path = Path(name)
    if path.is_dir():
        raise UserError(f"{path}: is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder {path.parent} is not there")
    for other in apart_from:
        if path == Path(other) or (path.exists() and Path(other).exists() and path.samefile(other)):
            raise UserError(f"{path}: is read or written by this command already; give another name")
    if path.is_file() and path.stat().st_size and not force:
        raise UserError(f"{path} is there already and may hold work; --force writes over it, another name keeps it")
    return path


def grades_file(name: str, *, force: bool, apart_from: Sequence[str | Path] = ()) -> Path:
    """Check, before anything is spent, that grades can be written.

    Raises
    ------
    UserError
        As :func:`new_file`, and if the name's ending says another format than JSONL or CSV.
    """
    path = new_file(name, force=force, apart_from=apart_from)
    if path.suffix.lower() not in _GRADES:
        raise UserError(f"{path}: grades are written as {', '.join(filter(None, _GRADES))}; end the name so")
    return path


def report_file(name: str | Path, *, force: bool, apart_from: Sequence[str | Path] = ()) -> Path:
    """Check, before anything is spent, that a report can be written.

    Raises
    ------
    UserError
        As :func:`new_file`, and if the name does not say whether it is HTML, Markdown or JSON.
    """
    path = new_file(name, force=force, apart_from=apart_from)
    if path.suffix.lower() not in _REPORTS:
        raise UserError(f"--report {path}: end the name in {', '.join(_REPORTS)}")
    return path


def write_report(path: Path, report: Report) -> None:
    """Write a report as its file's name says: HTML, Markdown or JSON."""
    text: str = getattr(report, _REPORTS[path.suffix.lower()])()
    path.write_text(text, encoding="utf-8")


class ResultWriter:
    """Write lines as they come, as JSONL or, for a path ending in .csv, as CSV.

    Parameters
    ----------
    target : pathlib.Path or text stream
        Where to write; a path is opened when the first line is written, so that a run that never starts leaves nothing behind.
    labels : mapping of str to tuple of str
        Level labels of each rubric of the run; CSV gives each a column.
    force : bool
        Whether a file that is there already is written over.
    append : bool
        Whether a file that is there already is gone on with.

    Raises
    ------
    UserError
        If the file is there already, or cannot be written.
    """

    def __init__(
        self, target: Path | IO[str], labels: Mapping[str, tuple[str, ...]], *, force: bool = False, append: bool = False
    ) -> None:
        self._target = target
        self._append = append
        self._labels = list(dict.fromkeys(label for each in labels.values() for label in each))
        self._file: IO[str] | None = None
        self._write: Callable[[GradeLine | FailureLine], Any] | None = None
        self.n_written = 0
        if isinstance(target, Path):
            new_file(target, force=force or append)

    def write(self, row: Row, grade: Grade | GradeFailure) -> None:
        """Append one line."""
        line = line_of(row, grade)
        if self._write is None:
            self._write = self._opened(line)
        self._write(line)
        self.n_written += 1

    def _opened(self, first: GradeLine | FailureLine) -> Callable[[GradeLine | FailureLine], Any]:
        """Open the file; a CSV's own columns are those of its first row's metadata."""
        if not isinstance(self._target, Path):
            self._file = self._target
        else:
            try:
                self._file = self._target.open("a" if self._append else "w", encoding="utf-8", newline="", buffering=1)
            except OSError as error:
                raise UserError(f"{self._target}: cannot be written: {error.strerror}") from None
        file = self._file
        if not (isinstance(self._target, Path) and self._target.suffix.lower() == ".csv"):
            return lambda line: file.write(line_text(line))
        own = {f"metadata.{name}": name for name in first.metadata}
        calibrated = [f"calibrated_{name}" for name in (*_CALIBRATED, *_INTERVAL)]
        levels = [f"p_{label}" for label in self._labels]
        table = csv.DictWriter(file, [*_CELLS, *calibrated, "message", *levels, *own], restval="", lineterminator="\n")
        table.writeheader()
        return lambda line: table.writerow(
            {**_cells(line), **{cell: safe_cell(line.metadata.get(name)) for cell, name in own.items()}}
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None and isinstance(self._target, Path):
            self._file.close()


def _cells(line: GradeLine | FailureLine) -> dict[str, Any]:
    """Cells of a CSV row, with nothing that a spreadsheet would run."""
    cells: dict[str, Any] = {name: getattr(line, name, None) for name in _CELLS}
    cells["raters"] = ";".join("" if level is None else f"{level:g}" for level in line.raters)
    if isinstance(line, FailureLine):
        cells["message"] = line.message
    else:
        cells["expected_level_low"], cells["expected_level_high"] = line.expected_level_bounds
        cells["missing_levels"] = " ".join(line.missing_levels)
        cells |= {f"p_{label}": p for label, p in line.probabilities.items()}
        if line.calibrated is not None:
            cells |= {f"calibrated_{name}": getattr(line.calibrated, name) for name in _CALIBRATED}
            if line.calibrated.interval is not None:
                cells |= {f"calibrated_{name}": getattr(line.calibrated.interval, name) for name in _INTERVAL}
    return {name: safe_cell(value) for name, value in cells.items()}


def safe_cell(value: Any) -> Any:
    """Keep text from acting as a formula by an apostrophe, which can be taken off again; lone surrogates are replaced."""
    if value is None or isinstance(value, int | float):
        return "" if value is None else value
    value = value if isinstance(value, str) else json.dumps(_jsonable(value), ensure_ascii=False)
    value = value.encode("utf-8", "replace").decode()
    return f"'{value}" if value.lstrip().startswith(("=", "+", "-", "@", "'")) or value.startswith(("\t", "\r")) else value
