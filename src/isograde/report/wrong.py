"""Where a judge is wrong: slices of the rows, and the worst disagreements with their texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isograde.records import Item
from isograde.report.columns import Columns
from isograde.report.measures import group_interval, undefined
from isograde.report.parts import Case, Estimate, Slice
from isograde.report.text import clipped, visible

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isograde.report.inputs import Cases
    from isograde.report.measures import Forecasts

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.intp]

__all__ = ["MAX_WORST", "slice_table", "texts_of", "worst_cases"]

MAX_WORST = 50
_SHOWN_TEXTS = (("Question", "input"), ("Answer", "output"), ("Reference", "expected"), ("Context", "context"))
MAX_LISTED = 5


def slice_table(forecasts: Forecasts, items: list[Item]) -> tuple[tuple[Slice, ...], int, list[list[tuple[str, str]]]]:
    """Cut the rows by their metadata.

    Returns
    -------
    slices : tuple of Slice
    n_left_out : int
        Columns beyond the cap.
    member : list of list of (column, value), length n
        The slices that each row is in.
    """
    columns = Columns()
    for item in items:
        columns.add(item.metadata, item.group)
    raw = forecasts.raw
    gold, group, predicted = forecasts.gold, forecasts.group, forecasts.predicted
    calibrated = None if forecasts.cross is None else forecasts.cross.median
    table: list[Slice] = []
    member: list[list[tuple[str, str]]] = [[] for _ in items]

    def mean_of(errors: FloatArray | None, reason: str, rows: IntArray) -> Estimate:
        return undefined(reason, len(rows)) if errors is None else group_interval(errors[rows], group[rows])

    bias = None if predicted is None else predicted - gold
    error_raw = None if raw is None else np.abs(raw - gold)
    error_calibrated = None if calibrated is None else np.abs(calibrated - gold)
    for column, value, rows in columns.slices():
        column_shown, value_shown = visible(column), visible(value)
        for row in rows.tolist():
            member[row].append((column_shown, value_shown))

        table.append(
            Slice(
                column=column,
                value=value,
                n=len(rows),
                n_groups=len(np.unique(group[rows])),
                mean_gold=float(gold[rows].mean()),
                mean_judge=None if raw is None else float(raw[rows].mean()),
                bias=mean_of(bias, forecasts.no_raw, rows),
                mae_raw=mean_of(error_raw, forecasts.no_raw, rows),
                mae_calibrated=mean_of(error_calibrated, forecasts.no_cross, rows),
            )
        )
    return tuple(table), columns.n_left_out, member


def worst_cases(
    forecasts: Forecasts, cases: Cases, used: IntArray, member: list[list[tuple[str, str]]]
) -> tuple[tuple[Case, ...], int]:
    """Return the rows on which judge and gold are furthest apart, and how many rows are apart at all."""
    predicted, gold = forecasts.predicted, forecasts.gold
    if predicted is None:
        return (), 0
    error = np.abs(predicted - gold)
    mean = forecasts.cross.mean if forecasts.cross is not None else predicted
    order = np.lexsort((np.arange(len(gold)), -np.abs(mean - gold), -error))
    worst = [row for row in order[:MAX_WORST].tolist() if error[row] > 0]
    found = []
    for row in worst:
        item = cases.items[used[row]]
        found.append(
            Case(
                id=item.id if item.id is not None else str(cases.row[used[row]]),
                group=item.group,
                direction="too high" if predicted[row] > gold[row] else "too low",
                gold=float(gold[row]),
                predicted=float(predicted[row]),
                expected_level=None if forecasts.raw is None else float(forecasts.raw[row]),
                score=float(cases.values[used[row]]) if cases.values.ndim == 1 else None,
                probabilities=() if forecasts.proba is None else tuple(np.round(forecasts.proba[row], 4).tolist()),
                slices=tuple(member[row]),
                texts=texts_of(item),
            )
        )
    return tuple(found), int((error > 0).sum())


def texts_of(item: Item) -> tuple[tuple[str, str], ...]:
    """An item's texts with their names, long ones cut; of many references the first few."""
    found: list[tuple[str, str]] = []
    for name, field in _SHOWN_TEXTS:
        value: str | tuple[str, ...] | None = getattr(item, field)
        if value is None:
            continue
        texts = (value,) if isinstance(value, str) else value
        for i, text in enumerate(texts[:MAX_LISTED]):
            found.append((f"{name} {i + 1} of {len(texts)}" if len(texts) > 1 else name, clipped(visible(text))))
    return tuple(found)
