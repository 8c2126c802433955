"""Checks what a calibration report is made from, and puts it into columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isograde.errors import CalibrationError
from isograde.records import Grade, GradeFailure, Item
from isograde.report.parts import Failure

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.intp]

__all__ = ["Cases", "Failures", "collect", "judge_facts"]

N_EXAMPLES = 3
_NO_ITEM = Item()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """Graded rows in columns; an unlabelled row's gold, and a rating that was not given, is NaN in these arrays.

    Attributes
    ----------
    n : int
        Rows handed in.
    n_labelled : int
        Of them with a gold label, graded or not.
    n_by_rule : int
        Blank outputs that the rubric grades by rule; they say nothing about the judge and are left out below.
    labels : tuple of str, length n_levels
    values : ndarray of float, shape (n_graded, n_levels) or (n_graded,)
        The judge's probabilities, or plain scores.
    score_range : pair of float or None
        For plain scores.
    row : ndarray of int, shape (n_graded,)
        Position in what was handed in.
    gold : ndarray of float, shape (n_graded,)
    group : ndarray of int, shape (n_graded,)
    items : list of Item, length n_graded
    raters : ndarray of float, shape (n_graded, n_raters), or None
        None where nobody gave several ratings.
    failures : tuple of Failure
    judge : tuple of pair of str
        What names the judge.
    """

    n: int
    n_labelled: int
    n_by_rule: int
    labels: tuple[str, ...]
    values: FloatArray
    score_range: tuple[float, float] | None
    row: IntArray
    gold: FloatArray
    group: IntArray
    items: list[Item]
    raters: FloatArray | None
    failures: tuple[Failure, ...]
    judge: tuple[tuple[str, str], ...]


class Failures:
    """Counts failures by status and keeps the first few of each."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}
        self._examples: dict[str, list[tuple[str, str]]] = {}

    def add(self, status: str, name: str, message: str) -> None:
        """Count one."""
        self._count[status] = self._count.get(status, 0) + 1
        examples = self._examples.setdefault(status, [])
        if len(examples) < N_EXAMPLES:
            examples.append((name, message[:300]))

    @property
    def n(self) -> int:
        """How many there are."""
        return sum(self._count.values())

    def found(self) -> tuple[Failure, ...]:
        """By status, the most frequent first."""
        order = sorted(self._count, key=lambda status: (-self._count[status], status))
        return tuple(Failure(status=s, count=self._count[s], examples=tuple(self._examples[s])) for s in order)


def collect(
    grades: Sequence[Grade | GradeFailure] | ArrayLike,
    gold: Sequence[float | None],
    *,
    raters: Sequence[Sequence[float | None]] | None,
    items: Sequence[Item] | None,
    n_levels: int | None,
    score_range: tuple[float, float] | None,
    labels: Sequence[str] | None,
) -> Cases:
    """Read what :func:`~isograde.report.calibration_report` takes.

    Raises
    ------
    CalibrationError
        The parts do not fit together; the message names the row.
    """
    given: list[Any] = list(grades)  # type: ignore[arg-type] # an ArrayLike that is no sequence is refused below by its rows
    if not given:
        raise CalibrationError("there are no rows to report on")
    for name, column in (("gold", gold), ("raters", raters), ("items", items)):
        if column is not None and len(column) != len(given):
            raise CalibrationError(f"{len(given)} grades and {len(column)} {name}; give one a row, None where there is none")
    failures = Failures()
    if any(isinstance(each, Grade | GradeFailure) for each in given):
        if n_levels is not None or score_range is not None:
            raise CalibrationError(
                "n_levels and score_range are for plain scores; grades carry their own scale, so leave them out"
            )
        kept, values, judge, labels = _of_grades(given, failures, labels)
    else:
        kept, values = _of_scores(given, items, failures)
        judge = ()
        count = len(labels) if labels is not None else 5
        labels = tuple(str(i) for i in range(n_levels or count)) if labels is None else tuple(labels)
        if n_levels not in (None, len(labels)):
            raise CalibrationError(f"{len(labels)} labels and n_levels is {n_levels}; give one a level")
    top = len(labels) - 1
    levels = _levels([[value] for value in gold], top, "gold")[:, 0]
    row = np.array(kept, dtype=np.intp)
    own = [_item(given[i], None if items is None else items[i]) for i in kept]
    return Cases(
        n=len(given),
        n_labelled=int(np.isfinite(levels).sum()),
        n_by_rule=len(given) - len(kept) - failures.n,
        labels=labels,
        values=values,
        score_range=score_range,
        row=row,
        gold=levels[row],
        group=_codes([item.group for item in own]),
        items=own,
        raters=_ratings(raters, top, row),
        failures=failures.found(),
        judge=judge,
    )


