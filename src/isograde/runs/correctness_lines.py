"""Results of answer correctness as lines of a file: JSONL (read back, and recomputed) and CSV (for people)."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

from pydantic import BaseModel, ConfigDict

from isograde.correctness import Claim, Correctness, CorrectnessFailure, Counts, expected_f_beta
from isograde.correctness.asking import CorrectnessStatus
from isograde.correctness.combine import Rule, Settings, combined
from isograde.correctness.counts import RecallOver
from isograde.datasets import Row
from isograde.errors import UserError
from isograde.records import Grade, GradeFailure
from isograde.runs.results import CalibratedLine, json_line, new_file, safe_cell

__all__ = ["CorrectnessFailureLine", "CorrectnessLine", "CorrectnessWriter", "correctness_line", "recompute"]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ClaimLine(_Model):
    """As :class:`isograde.correctness.Claim`."""

    text: str
    supported: bool
    probability: float | None


class RubricLine(_Model):
    """The rubric grade of the same item, or why there is none."""

    rubric: str | None
    status: str
    message: str | None = None
    score: float | None = None
    label: str | None = None
    level: int | None = None
    passed: bool | None = None
    expected_level: float | None = None
    observed_mass: float | None = None
    probabilities: dict[str, float] | None = None
    calibrated_score: float | None = None
    rubric_fingerprint: str | None = None
    prompt_fingerprint: str | None = None
    adapter: str | None = None
    caveat: str | None = None


class PartFailureLine(_Model):
    """A part that could not be had and that the value does not need."""

    part: str | None
    status: str
    message: str


class UsageLine(_Model):
    """As :class:`isograde.records.Usage`."""

    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None


class _Line(_Model):
    """What every line says of its row."""

    id: str
    index: int
    group: str | None
    metric: Literal["claim_f1"] = "claim_f1"


class _Cost(_Model):
    """What every line says at its end."""

    rubric: RubricLine | None
    usage_by_part: dict[str, UsageLine]
    seconds_by_part: dict[str, float]
    gold: float | None
    raters: tuple[float | None, ...]
    metadata: dict[str, Any]


class CorrectnessLine(_Cost, _Line):
    """A scored row; the words are those of :class:`isograde.correctness.Correctness`."""

    status: Literal["scored"] = "scored"
    value: float | None
    reason: str | None
    rule: Rule | None
    f_beta: float | None
    precision: float | None
    recall: float | None
    expected_f_beta: float | None
    f_beta_spread: float | None
    similarity: float | None
    tp_response: int
    fp: int
    tp_reference: int
    fn: int
    response_claims: tuple[ClaimLine, ...]
    reference_claims: tuple[ClaimLine, ...]
    weights: tuple[float, float]
    beta: float
    recall_over: RecallOver
    method: dict[str, str]
    refused: bool
    identical: bool
    reference_index: int | None
    caveat: str | None
    calibrated: CalibratedLine | None = None
    failures: tuple[PartFailureLine, ...]


class CorrectnessFailureLine(_Cost, _Line):
    """A row that could not be scored: why, and nothing that could be taken for a score."""

    status: CorrectnessStatus
    message: str
    part: str | None
    raw: str | None


def correctness_line(row: Row, result: Correctness | CorrectnessFailure) -> CorrectnessLine | CorrectnessFailureLine:
    """Write a row and its result as a line."""
    about: dict[str, Any] = {
        "id": row.key,
        "index": row.index,
        "group": row.item.group,
        "rubric": _rubric(result.rubric),
        "usage_by_part": {part: UsageLine(**asdict(usage)) for part, usage in result.usage_by_part.items()},
        "seconds_by_part": {part: round(seconds, 6) for part, seconds in result.seconds_by_part.items()},
        "gold": row.gold,
        "raters": row.raters,
        "metadata": dict(row.item.metadata),
    }
    if isinstance(result, CorrectnessFailure):
        named = {name: getattr(result, name) for name in ("status", "message", "part", "raw")}
        return CorrectnessFailureLine.model_construct(**about, **named)
    counted = asdict(result.counts)
    kept = set(CorrectnessLine.model_fields) - set(about) - set(counted) - {"metric", "status"}
    own = {"response_claims", "reference_claims", "calibrated", "failures"}
    values = {name: getattr(result, name) for name in kept - own}
    return CorrectnessLine.model_construct(
        **about,
        **counted,
        **values,
        status="scored",
        response_claims=tuple(map(_claim, result.response_claims)),
        reference_claims=tuple(map(_claim, result.reference_claims)),
        calibrated=None if result.calibrated is None else CalibratedLine.model_construct(**asdict(result.calibrated)),
        failures=tuple(PartFailureLine(part=each.part, status=each.status, message=each.message) for each in result.failures),
    )


def _claim(claim: Claim) -> ClaimLine:
    return ClaimLine(text=claim.text, supported=claim.supported, probability=claim.probability)


def _rubric(grade: Grade | GradeFailure | None) -> RubricLine | None:
    """Write what the rubric says."""
    if grade is None:
        return None
    if isinstance(grade, GradeFailure):
        return RubricLine(rubric=grade.rubric, status=grade.status, message=grade.message)
    same = ("rubric", "score", "label", "level", "passed", "probabilities", "expected_level", "adapter", "caveat")
    return RubricLine(
        status="graded",
        **{name: getattr(grade, name) for name in (*same, "rubric_fingerprint", "prompt_fingerprint")},
        observed_mass=grade.distribution.observed_mass,
        calibrated_score=None if grade.calibrated is None else grade.calibrated.score,
    )


def recompute(line: CorrectnessLine | Mapping[str, Any]) -> dict[str, float | None]:
    """Compute a saved line's figures again, from the claims, the rule, the similarity and the settings that it holds.

    Parameters
    ----------
    line : CorrectnessLine or mapping
        A line of ``isograde score --metric claim_f1`` with status «scored».

    Returns
    -------
    dict
        ``value``, ``f_beta``, ``precision``, ``recall``, ``expected_f_beta``, ``f_beta_spread``.

    Examples
    --------
    >>> from isograde.correctness import Correctness, Counts
    >>> from isograde.records import Item
    >>> result = Correctness(value=1.0, f_beta=1.0, counts=Counts(tp_response=0, fp=0, tp_reference=0, fn=0), rule="identical")
    >>> recompute(correctness_line(Row(item=Item(), index=0), result))["value"]
    1.0
    """
    line = line if isinstance(line, CorrectnessLine) else CorrectnessLine.model_validate(line)
    ours, theirs = line.response_claims, line.reference_claims
    right, covered = sum(claim.supported for claim in ours), sum(claim.supported for claim in theirs)
    counts = Counts(tp_response=right, fp=len(ours) - right, tp_reference=covered, fn=len(theirs) - covered)
    settings = Settings(weights=line.weights, beta=line.beta, recall_over=line.recall_over)
    parts = combined(counts, line.similarity, settings, rule=line.rule)
    expected: tuple[float | None, float | None] = (None, None)
    p, q = ([claim.probability for claim in side if claim.probability is not None] for side in (ours, theirs))
    if line.rule is None and len(p) == len(ours) and len(q) == len(theirs):
        expected = expected_f_beta(p, q, beta=line.beta, recall_over=line.recall_over) or (None, None)
    return {
        "value": parts.value,
        "f_beta": parts.f_beta,
        "precision": parts.precision,
        "recall": parts.recall,
        "expected_f_beta": expected[0],
        "f_beta_spread": expected[1],
    }


_CELLS = (
    "id", "index", "group", "status", "value", "f_beta", "precision", "recall", "expected_f_beta", "f_beta_spread", "similarity",
    "tp_response", "fp", "tp_reference", "fn", "refused", "identical", "reason", "caveat", "gold", "part", "message",
)  # fmt: skip
_MORE = ("rubric", "rubric_label", "response_claims", "reference_claims", "input_tokens", "output_tokens", "seconds")


class CorrectnessWriter:
    """Write lines as they come, as JSONL or, for a path ending in .csv, as CSV.

    Parameters
    ----------
    target : pathlib.Path or text stream
        A path is opened when the first line is written.
    force : bool
        Whether a file that is there already is written over.

    Raises
    ------
    UserError
        If the file is there already, or cannot be written.
    """

    def __init__(self, target: Path | IO[str], *, force: bool = False) -> None:
        self._target = target
        self._file: IO[str] | None = None
        self._write: Callable[[CorrectnessLine | CorrectnessFailureLine], Any] | None = None
        self.n_written = 0
        if isinstance(target, Path):
            new_file(target, force=force)

    def write(self, row: Row, result: Correctness | CorrectnessFailure) -> None:
        """Append one line."""
        if self._write is None:
            self._write = self._opened()
        self._write(correctness_line(row, result))
        self.n_written += 1

    def _opened(self) -> Callable[[CorrectnessLine | CorrectnessFailureLine], Any]:
        try:
            file = (
                self._target.open("w", encoding="utf-8", newline="", buffering=1)
                if isinstance(self._target, Path)
                else self._target
            )
        except OSError as error:
            raise UserError(f"{self._target}: cannot be written: {error.strerror}") from None
        self._file = file
        if not (isinstance(self._target, Path) and self._target.suffix.lower() == ".csv"):
            return lambda line: file.write(json_line(_content(line)))
        table = csv.DictWriter(file, [*_CELLS, *_MORE], restval="", lineterminator="\n")
        table.writeheader()
        return lambda line: table.writerow(_cells(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None and isinstance(self._target, Path):
            self._file.close()


def _content(line: CorrectnessLine | CorrectnessFailureLine) -> dict[str, Any]:
    """Give a line's fields in the order in which they are read: who, what, and at the end what it cost."""
    content = line.model_dump()
    last = [name for name in _Cost.model_fields if name != "rubric"]
    first = [*_Line.model_fields, "status"]
    return {name: content[name] for name in [*first, *(n for n in content if n not in {*first, *last}), *last]}


def _cells(line: CorrectnessLine | CorrectnessFailureLine) -> dict[str, Any]:
    """Cells of a CSV row, with nothing that a spreadsheet would run."""
    cells: dict[str, Any] = {name: getattr(line, name, None) for name in _CELLS}
    if line.rubric is not None:
        cells |= {"rubric": line.rubric.score, "rubric_label": line.rubric.label}
    if isinstance(line, CorrectnessLine):
        for side in ("response_claims", "reference_claims"):
            cells[side] = "\n".join(f"{'✓' if claim.supported else '✗'} {claim.text}" for claim in getattr(line, side))
    for name in ("input_tokens", "output_tokens"):
        counted = [getattr(usage, name) for usage in line.usage_by_part.values() if getattr(usage, name) is not None]
        cells[name] = sum(counted) if counted else None
    cells["seconds"] = round(sum(line.seconds_by_part.values()), 6)
    return {name: safe_cell(value) for name, value in cells.items()}
