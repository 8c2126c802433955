"""Rows: what is read, checked and numbered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from isograde.datasets.columns import ColumnMap, Columns
from isograde.datasets.gold import GoldScale, Levels, middle
from isograde.datasets.sources import Source, open_source
from isograde.datasets.values import kind, shown
from isograde.errors import DataError
from isograde.records import Item

__all__ = ["Row", "Rows", "read_rows"]

_ITEM_TEXTS = ("id", "input", "output", "expected", "context", "group")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An item with its gold label and the place it came from.

    Attributes
    ----------
    item : Item
        What is graded; its id is the position, as text, where the source gives none.
    gold : float or None
        The raters' median in level index 0 … n−1, fractions kept; None where the row is unlabelled.
    raters : tuple of (float or None)
        Each rater's level in level index, None where a rater gave none; empty where there is no gold column.
    line : int or None
        The line on which the row starts, from 1, in a text file; None elsewhere.
    index : int
        Position of the row, from 0.
    """

    item: Item
    gold: float | None = None
    raters: tuple[float | None, ...] = ()
    line: int | None = None
    index: int

    @property
    def key(self) -> str:
        """The item's id, or the row's position where it has none."""
        return self.item.id if self.item.id is not None else str(self.index)

    @property
    def place(self) -> str:
        """Where the row stands, as messages name it."""
        return f"line {self.line}" if self.line is not None else f"row {self.index + 1}"


class _Ids:
    """Refuses two rows of one id; of each id a hash and its place is kept (about 0.1 GB for a million)."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._places: dict[int, int] = {}
        self._first: tuple[str, str | None] | None = None

    def add(self, name: str | None, line: int | None, index: int) -> None:
        """Take a row's own id, None where it has none."""
        if self._first is None:
            self._first = (self._source.where(line, index), name)
        place, first = self._first
        if (name is None) is not (first is None):
            other = f"{place} has {'none' if first is None else 'one'}"
            has = "has no id" if name is None else "has an id"
            raise DataError(f"{self._source.where(line, index, name)}: {has}, but {other}; give every row an id, or none")
        if name is None:
            return
        here = index + 1 if line is None else line
        before = self._places.get(hash(name))
        if before is not None:
            unit = "rows" if line is None else "lines"
            where = f"{self._source.name}, {unit}" if self._source.name else unit
            raise DataError(f"{where} {before} and {here}: id {shown(name)} stands twice; an id names one row")
        self._places[hash(name)] = here


class Rows:
    """Rows of a source, in its order; made by :func:`read_rows`.

    A file, a list, a DataFrame and a Dataset were checked whole and can be read again. Of a generator only the first row was
    looked at; it can be read once, and its errors are raised when they are met, the one about gold values that are all at
    most 1 at its end.

    Attributes
    ----------
    n : int or None
        How many there are; None where that is not known before the end.
    columns : tuple of str
        The columns found; of a stream, those of its first row.
    fields : frozenset of str
        The item's fields, and keys of its metadata, that a column feeds.
    has_gold : bool
        Whether there is a gold column.
    name : str
        A file's path; empty where the rows are no file's.
    gold_columns : tuple of str
        The columns that the gold label is read from, where there are any.
    """

    def __init__(self, source: Source, columns: Columns, levels: Levels) -> None:
        self._source = source
        self._columns = columns
        self._levels = levels
        self.n: int | None = None
        self.name = source.name
        self.gold_columns = columns.gold_names
        self.has_gold = False
        self._n_unlabelled = 0
        if source.first is None:
            self._check()
        else:
            self._look_at(source.first)
        self.columns = tuple(columns.names)
        self.fields = frozenset(columns.fed)

    @property
    def n_unlabelled(self) -> int:
        """Rows read whose gold label is absent, NaN or blank; 0 where there is no gold column."""
        return self._n_unlabelled if self.has_gold else 0

    def __iter__(self) -> Iterator[Row]:
        """Read the rows."""
        if self.n is None:
            return self._read_checked()
        return (self._row(record, line, index)[0] for index, (line, record) in enumerate(self._source.records()))

    def _check(self) -> None:
        """Read all rows once."""
        self.n = sum(1 for _ in self._read_checked())
        self._refuse(self._columns.unmet())

    def _refuse(self, problem: str | None) -> None:
        """Raise what is wrong with the whole source, if anything is."""
        if problem is not None:
            raise DataError(f"{self._source.name}{': ' if self._source.name else ''}{problem}")

    def _look_at(self, first: Any) -> None:
        """Find out from a stream's first row what it feeds."""
        if isinstance(first, Mapping):
            try:
                plan = self._columns.plan(first)
            except DataError as error:
                raise DataError(f"{self._source.where(None, 0)}: {error}") from None
            self._columns.try_paths(plan, first)
            self.has_gold = bool(plan.gold)
            if plan.metadata is not None and isinstance(merged := plan.metadata.get(first), Mapping):
                self._columns.fed.update(merged)
        else:
            self._row(first, None, 0)
            self._columns.fed.update(_ITEM_TEXTS)  # an item has all its fields; in a later row one may be filled
        self._refuse(self._columns.unmet())

    def _read_checked(self) -> Iterator[Row]:
        """Read the rows, and watch what only shows over many of them."""
        self._levels.start()
        self._n_unlabelled = 0
        ids = _Ids(self._source)
        for index, (line, record) in enumerate(self._source.records()):
            row, own_id = self._row(record, line, index)
            ids.add(own_id, line, index)
            if row.gold is None:
                self._n_unlabelled += 1
            yield row
        self._refuse(self._levels.doubt())

    def _row(self, record: Any, line: int | None, index: int) -> tuple[Row, str | None]:
        """Make a row of a record; also the id that it has of its own."""
        values: dict[str, Any] = {}
        try:
            if isinstance(record, Mapping):
                plan = self._columns.plan(record)
                self._columns.read(plan, record, values)
                if plan.metadata is not None:
                    self._columns.fed.update(values["metadata"])
                raters: tuple[float | None, ...] = ()
                if plan.gold:
                    self.has_gold = True
                    scale = None if plan.gold_scale is None else plan.gold_scale.get(record)
                    raters = self._levels.read(self._columns.gold(plan.gold, record), scale)
                own_id = values.get("id")
                if own_id is None:
                    values["id"] = str(index)
                return Row(
                    item=Item(**values), gold=middle(raters) if raters else None, raters=raters, line=line, index=index
                ), own_id
            return self._given(record, index, values)
        except DataError as error:
            raise DataError(f"{self._source.where(line, index, values.get('id'))}: {error}") from None

    def _given(self, record: Any, index: int, values: dict[str, Any]) -> tuple[Row, str | None]:
        """Take an item or a row that was made elsewhere."""
        item = record.item if isinstance(record, Row) else record
        if not isinstance(item, Item):
            raise DataError(f"a row is an Item, a Row or a mapping of columns to values, not {kind(record)}")
        own_id = values["id"] = item.id
        if self._columns.mapped:
            raise DataError("a column map is for columns; this row is an Item")
        present = [name for name in _ITEM_TEXTS if getattr(item, name) is not None]
        self._columns.names.update(dict.fromkeys([*present, *item.metadata]))
        self._columns.fed.update([*present, *item.metadata])
        if own_id is None:
            item = replace(item, id=str(index))
        if isinstance(record, Row):
            self.has_gold = self.has_gold or bool(record.raters) or record.gold is not None
            off = [level for level in (record.gold, *record.raters) if level is not None and not 0 <= level <= self._levels.top]
            if off:
                raise DataError(f"gold {shown(off[0])} of a Row is a level index, 0 … {self._levels.top}")
            return replace(record, item=item, index=index), own_id
        feeds, scale = self._columns.gold_of(item.metadata)
        if not feeds:
            return Row(item=item, index=index), own_id
        self.has_gold = True
        row_scale = None if scale is None else scale.get(item.metadata)
        raters = self._levels.read(self._columns.gold(feeds, item.metadata), row_scale)
        return Row(item=item, gold=middle(raters) if raters else None, raters=raters, index=index), own_id


