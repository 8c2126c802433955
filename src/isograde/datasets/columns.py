"""A record's columns → an item's fields: the neighbours' names, column maps, paths into nested columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from isograde.datasets.values import kind, listed, shown, text, texts
from isograde.errors import DataError, UserError

__all__ = ["ColumnMap", "Columns", "Plan"]

Getter: TypeAlias = Callable[[Any], Any]
ColumnMap: TypeAlias = Mapping[str, str | Callable[[Mapping[str, Any]], Any]]

ALIASES: dict[str, tuple[str, ...]] = {
    "id": ("id",),
    "input": ("input", "user_input", "question", "query", "inputs"),
    "output": ("output", "response", "answer", "outputs", "actual_output"),
    "expected": (
        "expected",
        "reference",
        "ground_truth",
        "ground_truths",
        "expected_response",
        "reference_outputs",
        "expected_output",
    ),
    "context": ("context", "retrieved_contexts", "contexts", "retrieval_context"),
    "group": ("group",),
}
"""Columns that feed a field unasked: its own name, then RAGAS, RAGAS v1, Athina, Azure, openevals and DeepEval."""

_TEXTS = ("input", "output", "expected", "context")
_LISTS = ("expected", "context")
_BLANK_IS_ABSENT = ("id", "context", "group")
_MAX_PLANS = 1000
_MISSING: Any = object()  # a column or a part of it that is not there, which None is not


class Feed(NamedTuple):
    """What feeds a field."""

    field: str
    column: str | None
    get: Getter


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How records that have the same columns are read."""

    fields: tuple[Feed, ...]  # the item's own, in the order of ALIASES
    extras: tuple[Feed, ...]
    metadata: Feed | None
    gold: tuple[Feed, ...]
    gold_scale: Feed | None
    rest: tuple[str, ...]


