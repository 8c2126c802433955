"""A graded run and its gold labels, joined by id: what ``isograde compare`` and ``isograde estimate`` begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from isograde.calibration import JudgeFingerprint
from isograde.datasets import read_rows
from isograde.errors import DataError, UserError
from isograde.runs.calibrate import only_rubric, read_grades
from isograde.runs.results import FailureLine, GradeLine
from isograde.runs.sample import INCLUSION, rater_columns

__all__ = ["GoldFile", "Graded", "read_graded"]

_LABELS = ("0", "1", "2", "3", "4")  # where no row is graded and nothing says what the levels are


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldFile:
    """A file of gold labels, joined by id.

    Attributes
    ----------
    path : pathlib.Path
    columns : tuple of str
        One a rater; where empty, the columns rater_1, rater_2 … that ``isograde sample`` writes, or else the column gold.
    scale : pair of float or None
        Values that stand for the lowest and the highest level; the rubric's numbers where not given.
    """

    path: Path
    columns: tuple[str, ...] = ()
    scale: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """A run by one ordered rubric and one judge.

    Attributes
    ----------
    path : pathlib.Path
    lines : dict of str to GradeLine or FailureLine
        By id.
    gold : dict of str to float
        Level index by id, of labelled rows that the run has.
    inclusion : dict of str to float
        Probability with which a labelled row was drawn, by id, where its sheet says so.
    """

    path: Path
    lines: dict[str, GradeLine | FailureLine]
    gold: dict[str, float]
    inclusion: dict[str, float]

    @property
    def judge(self) -> JudgeFingerprint | None:
        """The judge; None where it graded nothing itself."""
        return next((_judge_of(line) for line in self.lines.values() if _by_judge(line)), None)

    def facts(self) -> tuple[tuple[str, str], ...]:
        """What names the judge, for people."""
        line = next((line for line in self.lines.values() if isinstance(line, GradeLine)), None)
        if line is None:
            return ()
        facts = {"model": line.model, "adapter": line.adapter, "rubric": f"{line.rubric} ({line.rubric_fingerprint})"}
        return tuple((name, value) for name, value in facts.items() if value is not None)


def read_graded(path: Path, gold: GoldFile | None = None, *, rubric: str | None = None) -> Graded:
    """Read the grades that ``isograde score`` wrote, and their gold labels.

    Parameters
    ----------
    path : pathlib.Path
    gold : GoldFile or None
        Where not given, the labels are those that the grades carry.
    rubric : str or None
        Whose grades, where the file holds several rubrics'.

    Returns
    -------
    Graded

    Raises
    ------
    DataError
        A file cannot be read, or no gold label is of a graded row.
    UserError
        The rubric is not in the file or has no order, or the grades are of several judges.
    """
    every = read_grades(path)
    wanted = rubric or only_rubric(every, path)
    lines = {key: line for (key, name), line in every.items() if name == wanted}
    if not lines:
        raise UserError(f"{path}: holds no grades by {wanted}; found: {', '.join(sorted({name for _, name in every}))}")
    graded = [line for line in lines.values() if isinstance(line, GradeLine)]
    if any(line.score is None for line in graded):
        raise UserError(f"{path}: rubric {wanted} is a choice without order, so its grades have no mean")
    own = [line for line in graded if _by_judge(line)]
    for line in own[1:]:
        if different := _judge_of(own[0]).differences(_judge_of(line)):
            raise UserError(f"{path}: the grades are of different judges ({'; '.join(different)}); grade all rows by one")
    levels = {key: line.gold for key, line in lines.items() if line.gold is not None}
    inclusion: dict[str, float] = {}
    if gold is not None:
        levels, inclusion = _read_gold(gold, tuple(graded[0].probabilities) if graded else _LABELS, known=lines)
    return Graded(path=path, lines=lines, gold=levels, inclusion=inclusion)


def _by_judge(line: GradeLine | FailureLine) -> bool:
    """Whether a judge gave the grade; a blank output's is given by rule, whoever judges."""
    return isinstance(line, GradeLine) and line.method != "blank_output"


def _judge_of(line: GradeLine | FailureLine) -> JudgeFingerprint:
    """Name the judge of a graded line."""
    assert isinstance(line, GradeLine)  # noqa: S101 - _by_judge has looked
    return JudgeFingerprint(
        model=line.model,
        adapter=line.adapter,
        rubric=line.rubric_fingerprint,
        prompt=line.prompt_fingerprint,
        labels=tuple(line.probabilities),
        method=line.method,
    )


def _read_gold(
    gold: GoldFile, labels: tuple[str, ...], *, known: Mapping[str, object]
) -> tuple[dict[str, float], dict[str, float]]:
    """Read gold levels and inclusion probabilities by id."""
    found = read_rows(gold.path, gold=[]).columns
    if "id" not in found:
        raise DataError(f"{gold.path}: has no column id; gold labels are joined by id; columns found: {', '.join(found)}")
    columns = list(gold.columns) or rater_columns(found) or ["gold"]
    if missing := [name for name in columns if name not in found]:
        raise DataError(f"{gold.path}: has no column {', '.join(missing)}; columns found: {', '.join(found)}")
    rows = [row for row in read_rows(gold.path, gold=columns, gold_scale=gold.scale, labels=labels) if row.gold is not None]
    if not rows:
        raise DataError(f"{gold.path}: no row has a gold label in {', '.join(columns)}")
    kept = [row for row in rows if row.key in known]
    if not kept:
        raise DataError(
            f"{gold.path}: no labelled row is in the grades; its ids begin {rows[0].key!r}, theirs {next(iter(known))!r}"
        )
    inclusion = {row.key: row.item.metadata.get(INCLUSION) for row in kept}
    drawn = {}
    for row in kept:
        value = inclusion[row.key]
        if value is None or value == "":
            continue
        try:
            drawn[row.key] = float(value)
        except (TypeError, ValueError):
            raise DataError(f"{gold.path}, {row.place}: {INCLUSION} {value!r} is no number") from None
    if drawn and len(drawn) < len(kept):
        without = next(row for row in kept if row.key not in drawn)
        raise DataError(f"{gold.path}, {without.place} (id {without.key!r}): has no {INCLUSION}, and other rows have one")
    return {row.key: row.gold for row in kept if row.gold is not None}, drawn