def read_rows(
    source: Any,
    *,
    columns: ColumnMap | None = None,
    gold: str | Sequence[str] | None = None,
    gold_scale: GoldScale | None = None,
    labels: Sequence[str] = ("0", "1", "2", "3", "4"),
) -> Rows:
    """Read items, and gold labels where there are any.

    Parameters
    ----------
    source : str, pathlib.Path, DataFrame, Dataset or iterable
        A file (.jsonl, .ndjson, .json, .csv, .tsv, .parquet, each also with .gz), a pandas DataFrame, a Hugging Face Dataset,
        or an iterable of :class:`~isograde.records.Item`, :class:`Row` or mappings. Text is UTF-8, or UTF-16 with a byte order
        mark. Lines of JSONL end in a line feed and nothing else; an empty cell of CSV is an empty text, and «null» and «NA»
        are text.
    columns : mapping or None
        Field → column, where a column's name does not say it: a name, a dotted path into a nested column
        (``"answers.0.text"``) or a function of the row. Fields are ``input``, ``output``, ``expected``, ``context``, ``id``,
        ``group``, ``metadata``, ``gold``, ``gold_scale``, and keys of the metadata that a rubric names. The names that RAGAS,
        Athina, Azure, openevals and DeepEval use are known unasked. Columns that feed nothing become metadata.
    gold : str, sequence of str or None
        The gold label's column, or one for each rater; unasked a column called ``gold``, and none
        where the sequence is empty. A list in one column is several raters.
    gold_scale : pair of float or None
        The values that stand for the lowest and the highest level. A row's own ``gold_scale`` comes first; without either the
        rubric's labels are the scale, as numbers or, where they are not numbers, as names.
    labels : sequence of str, length n
        The rubric's labels, from worst to best.

    Returns
    -------
    Rows
        The gold label as level index 0 … n−1.

    Raises
    ------
    DataError
        If a file, a column or a row cannot be read; the message names the line (or the row, from 1) and the way out. It is
        raised before anything is returned for files and for all that has a length, later rows of a generator when met.
    UserError
        If the arguments do not fit, or pyarrow is missing.

    Notes
    -----
    Files are streamed twice, once to check them; of each id a hash is kept. A number or a boolean where a text belongs becomes
    its JSON text. NaN is absent everywhere, and so are an empty id, group or context.

    Examples
    --------
    >>> rows = read_rows([{"question": "2 + 2?", "answer": "four", "ground_truth": "4", "gold": [3, 4]}])
    >>> row = next(iter(rows))
    >>> row.item.output, row.item.expected, row.gold, row.raters
    ('four', '4', 3.5, (3.0, 4.0))
    """
    return Rows(open_source(source), Columns(columns, gold), Levels(labels, gold_scale))
