"""Has the judge, or the data, moved since a calibrator was fitted: what ``isograde check`` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isograde.applied import judge_of
from isograde.calibration.drift import Drift, DriftTest, data_drift, judge_drift
from isograde.datasets import read_rows
from isograde.errors import CalibrationError
from isograde.judge import Judge
from isograde.records import Grade, GradeFailure, Item
from isograde.runs.calibrate import grade_of, graded_by, only_rubric, read_grades
from isograde.runs.gold import GoldItem

if TYPE_CHECKING:
    from isograde.calibration import Calibrator
    from isograde.report.drift import DriftReport

__all__ = ["check", "grade_again", "split_grades"]

Graded = dict[str, Grade | GradeFailure]


def grade_again(judge: Judge, gold: Sequence[GoldItem], *, on_grade: Callable[..., Any]) -> Graded:
    """Grade the gold items anew.

    Returns
    -------
    dict
        Grade or failure by the gold item's id.
    """
    n_levels = len(judge.rubric.labels)
    if n_levels != len(gold[0].probabilities):
        raise CalibrationError(
            f"rubric {judge.rubric.name} has {n_levels} levels and the gold items {len(gold[0].probabilities)}; "
            "name the rubric that the calibrator was fitted for (--rubric)"
        )
    rows = list(read_rows([each.item for each in gold], labels=judge.rubric.labels))
    found = graded_by(judge, rows, on_grade=on_grade)
    return {row.key: grade for row, grade in zip(found.rows, found.grades or (), strict=True)}


def split_grades(path: Path, gold: Sequence[GoldItem], *, rubric: str | None) -> tuple[Graded, list[Grade]]:
    """Read new grades: those of gold items, by id, and those of other rows.

    Raises
    ------
    DataError
        If the file cannot be read, or holds several rubrics and none is named.
    """
    lines = read_grades(path)
    wanted = rubric or only_rubric(lines, path)
    items = {each.id: each.item for each in gold}
    again: Graded = {}
    new: list[Grade] = []
    for (key, name), line in lines.items():
        if name != wanted:
            continue
        grade = grade_of(line, items.get(key) or Item(id=line.id, group=line.group))
        if key in items:
            again[key] = grade
        elif isinstance(grade, Grade):
            new.append(grade)
    return again, new


def check(
    calibrator: Calibrator,
    gold: Sequence[GoldItem],
    again: Graded,
    new: Sequence[Grade] = (),
    *,
    alpha: float = 0.05,
    tolerance: float = 0.05,
    title: str = "Drift check",
    rng: int | None = None,
) -> DriftReport:
    """Compare then and now.

    Parameters
    ----------
    calibrator : Calibrator
        It names the judge that it was fitted on.
    gold : sequence of GoldItem
        The gold items, with what the judge said of them then.
    again : dict
        What it says of them now, by id; none tests nothing about the judge.
    new : sequence of Grade
        New rows; none tests nothing about the data.
    alpha, tolerance : float
        See :class:`~isograde.calibration.drift.Drift`.
    title : str
    rng : int or None
        Seed of the permutations; None is a fixed one.

    Returns
    -------
    DriftReport

    Raises
    ------
    CalibrationError
        If there is nothing to compare, or the gold items are not those of the calibrator.
    """
    from isograde.report.drift import drift_report
    from isograde.report.inputs import Failures

    if len(gold) != calibrator.provenance_.n:
        raise CalibrationError(
            f"the calibrator was fitted on {calibrator.provenance_.n} gold items and {len(gold)} are stored; the two files do "
            "not belong together"
        )
    pairs = [(item, again[item.id]) for item in gold if item.id in again]
    read = [(item, grade) for item, grade in pairs if isinstance(grade, Grade)]
    failures = Failures()
    for item, grade in pairs:
        if isinstance(grade, GradeFailure):
            failures.add(grade.status, item.id, grade.message)
    asked = [grade for grade in new if grade.method != "blank_output"]
    if not read and not asked:
        raise CalibrationError("there is nothing to compare: no gold item has a new grade, and there are no new rows")
    fitted = calibrator.provenance_.judge
    one = next((grade for _, grade in read), None) or asked[0]
    different = () if fitted is None else tuple(fitted.differences(judge_of(one)))
    if fitted is not None and fitted.rubric != judge_of(one).rubric:
        raise CalibrationError(
            f"the calibrator was fitted for another rubric than the grades' {one.rubric}, or another form of it"
        )
    tests: list[DriftTest] = []
    changed: float | None = None
    if read:
        before = np.array([item.probabilities for item, _ in read])
        after = np.array([grade.distribution.probabilities for _, grade in read])
        tests += judge_drift(before, after, [item.gold for item, _ in read], groups=[item.group for item, _ in read], rng=rng)
        changed = float((before.argmax(axis=1) != after.argmax(axis=1)).mean())
    if asked:
        tests += data_drift(
            [item.probabilities for item in gold],
            [grade.distribution.probabilities for grade in asked],
            groups=[item.group for item in gold],
            new_groups=[None if grade.item is None else grade.item.group for grade in asked],
            rng=rng,
        )
    return drift_report(
        Drift.of(tests, alpha=alpha, tolerance=tolerance),
        n_gold=len(gold),
        n_missing=len(gold) - len(pairs) if pairs else 0,
        n_new=len(asked),
        failures=failures.found(),
        differences=different,
        share_changed=changed,
        title=title,
    )
