"""The gold items that a calibrator was fitted on, kept beside it, so that the judge can be asked again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from isograde.datasets import Row
from isograde.errors import DataError, UserError
from isograde.records import Grade, GradeFailure, Item

__all__ = ["GoldItem", "gold_file", "read_gold", "write_gold"]

Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class GoldItem(BaseModel):
    """A gold item and what the judge said of it when the calibrator was fitted.

    Attributes
    ----------
    id, group, input, output, expected, context, metadata
        As :class:`isograde.records.Item`.
    gold : float
        In level indices.
    probabilities : tuple of float
        Of each level, from worst to best.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    group: str | None
    input: str | None
    output: str | None
    expected: str | tuple[str, ...] | None
    context: str | tuple[str, ...] | None
    metadata: dict[str, Any]
    gold: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    probabilities: Annotated[tuple[Probability, ...], Field(min_length=2)]

    @property
    def item(self) -> Item:
        """The item, to be graded again."""
        return Item(**self.model_dump(exclude={"gold", "probabilities"}))


def gold_file(calibration: Path) -> Path:
    """Name of the gold items' file that belongs to a calibrator's file.

    Examples
    --------
    >>> gold_file(Path("run/calibration.json")).name
    'calibration.gold.jsonl'
    """
    return calibration.with_suffix(".gold.jsonl")


def write_gold(path: Path, rows: Sequence[Row], grades: Sequence[Grade | GradeFailure], fields: Sequence[str]) -> int:
    """Write the gold items that a calibrator was fitted on; blank outputs graded by rule, and failures, are none of them.

    Parameters
    ----------
    path : pathlib.Path
    rows : sequence of Row
        With gold.
    grades : sequence of Grade or GradeFailure
        One a row.
    fields : sequence of str
        The rubric's fields; metadata is kept as far as it is among them.

    Returns
    -------
    int
        How many were written.

    Raises
    ------
    UserError
        If the file cannot be written.
    """
    lines = []
    for row, grade in zip(rows, grades, strict=True):
        if isinstance(grade, GradeFailure) or grade.method == "blank_output" or row.gold is None:
            continue
        item = row.item
        kept = GoldItem(
            id=row.key,
            group=item.group,
            input=item.input,
            output=item.output,
            expected=item.expected,
            context=item.context,
            metadata={name: item.metadata[name] for name in fields if name in item.metadata},
            gold=row.gold,
            probabilities=grade.distribution.probabilities,
        )
        lines.append(kept.model_dump_json())
    try:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    return len(lines)


def read_gold(path: Path) -> list[GoldItem]:
    """Read what :func:`write_gold` wrote.

    Raises
    ------
    DataError
        If the file cannot be read, or a line is no gold item; it is named.
    """
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            items = [_gold_item(text, f"{path}, line {number}") for number, text in enumerate(file, 1)]
    except FileNotFoundError:
        raise DataError(
            f"{path}: is not there; isograde calibrate -o writes it beside the calibrator, and --gold-items names another place"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {getattr(error, 'strerror', None) or 'is no UTF-8 text'}") from None
    if len({len(item.probabilities) for item in items}) > 1:
        raise DataError(f"{path}: its items have different numbers of levels")
    if not items:
        raise DataError(f"{path}: there are no gold items in it")
    return items


def _gold_item(text: str, where: str) -> GoldItem:
    """Read one line."""
    try:
        return GoldItem.model_validate_json(text)
    except ValidationError as error:
        problem = error.errors()[0]
        named = ".".join(map(str, problem["loc"])) or "line"
        raise DataError(f"{where}: is no gold item ({named}: {problem['msg']})") from None
