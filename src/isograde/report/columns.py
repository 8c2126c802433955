"""Which metadata columns cut the rows into slices worth a table."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from isograde.report.text import number

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MAX_COLUMNS", "MAX_VALUES", "Columns"]

MAX_COLUMNS = 12
MAX_VALUES = 20
MAX_LENGTH = 40


class _Column:
    """One column's values: a code each while they are few, and the numbers themselves while all are numbers."""

    def __init__(self) -> None:
        self.code: dict[str, int] = {}
        self.codes = array("b")
        self.numbers: array[float] | None = array("d")
        self.many = False
        self.dead = False

    def add(self, position: int, value: Any) -> None:
        """Take the value of a row; rows that were skipped had none."""
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        if not numeric:
            self.numbers = None
        text = f"{value:g}" if isinstance(value, float) else str(value)
        self.many = self.many or (text not in self.code and len(self.code) == MAX_VALUES)
        if len(text) > MAX_LENGTH or not (numeric or isinstance(value, str | bool)) or (self.many and self.numbers is None):
            self.dead = True
            return
        if not self.many:
            self.codes.extend([-1] * (position - len(self.codes)))
            self.codes.append(self.code.setdefault(text, len(self.code)))
        if self.numbers is not None:
            self.numbers.extend([np.nan] * (position - len(self.numbers)))
            self.numbers.append(float(value))

    def slices(self, n: int) -> list[tuple[str, NDArray[np.intp]]]:
        """Values, in order, each with its rows; fewer than two where the column is no use."""
        if self.many:
            return self._quartiles()
        codes = np.full(n, -1)
        codes[: len(self.codes)] = np.frombuffer(self.codes, dtype=np.int8)
        found = [(name, np.flatnonzero(codes == self.code[name])) for name in sorted(self.code, key=_natural)]
        without = np.flatnonzero(codes < 0)
        return [*found, ("(none)", without)] if len(without) else found

    def _quartiles(self) -> list[tuple[str, NDArray[np.intp]]]:
        """Cut many numbers at their quartiles."""
        values = np.frombuffer(self.numbers or array("d"), dtype=np.float64)
        finite = np.isfinite(values)
        edges = np.unique(np.quantile(values[finite], [0, 0.25, 0.5, 0.75, 1]))
        found = []
        for i, (low, high) in enumerate(pairwise(edges)):
            inside = finite & ((values > low) | (i == 0)) & (values <= high)
            found.append((f"{_short(low)} to {_short(high)}" if i == 0 else f"over {_short(low)} to {_short(high)}", inside))
        return [(name, np.flatnonzero(inside)) for name, inside in found if inside.any()]


class Columns:
    """Collects metadata row by row, in a byte (or nine) a row and column."""

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}
        self._n = 0
        self._n_left_out = 0

    def add(self, metadata: Mapping[str, Any], group: str | None) -> None:
        """Take the next row."""
        values = dict(metadata) if group is None else {**metadata, "group": group}
        for name, value in values.items():
            column = self._columns.get(name)
            if column is None:
                if len(self._columns) >= 10 * MAX_COLUMNS:  # rows that each bring new keys
                    continue
                column = self._columns[name] = _Column()
            if not column.dead and value is not None and value == value:  # noqa: PLR0124 - NaN
                column.add(self._n, value)
        self._n += 1

    def slices(self) -> Iterator[tuple[str, str, NDArray[np.intp]]]:
        """Column, value and rows of each slice, columns in order of appearance."""
        kept = 0
        self._n_left_out = 0
        for name, column in self._columns.items():
            found = [] if column.dead or not column.code else column.slices(self._n)
            if len(found) < 2:
                continue
            if kept == MAX_COLUMNS:
                self._n_left_out += 1
                continue
            kept += 1
            for value, rows in found:
                yield name, value, rows

    @property
    def n_left_out(self) -> int:
        """Columns that could be sliced too; known after ``slices`` has run."""
        return self._n_left_out


def _natural(text: str) -> tuple[bool, float, str]:
    """Numbers by value, before words."""
    try:
        return (False, float(text), text)
    except ValueError:
        return (True, 0.0, text)


def _short(value: float) -> str:
    """Write an edge of a quartile."""
    return f"{value:g}".replace("-", "−") if abs(value) < 1e5 else number(value, 0)