class Columns:
    """Decides which column feeds which field, and reads records accordingly.

    Parameters
    ----------
    mapping : mapping or None
        Field → column, dotted path or function of the record.
    gold : str, sequence of str or None
        The gold label's columns; None for a column called gold, if there is one.

    Attributes
    ----------
    names : dict
        Columns met so far, in order.
    fed : set of str
        Fields that they feed.
    """

    def __init__(self, mapping: ColumnMap | None, gold: str | Sequence[str] | None) -> None:
        self._map, self._gold = _checked_map(mapping, gold)
        self.names: dict[str, None] = {}
        self.fed: set[str] = set()
        self._met: set[str] = set()
        self._chosen: dict[str, str] = {}
        self._plans: dict[tuple[str, ...], Plan] = {}
        wanted = [value for field, value in self._map.items() if field in _TEXTS and isinstance(value, str)]
        wanted += self._gold or []
        # a column that the user gave to a text or the gold label does not feed another field unasked
        self._claimed = {part for name in wanted for part in (name, name.partition(".")[0])}

    @property
    def mapped(self) -> bool:
        """Whether there is a column map."""
        return bool(self._map)

    @property
    def gold_names(self) -> tuple[str, ...]:
        """The gold label's columns, as they are named."""
        return ("gold",) if self._gold is None else tuple(self._gold)

    def gold_of(self, metadata: Mapping[str, Any]) -> tuple[tuple[Feed, ...], Feed | None]:
        """Find the gold label's columns in an item's metadata."""
        scale = Feed("gold_scale", "gold_scale", itemgetter("gold_scale")) if "gold_scale" in metadata else None
        return self._gold_feeds(tuple(metadata)), scale

    def plan(self, record: Mapping[str, Any]) -> Plan:
        """Find, or make, the plan for the columns of a record."""
        names = tuple(record)
        plan = self._plans.get(names)
        if plan is None:
            if not all(isinstance(name, str) for name in names):
                raise DataError(f"a column's name must be text: {listed(map(shown, names))}")
            plan = self._make_plan(names)
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            self._plans[names] = plan
        return plan

    def read(self, plan: Plan, record: Mapping[str, Any], values: dict[str, Any]) -> None:
        """Put the item's fields into ``values``, the id first, so that an error can name it."""
        for field, column, get in plan.fields:
            value = get(record)
            if value.__class__ is not str:
                value = _read_text(field, column, value)
            if not value and field in _BLANK_IS_ABSENT:
                value = None
            values[field] = value
        metadata = {name: record[name] for name in plan.rest}
        if plan.metadata is not None:
            merged = plan.metadata.get(record)
            if isinstance(merged, Mapping):
                metadata = {**merged, **metadata}
            elif merged is not None and merged is not _MISSING:
                metadata["metadata"] = merged
        for field, _, get in plan.extras:
            value = get(record)
            if value is not _MISSING:
                metadata[field] = value
        values["metadata"] = metadata

    def gold(self, feeds: Sequence[Feed], record: Mapping[str, Any]) -> list[Any]:
        """Read the gold label's columns; None where there is none."""
        read = [get(record) for _, _, get in feeds]
        return [None if value is _MISSING else value for value in read]

    def try_paths(self, plan: Plan, record: Mapping[str, Any]) -> None:
        """Follow the paths into one record, so that :meth:`unmet` knows of them; functions are not called."""
        for feed in (*plan.fields, *plan.extras, *plan.gold):
            if feed.column is not None:
                feed.get(record)

    def unmet(self) -> str | None:
        """Say what the user named and no record had."""
        asked = [(field, value) for field, value in self._map.items() if isinstance(value, str)]
        asked += [("gold", name) for name in self._gold or []]
        for field, name in asked:
            if name in self._met:
                continue
            root = name.partition(".")[0]
            if root in self.names and root != name:
                return f"column {shown(name)} (for {field}): column {shown(root)} has no such part"
            close = get_close_matches(name, self.names, n=1)
            meant = f"; did you mean {shown(close[0])}?" if close else ""
            return f"column {shown(name)} (for {field}) is not there; found: {listed(self.names)}{meant}"
        return None

    def _make_plan(self, names: tuple[str, ...]) -> Plan:
        """Decide which column feeds what."""
        self.names.update(dict.fromkeys(names))
        fields = [feed for field in ALIASES if (feed := self._feed(field, names)) is not None]
        extras = [self._mapped_feed(field, names) for field in self._map if field not in {*ALIASES, "metadata", "gold_scale"}]
        metadata, scale = (
            self._mapped_feed(field, names) if field in self._map else _direct(field, field) if field in names else None
            for field in ("metadata", "gold_scale")
        )
        gold = self._gold_feeds(names)
        scale = scale if gold else None
        used = {feed.column for feed in (*fields, *extras, *gold)} | {feed.column for feed in (metadata, scale) if feed}
        self.fed.update(feed.field for feed in (*fields, *extras))
        rest = tuple(name for name in names if name not in used)
        self.fed.update(rest)
        return Plan(
            fields=tuple(fields),
            extras=tuple(extras),
            metadata=metadata,
            gold=gold,
            gold_scale=scale,
            rest=rest,
        )

    def _feed(self, field: str, names: tuple[str, ...]) -> Feed | None:
        """Find what feeds one of the item's own fields."""
        if field in self._map:
            return self._mapped_feed(field, names)
        here = [name for name in ALIASES[field] if name in names and name not in self._claimed]
        if not here:
            return None
        chosen = self._chosen.setdefault(field, here[0])
        other = next((name for name in here if name != chosen), None)
        if other is not None:
            raise DataError(
                f"columns {chosen!r} and {other!r} both name the field {field!r}; choose one, "
                f"as in --column {field}={other} (columns={{{field!r}: {other!r}}})"
            )
        return _direct(field, chosen)

    def _mapped_feed(self, field: str, names: tuple[str, ...]) -> Feed:
        """Make what the column map says of a field."""
        wanted = self._map[field]
        return self._named(field, wanted, names) if isinstance(wanted, str) else Feed(field, None, _called(field, wanted))

    def _named(self, field: str, name: str, names: tuple[str, ...]) -> Feed:
        """Read a column of this name, else a path into one."""
        if name in names:
            self._met.add(name)
            return _direct(field, name)
        root, *parts = name.split(".")
        if not parts or root not in names:
            return Feed(field, name, lambda _: _MISSING)

        def get(record: Mapping[str, Any]) -> Any:
            value = _inside(record[root], parts)
            if value is not _MISSING:
                self._met.add(name)
            return value

        return Feed(field, name, get)

    def _gold_feeds(self, names: tuple[str, ...]) -> tuple[Feed, ...]:
        """Find the gold label's columns."""
        if self._gold is not None:
            return tuple(self._named("gold", name, names) for name in self._gold)
        return (_direct("gold", "gold"),) if "gold" in names else ()