def judge_facts(grade: Grade) -> tuple[tuple[str, str], ...]:
    """What names the judge that gave a grade."""
    facts = {
        "model": grade.model,
        "adapter": grade.adapter,
        "rubric": f"{grade.rubric} ({grade.rubric_fingerprint})",
        "prompt": grade.prompt_fingerprint,
        "method": grade.method,
    }
    return tuple((name, value) for name, value in facts.items() if value is not None)


def _of_grades(
    given: list[Any], failures: Failures, labels: Sequence[str] | None
) -> tuple[list[int], FloatArray, tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Positions and probabilities of the rows with a grade; the judge; the labels."""
    kept: list[int] = []
    judge: tuple[tuple[str, str], ...] | None = None
    first: Grade | None = None
    for position, each in enumerate(given):
        if isinstance(each, GradeFailure):
            failures.add(each.status, _name(each.item, position), each.message)
            continue
        if not isinstance(each, Grade):
            raise CalibrationError(
                f"row {position}: {type(each).__name__} among grades; give grades and failures, or plain scores"
            )
        first = first or each
        if tuple(each.probabilities) != tuple(first.probabilities):
            raise CalibrationError(f"row {position}: its levels are not those of the first grade; report on one rubric at a time")
        if each.method == "blank_output":
            continue
        facts = judge_facts(each)
        if judge is not None and facts != judge:
            differing = ", ".join(dict.fromkeys(name for name, _ in sorted({*facts} ^ {*judge})))
            raise CalibrationError(f"row {position}: graded by another judge ({differing}); report on one judge at a time")
        judge = facts
        kept.append(position)
    if first is not None:
        if first.score is None or abs(first.score * (len(first.probabilities) - 1) - first.expected_level) > 1e-6:
            raise CalibrationError(
                "a choice has no order of levels; only grades by an ordered rubric can be compared with gold levels"
            )
        own = tuple(first.probabilities)
        if labels is not None and tuple(labels) != own:
            raise CalibrationError(f"labels are {', '.join(labels)} and the grades have {', '.join(own)}; leave labels out")
        labels = own
    labels = ("0", "1", "2", "3", "4") if labels is None else tuple(labels)
    values = np.array([given[i].distribution.probabilities for i in kept], dtype=np.float64).reshape(len(kept), len(labels))
    return kept, values, judge or (() if first is None else judge_facts(first)), labels


def _of_scores(given: list[Any], items: Sequence[Item] | None, failures: Failures) -> tuple[list[int], FloatArray]:
    """Positions and values of the rows with a finite score; others count as failed."""
    try:
        scores = np.array([np.nan if value is None else value for value in given], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CalibrationError(f"grades must be grades and failures, or one number a row: {error}") from None
    if scores.ndim != 1:
        raise CalibrationError(f"plain scores must have shape (n_items,), not {scores.shape}")
    kept = np.flatnonzero(np.isfinite(scores))
    for position in np.flatnonzero(~np.isfinite(scores)).tolist():
        failures.add("no_score", _name(None if items is None else items[position], position), "the score is absent or no number")
    return kept.tolist(), scores[kept]


def _levels(table: Sequence[Sequence[float | None]], top: int, name: str) -> FloatArray:
    """Levels on the scale; NaN for None."""
    width = max((len(row) for row in table), default=0)
    levels = np.full((len(table), width), np.nan)
    for position, row in enumerate(table):
        for column, value in enumerate(row):
            if value is not None and value == value:  # noqa: PLR0124 - NaN is how data frames write None
                levels[position, column] = value
    off = (levels < 0) | (levels > top)
    if off.any():
        position, column = np.argwhere(off)[0].tolist()
        raise CalibrationError(
            f"row {position}: {name} {levels[position, column]:g} is off the scale 0 … {top}; give level indices"
        )
    return levels


def _ratings(raters: Sequence[Sequence[float | None]] | None, top: int, row: IntArray) -> FloatArray | None:
    """Ratings of the graded rows; None where no row has two."""
    if raters is None:
        return None
    table = _levels(raters, top, "rating")[row]
    return table if len(table) and (np.isfinite(table).sum(axis=1) >= 2).any() else None


def _codes(groups: Sequence[Hashable]) -> IntArray:
    """One integer a group, by first appearance; None is a group of its own."""
    code: dict[Hashable, int] = {}
    return np.array([code.setdefault((i,) if g is None else g, len(code)) for i, g in enumerate(groups)], dtype=np.intp)


def _item(grade: object, item: Item | None) -> Item:
    """The item given apart, or the grade's own."""
    own = grade.item if isinstance(grade, Grade) else None
    return item or own or _NO_ITEM


def _name(item: Item | None, position: int) -> str:
    """An item's id, or its position."""
    return item.id if item is not None and item.id is not None else str(position)
