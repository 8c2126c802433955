"""Single values: what counts as absent, what becomes text, how a value is shown in an error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from isograde.errors import DataError

__all__ = ["NUMBER", "is_absent", "kind", "listed", "plain", "shown", "text", "texts", "without_nan"]

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A number as people write it; ``float`` would also take «1_0», «infinity» and other scripts' digits."""

_MISSING_TYPES = {"NAType", "NaTType"}  # pandas.NA and pandas.NaT, without importing pandas
_KINDS: tuple[tuple[Any, str], ...] = (
    (type(None), "null"),
    (Mapping, "a mapping"),
    (list | tuple, "a list"),
    (str, "a text"),
    (bool, "a boolean"),
    (int | float, "a number"),
)
_MAX_SHOWN = 60
_MAX_LISTED = 30


def is_absent(value: Any) -> bool:
    """Tell whether a value says that there is none: None, NaN, or pandas' NA and NaT."""
    if isinstance(value, float | np.floating):
        return bool(value != value)  # noqa: PLR0124 - only NaN differs from itself
    return value is None or type(value).__name__ in _MISSING_TYPES


def plain(value: Any) -> Any:
    """Turn NumPy's scalars and arrays into Python's own."""
    return value.tolist() if hasattr(value, "tolist") else value


def text(value: Any) -> str | None:
    """Read a text; a number or a boolean becomes its JSON text."""
    if isinstance(value, str):
        return str(value)
    value = plain(value)
    if is_absent(value):
        return None
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bool | int | float):
        try:
            return json.dumps(value, allow_nan=False)
        except ValueError:
            raise DataError(f"must be text, is {shown(value)}") from None
    raise DataError(f"must be text, is {kind(value)}")


def texts(value: Any) -> str | tuple[str, ...] | None:
    """Read a text or a list of them; an empty list is absent."""
    value = plain(value)
    if not isinstance(value, list | tuple):
        return text(value)
    read = []
    for position, each in enumerate(value):
        try:
            one = text(each)
        except DataError as error:
            raise DataError(f"entry {position} of the list: {error}") from None
        if one is None:
            raise DataError(f"entry {position} of the list is null; leave it out")
        read.append(one)
    return tuple(read) or None


def without_nan(row: Mapping[str, Any]) -> dict[str, Any]:
    """Put None for NaN and its like in a row's columns."""
    return {name: value if value.__class__ is str or not is_absent(value) else None for name, value in row.items()}


def kind(value: Any) -> str:
    """Name a value's type, in the words of JSON where it has any."""
    for types, name in _KINDS:
        if isinstance(value, types):
            return name
    return f"of type {type(value).__name__}"


def shown(value: Any) -> str:
    """Show a value in one short line."""
    try:
        line = repr(value).replace("\n", " ")
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    return line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…"


def listed(names: Iterable[str]) -> str:
    """List column names in one line."""
    every = [name if name.isprintable() and name.strip() and len(name) <= _MAX_SHOWN else shown(name) for name in names]
    more = f" and {len(every) - _MAX_LISTED} more" if len(every) > _MAX_LISTED else ""
    return ", ".join(every[:_MAX_LISTED]) + more