def _checked_map(mapping: ColumnMap | None, gold: str | Sequence[str] | None) -> tuple[dict[str, Any], list[str] | None]:
    """Check what the user gave; an entry for gold in the map is the same as ``gold``."""
    if mapping is not None and not isinstance(mapping, Mapping):
        raise UserError(f"columns: must be a mapping of fields to columns, is {kind(mapping)}")
    wanted: dict[str, Any] = dict(mapping or {})
    for field, value in wanted.items():
        if not (isinstance(field, str) and field) or not (callable(value) or (isinstance(value, str) and value)):
            raise UserError(f"columns: {shown(field)}: {shown(value)}: must be a field and a column's name, a path or a function")
    if "gold" in wanted:
        if gold is not None:
            raise UserError("gold is named twice: by gold= and in columns")
        gold = wanted.pop("gold")
    if gold is None:
        return wanted, None
    if gold in ([], ()):
        return wanted, []
    names = [gold] if isinstance(gold, str) else list(gold) if isinstance(gold, list | tuple) else []
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise UserError(f"gold: must be a column's name, or several different ones, is {shown(gold)}")
    return wanted, names


def _direct(field: str, column: str) -> Feed:
    """Feed a field from a column as it is."""
    return Feed(field, column, itemgetter(column))


def _called(field: str, function: Callable[[Mapping[str, Any]], Any]) -> Getter:
    """Feed a field from the user's own function."""

    def get(record: Mapping[str, Any]) -> Any:
        try:
            return function(record)
        except Exception as error:  # noqa: BLE001 - the user's code may raise anything
            raise DataError(
                f"field {field!r}: the column map's function raised {type(error).__name__}: {shown(str(error))}"
            ) from None

    return get


def _inside(value: Any, parts: Sequence[str]) -> Any:
    """Follow a path; a null on the way is None, a part that is not there is missing."""
    for part in parts:
        if value is None:
            return None
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list | tuple) and part.isascii() and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def _read_text(field: str, column: str | None, value: Any) -> str | tuple[str, ...] | None:
    """Read a field that is not plainly text."""
    if value is None or value is _MISSING:
        return None
    try:
        return texts(value) if field in _LISTS else text(value)
    except DataError as error:
        keys = f" with the keys {listed(map(str, value))}" if isinstance(value, Mapping) and value else ""
        raise DataError(f"field {field!r}: {error}{keys}{_way_out(field, column, value)}") from None


def _way_out(field: str, column: str | None, value: Any) -> str:
    """Suggest a path into a value that has parts."""
    parts = value if isinstance(value, Mapping) else ("0",) if isinstance(value, list | tuple) else ()
    part = next(map(str, parts), "")
    path = f"{column}.{part}"
    if column is None or not part or "." in part or not path.isprintable():
        return ""
    return f"; name a part of it, as in --column {field}={path} (columns={{{field!r}: {path!r}}})"
