"""Judge habits: what the judge's level goes with beside gold. Association, not cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isograde.calibration import habit
from isograde.calibration.drift import holm
from isograde.records import Item
from isograde.report.columns import MAX_COLUMNS, MAX_LENGTH
from isograde.report.parts import Answer, Estimate, HabitRow, Habits
from isograde.report.text import number, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.intp]

__all__ = ["habit_table"]

# A column of words with more values than this is no category; a value of fewer rows is not looked at by itself.
MAX_VALUES = 8
MIN_ROWS = 10
ALPHA = 0.05
MAX_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """One thing that the level may go with: a value a row, NaN where it has none."""

    name: str
    subject: str
    values: FloatArray


def habit_table(level: FloatArray | None, gold: FloatArray, group: IntArray, items: Sequence[Item], *, no_level: str) -> Habits:
    """Look for differences in the judge's level, at equal gold, by length of the answer and by every metadata column.

    Parameters
    ----------
    level : ndarray of float, shape (n_items,), or None
        The judge's expected level.
    gold : ndarray of float, shape (n_items,)
    group : ndarray of int, shape (n_items,)
    items : sequence of Item, length n_items
    no_level : str
        Why there is no level.

    Returns
    -------
    Habits
    """
    if level is None or not len(gold):
        return Habits(answer=Answer(sentence=f"Not known: {no_level}."), rows=())
    looks = [*_length(items), *_columns(items)]
    found = []
    for look in looks:
        rows = np.flatnonzero(np.isfinite(look.values))
        found.append(habit(level[rows], gold[rows], look.values[rows], groups=group[rows]))
    kept = [(look, each) for look, each in zip(looks, found, strict=True) if each.p_value is not None]
    adjusted = holm([each.p_value for _, each in kept if each.p_value is not None])
    rows_made = tuple(
        HabitRow(
            name=look.name,
            difference=Estimate(value=each.slope, low=each.low, high=each.high, n=each.n),
            n_groups=each.n_groups,
            p_value=float(p),
            shown=bool(p < ALPHA),
        )
        for (look, each), p in zip(kept, adjusted, strict=True)
    )
    return Habits(answer=_answer([look.subject for look, _ in kept], rows_made), rows=rows_made)


def _length(items: Sequence[Item]) -> list[_Look]:
    """Doublings of the answer's length, in characters."""
    if any(item.output is None for item in items):
        return []
    doublings = np.log2([max(1, len((item.output or "").strip())) for item in items])
    return [_Look(name="answer twice as long", subject="Answers twice as long", values=doublings)]


def _columns(items: Sequence[Item]) -> list[_Look]:
    """Metadata: numbers as a slope by standard deviation, words of few values each against the other rows."""
    names = list(dict.fromkeys(name for item in items for name in item.metadata))
    looks: list[_Look] = []
    used = 0
    for name in names:
        made = _column(name, [item.metadata.get(name) for item in items])
        used += bool(made)
        if used > MAX_COLUMNS:
            break
        looks += made
    return looks


def _column(name: str, values: list[Any]) -> list[_Look]:
    """The looks at one column; none where it is of no use."""
    there = np.array([value is not None and value == value for value in values])  # noqa: PLR0124 - NaN is how data frames write None
    own = [value for value, given in zip(values, there.tolist(), strict=True) if given]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in own) and len(set(own)) > 2:
        numbers = np.array([float(value) if given else np.nan for value, given in zip(values, there.tolist(), strict=True)])
        spread = float(np.std(numbers[np.isfinite(numbers)]))
        if not np.isfinite(spread) or spread <= 0:
            return []
        subject = f"Items whose {name} is higher by {spread:.3g} (a standard deviation)"
        return [_Look(name=f"{name}, a standard deviation more", subject=subject, values=numbers / spread)]
    if not all(isinstance(value, str | bool | int | float) for value in own):
        return []
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in own]
    kinds = sorted(set(texts))
    if not 2 <= len(kinds) <= MAX_VALUES or max(map(len, kinds)) > MAX_LENGTH:
        return []
    looks = []
    column = np.full(len(values), -1)
    column[there] = [kinds.index(text) for text in texts]
    # Of two values the second says what the first does.
    for code, kind in enumerate(kinds[:1] if len(kinds) == 2 else kinds):
        if MIN_ROWS <= int((column == code).sum()) <= int(there.sum()) - MIN_ROWS:
            indicator = np.where(column < 0, np.nan, (column == code).astype(np.float64))
            looks.append(_Look(name=f"{name} = {kind}", subject=f"Items of {name} = {kind}", values=indicator))
    return looks


def _answer(subjects: Sequence[str], rows: Sequence[HabitRow]) -> Answer:
    """What stands out, strongest first."""
    if not rows:
        return Answer(sentence="Not known: there is nothing to look at beside gold; give metadata columns or more labels.")
    looks = f"{plural(len(rows), 'look')}, corrected for {'it' if len(rows) == 1 else 'their number'}"
    order = sorted(range(len(rows)), key=lambda i: -abs(rows[i].difference.value or 0))
    shown = [i for i in order if rows[i].shown]
    if not shown:
        return Answer(
            sentence=f"No habit is shown: nothing but quality stands out in {looks}.",
            details=("That is no proof that there is none: an interval says how large one may still be.",),
        )
    first, *others = [_in_words(subjects[i], rows[i].difference) for i in shown]
    return Answer(
        sentence=f"{first}.",
        details=(
            *(f"{each}." for each in others[:MAX_NAMED]),
            f"An association in {looks}, not a cause: what goes with it, or quality that noisy labels missed, may be behind it.",
        ),
    )


def _in_words(subject: str, difference: Estimate) -> str:
    """One difference as a sentence without its end."""
    value, low, high = difference.value or 0.0, difference.low or 0.0, difference.high or 0.0
    more = value > 0
    near, far = (low, high) if more else (-high, -low)
    return (
        f"{subject} get {number(abs(value))} levels {'more' if more else 'less'} from the judge than equally good others "
        f"({number(near)} to {number(far)})"
    )
