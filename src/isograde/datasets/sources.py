"""Whatever rows come from → records: a place that can be read once or again, and how to name a row of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from isograde.datasets.files import Record, file_records, unique_names
from isograde.datasets.values import listed, shown, without_nan
from isograde.errors import DataError, UserError
from isograde.records import Item

__all__ = ["Source", "open_source"]

_ACCEPTED = "a path, a pandas DataFrame, a Hugging Face Dataset, or an iterable of Item, Row or mappings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where records come from.

    Attributes
    ----------
    records : callable
        Starts reading; each record is its line (or None) and an Item, a Row or a mapping.
    name : str
        A file's path, otherwise empty.
    first : Item, Row, mapping or None
        The first row of a stream; None for what can be read twice and ends, which is checked whole instead.
    """

    records: Callable[[], Iterator[Record]]
    name: str = ""
    first: Any = None

    def where(self, line: int | None, index: int, id: str | None = None) -> str:  # noqa: A002 - the item's own word
        """Name a row."""
        known = f" (id {shown(id)})" if id is not None else ""
        return f"{self.name}{', ' if self.name else ''}{f'row {index + 1}' if line is None else f'line {line}'}{known}"


def open_source(source: Any) -> Source:
    """Find out what was handed in."""
    if isinstance(source, str | Path):
        return Source(records=file_records(Path(source)), name=str(source))
    if _comes_from(source, "pandas", "DataFrame"):
        return Source(records=lambda: _cleaned(_frame(source)))
    if isinstance(source, Mapping):
        if source and _comes_from(source, "datasets", "DatasetDict", "IterableDatasetDict"):
            raise UserError(f"a DatasetDict holds several sets; choose one of {listed(map(str, source))}")
        raise UserError("a mapping is one row; put it into a list")
    if _comes_from(source, "datasets", "Dataset", "IterableDataset"):
        source = source.with_format(None)
    if isinstance(source, Item | bytes) or not hasattr(source, "__iter__"):
        raise UserError(f"rows are read from {_ACCEPTED}, not from {type(source).__name__}")
    if hasattr(source, "__len__"):
        if not len(source):
            raise DataError("there are no rows")
        return Source(records=lambda: _cleaned(source))
    stream = _Stream(source)
    return Source(records=stream, first=_clean(stream.first))


def _comes_from(source: Any, package: str, *names: str) -> bool:
    """Tell by its classes whether an object is of a library, without importing that."""
    return any(each.__module__.partition(".")[0] == package and each.__name__ in names for each in type(source).__mro__)


def _frame(frame: Any) -> Iterator[dict[str, Any]]:
    """Read a DataFrame row by row."""
    names = [str(name) for name in frame.columns]
    unique_names("DataFrame", names)
    if not len(frame):
        raise DataError(f"the DataFrame has no rows (columns: {listed(names)})")
    for values in frame.itertuples(index=False, name=None):
        yield dict(zip(names, values, strict=True))


class _Stream:
    """Records of an iterable without a length: the first is looked at before the others are asked for."""

    def __init__(self, source: Iterable[Any]) -> None:
        self._source = source
        iterator = iter(source)
        try:
            self.first = next(iterator)
        except StopIteration:
            raise DataError("there are no rows") from None
        self._ahead: Iterator[Any] | None = chain([self.first], iterator)

    def __call__(self) -> Iterator[Record]:
        """Read on from the first record, or start again where the source can."""
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            ahead = iter(self._source)
            if ahead is self._source:
                raise UserError("a generator can be read only once; make a list of it to read it again")
        return _cleaned(ahead)


def _clean(row: Any) -> Any:
    """Free the columns of a row, if it has any, from NaN."""
    return without_nan(row) if isinstance(row, Mapping) else row


def _cleaned(rows: Iterable[Any]) -> Iterator[Record]:
    """Make records of rows that stand on no line."""
    return ((None, _clean(row)) for row in rows)
