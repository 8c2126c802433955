"""A blind sheet for people to label, and its way back."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from isograde.datasets import Row, Rows
from isograde.errors import DataError, UserError
from isograde.records import Item
from isograde.rubric import ITEM_FIELDS, Rubric
from isograde.runs.results import safe_cell

__all__ = ["INCLUSION", "draw", "rater_columns", "unguarded", "write_sheet"]

_RATER = re.compile(r"rater_\d+")
_LEVELS = "levels"
INCLUSION = "inclusion_probability"
_OR = "\n--- or ---\n"


def draw(rows: Rows, n: int, *, rng: int | None = None) -> list[tuple[Row, float]]:
    """Draw rows to label, spread over as many groups as there are.

    Groups are put in random order and give one row each, in turn, until there are n; a row without a group is a group of its own.

    Parameters
    ----------
    rows : Rows
    n : int
        How many rows; all of them if there are fewer.
    rng : int or None
        Seed of the draw; None is a fixed one, so that the same command gives the same sheet.

    Returns
    -------
    list of (Row, float)
        In the order of the input, each with the probability with which it was drawn: a row of a small group had a larger one.
    """
    generator = np.random.default_rng(0 if rng is None else rng)
    groups: dict[str, list[int]] = {}
    for row in rows:
        groups.setdefault(f"g{row.item.group}" if row.item.group is not None else f"r{row.index}", []).append(row.index)
    queues = [generator.permutation(indices).tolist() for indices in groups.values()]
    order = generator.permutation(len(queues)).tolist()
    drawn: list[int] = []
    while len(drawn) < n and order:
        order = [q for q in order if queues[q]]
        drawn += [queues[q].pop() for q in order[: n - len(drawn)]]
    sizes = {index: len(indices) for indices in groups.values() for index in indices}
    inclusion = _inclusion(list(map(len, groups.values())), n)
    wanted = set(drawn)
    return [(row, inclusion[sizes[row.index]]) for row in rows if row.index in wanted]


def _inclusion(sizes: list[int], n: int) -> dict[int, float]:
    """Probability of each row to be drawn, by the size of its group.

    In whole rounds each group gives one row as long as it has any; the rows that are left to draw come from as many groups,
    evenly chosen among those with more.
    """
    rounds = 0
    while rounds < max(sizes) and sum(min(size, rounds + 1) for size in sizes) <= n:
        rounds += 1
    left, more = n - sum(min(size, rounds) for size in sizes), sum(size > rounds for size in sizes)
    return {size: (min(size, rounds) + (left / more if size > rounds else 0)) / size for size in set(sizes)}


def write_sheet(drawn: Sequence[tuple[Row, float]], rubric: Rubric, path: Path, *, n_raters: int = 1) -> None:
    """Write a CSV sheet: the item, an empty column a rater, the rubric's levels explained. No judge's grade is on it.

    Parameters
    ----------
    drawn : sequence of (Row, float)
        With the probability of each row to be drawn; a column of its own, by which means are weighted.
    rubric : Rubric
    path : pathlib.Path
    n_raters : int, default 1

    Raises
    ------
    UserError
        If the file cannot be written.
    """
    raters = [f"rater_{i + 1}" for i in range(n_raters)]
    fields = [name for name in ITEM_FIELDS if name in rubric.fields]
    own = [name for name in rubric.fields if name not in ITEM_FIELDS]
    explained = " | ".join(f"{level.label}: {level.description}" for level in rubric.levels)
    scale = {} if rubric.values is None else {"gold_scale": f"[{rubric.values[0]:g}, {rubric.values[-1]:g}]"}
    try:
        with path.open("w", encoding="utf-8-sig", newline="") as file:  # the mark tells a spreadsheet that it is UTF-8
            table = csv.DictWriter(file, ["id", "group", *fields, *own, *raters, *scale, INCLUSION, _LEVELS], restval="")
            table.writeheader()
            for row, probability in drawn:
                texts = {name: _text(row.item, name) for name in (*fields, *own)}
                cells = {"id": row.item.id or str(row.index), "group": row.item.group or "", **texts, **scale, _LEVELS: explained}
                cells[INCLUSION] = f"{probability:.9g}"
                table.writerow({name: safe_cell(text) for name, text in cells.items()})
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


def _text(item: Item, name: str) -> str:
    """One field as a cell; several references are shown as alternatives."""
    value = getattr(item, name) if name in ITEM_FIELDS else item.metadata.get(name)
    if isinstance(value, tuple):
        return _OR.join(value) if name == "expected" else "\n\n".join(value)
    return "" if value is None else str(value)


def rater_columns(columns: tuple[str, ...]) -> list[str]:
    """Find the rater columns of a sheet.

    Examples
    --------
    >>> rater_columns(("id", "output", "rater_1", "rater_2", "levels"))
    ['rater_1', 'rater_2']
    """
    return [name for name in columns if _RATER.fullmatch(name)]


def unguarded(rows: Rows) -> Iterator[Row]:
    """Undo what kept a sheet's cells from acting as formulas, and split its alternatives."""
    if _LEVELS not in rows.columns or not rater_columns(rows.columns):
        yield from rows
        return
    for row in rows:
        item = row.item
        expected = _unguard("".join(item.references)).split(_OR) if item.references else None
        yield replace(
            row,
            item=Item(
                **{name: _unguard(getattr(item, name)) for name in ("id", "group", "input", "output", "context")},
                expected=None if expected is None else expected[0] if len(expected) == 1 else tuple(expected),
                metadata={name: _unguard(value) for name, value in item.metadata.items() if name not in {_LEVELS, INCLUSION}},
            ),
        )


def _unguard(value: Any) -> Any:
    """Take off the apostrophe that :func:`~isograde.runs.results.safe_cell` put on."""
    return value[1:] if isinstance(value, str) and re.match(r"'\s*[=+\-@']|'[\t\r]", value) else value


def labelled(rows: Rows) -> list[Row]:
    """Keep the rows with a gold label.

    Raises
    ------
    DataError
        If there is none; the file is named, and what to do.
    """
    kept = [row for row in unguarded(rows) if row.gold is not None]
    if not kept:
        where = f"{rows.name}: " if rows.name else ""
        if rows.has_gold:
            one = len(rows.gold_columns) == 1
            said = f"hold{'s' if one else ''} no label yet; fill {'it' if one else 'them'} in"
            raise DataError(f"{where}{', '.join(rows.gold_columns)} {said}, or name another column with --gold COLUMN")
        found = ", ".join(rows.columns)
        raise DataError(f"{where}no row has a gold label; columns found: {found}; say which holds them with --gold COLUMN")
    return kept
