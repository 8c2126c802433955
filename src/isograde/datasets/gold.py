"""Gold labels → level index: their numbers, the scale they stand on, several raters."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from statistics import median
from typing import Any, TypeAlias

from isograde.datasets.values import NUMBER, is_absent, kind, listed, plain, shown, text
from isograde.errors import DataError, UserError

__all__ = ["GoldScale", "Levels", "middle"]

GoldScale: TypeAlias = tuple[float, float]

_SLACK = 1e-9  # of a scale's length: means that were rounded on their way through a file
_SAY_SCALE = "gold_scale=(lo, hi) (--gold-scale LO:HI)"


def middle(raters: Sequence[float | None]) -> float | None:
    """Median of the raters who gave a level; None where nobody did."""
    if len(raters) == 1:
        return raters[0]
    given = [level for level in raters if level is not None]
    return median(given) if given else None


class Levels:
    """Turns gold values into level indices 0 … n−1.

    Parameters
    ----------
    labels : sequence of str, length n
        The rubric's labels, from worst to best.
    scale : pair of float or None
        The values that stand for the lowest and the highest level, for rows that do not say themselves.

    Attributes
    ----------
    top : int
        Index of the highest level, n−1.
    """

    def __init__(self, labels: Sequence[str], scale: Any) -> None:
        self._labels = tuple(labels)
        self._numbers = _monotonic(self._labels)
        self.top = len(self._labels) - 1
        try:
            self._scale = None if scale is None else _pair(scale)
        except DataError as error:
            said = str(error).removeprefix("gold_scale ")
            raise UserError(f"gold_scale: {said} (--gold-scale LO:HI)") from None
        self.start()

    def start(self) -> None:
        """Forget the values seen."""
        self._n_unscaled = 0
        self._largest = -math.inf

    def doubt(self) -> str | None:
        """Say so if all values that were read in the rubric's numbers look like another scale."""
        numbers = self._numbers or ()
        if self._n_unscaled and self._largest <= 1 < max(numbers):
            low, high = f"{min(numbers):g}", f"{max(numbers):g}"
            return (
                f"all {self._n_unscaled} gold values are at most 1 while the rubric's levels go to {high}; "
                f"is the scale 0–1? say gold_scale=(0, 1) or gold_scale=({low}, {high}) (--gold-scale 0:1 or {low}:{high}); "
                "a column gold that holds no labels is left unread with gold=[] (score: --no-gold)"
            )
        return None

    def read(self, values: Sequence[Any], row_scale: Any) -> tuple[float | None, ...]:
        """Read a row's gold columns; one column may hold a list, a value for each rater."""
        if len(values) == 1:
            only = plain(values[0])
            values = only if isinstance(only, list | tuple) else (only,)
        blank = is_absent(row_scale) or (isinstance(row_scale, str) and not row_scale.strip())
        scale = self._scale if blank else _pair(row_scale)
        return tuple([self._level(value, scale) for value in values])

    def _level(self, value: Any, scale: GoldScale | None) -> float | None:
        """Read one value; None where it is absent or blank."""
        value = plain(value)
        if isinstance(value, str):
            value = value.strip()
            if value.lower() in {"", "nan"}:
                return None
        elif is_absent(value):
            return None
        if scale is None and self._numbers is None:
            return self._of_label(value)
        number = _number(value)
        if scale is not None:
            lo, hi = scale
            level = self.top * (number - lo) / (hi - lo)
        else:
            numbers = self._numbers or ()
            lo, hi = numbers[0], numbers[-1]
            level = _position(number, numbers)
            self._n_unscaled += 1
            self._largest = max(self._largest, number)
        if not -_SLACK * self.top <= level <= self.top * (1 + _SLACK):
            ask = "" if scale is not None else f"; if the labels stand on another scale, say {_SAY_SCALE}"
            raise DataError(f"gold {shown(value)} is off the scale {lo:g} … {hi:g}{ask}")
        return min(max(level, 0.0), float(self.top))

    def _of_label(self, value: Any) -> float:
        """Find the level whose label this is."""
        label = value if isinstance(value, str) else text(value) if isinstance(value, bool | int | float) else None
        if label not in self._labels:
            ways = f"none of the labels {listed(self._labels)}; if it is a number, say on which scale: {_SAY_SCALE}"
            raise DataError(f"gold {shown(value)} is {ways}")
        return float(self._labels.index(label))


def _monotonic(labels: tuple[str, ...]) -> tuple[float, ...] | None:
    """Read the labels as numbers; None where they are none, or neither rise nor fall throughout."""
    if not all(NUMBER.fullmatch(label) for label in labels):
        return None
    numbers = tuple(map(float, labels))
    steps = [b - a for a, b in pairwise(numbers)]
    return numbers if all(step > 0 for step in steps) or all(step < 0 for step in steps) else None


def _position(number: float, numbers: tuple[float, ...]) -> float:
    """Interpolate a number's index among the labels' numbers; beyond them, go on at the slope of the end."""
    sign = 1 if numbers[-1] > numbers[0] else -1
    rising = [sign * each for each in numbers]
    at = min(max(bisect_right(rising, sign * number) - 1, 0), len(rising) - 2)
    return at + (sign * number - rising[at]) / (rising[at + 1] - rising[at])


def _number(value: Any) -> float:
    """Read a number or a numeric text."""
    if isinstance(value, int | float | Decimal):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if not isinstance(value, str):
        raise DataError(f"gold must be a number, is {kind(value)}")
    if not NUMBER.fullmatch(value):
        several = "; several raters in a text file stand in columns of their own" if value.startswith("[") else ""
        raise DataError(f"gold {shown(value)} is not a number such as 3 or 3.5{several}")
    return float(value)


def _pair(scale: Any) -> GoldScale:
    """Read a scale; in a text file it is written as JSON, [0, 4]."""
    pair = plain(scale)
    if isinstance(pair, str):
        try:
            pair = json.loads(pair)
        except (ValueError, RecursionError):
            pair = None
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise DataError(f"gold_scale must be two numbers [lo, hi], is {shown(scale)}")
    lo, hi = _number(plain(pair[0])), _number(plain(pair[1]))
    if not (math.isfinite(lo) and math.isfinite(hi) and lo < hi):
        raise DataError(f"gold_scale must be two numbers [lo, hi] with lo below hi, is {shown(scale)}")
    return lo, hi
