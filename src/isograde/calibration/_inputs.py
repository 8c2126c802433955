"""Checks what callers pass in, once, and puts it into one canonical form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np

from isograde.errors import CalibrationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

__all__: list[str] = []

FloatArray: TypeAlias = "NDArray[np.float64]"
IntArray: TypeAlias = "NDArray[np.intp]"
BoolArray: TypeAlias = "NDArray[np.bool_]"
Groups: TypeAlias = "Sequence[Any] | NDArray[Any]"
RNG: TypeAlias = "np.random.Generator | int | None"

# A row of probabilities may miss 1 by this much (servers round); it is then normalised.
SUM_TOLERANCE = 1e-3
# Scores may leave their named range by this share of it (cosine similarities do, by rounding).
RANGE_TOLERANCE = 1e-6
# Whole weights of rows without groups are unrolled up to this sum.
MAX_UNROLLED = 10_000
# Gold with more distinct values than this (means of many raters, 0–100 scales) is placed on a grid of this fineness.
MAX_SUPPORT = 101
# A rubric has levels 0–4 unless told otherwise.
DEFAULT_LEVELS = 5


def as_floats(values: ArrayLike, name: str) -> FloatArray:
    """Finite floats, or an error that names the row."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CalibrationError(f"{name} must be numbers: {error}") from error
    if array.ndim == 0:
        raise CalibrationError(f"{name} must be an array with one row an item, not a single number")
    bad = ~np.isfinite(array)
    if bad.any():
        row = int(np.argwhere(bad)[0][0])
        raise CalibrationError(f"row {row}: {name} is not a finite number; leave out rows that have none")
    return array


def as_rng(rng: RNG) -> np.random.Generator:
    """Return the generator; None is a fixed stream, so the same labels give the same result."""
    return np.random.default_rng(0 if rng is None else rng)


def one_dimensional(values: ArrayLike, name: str, n: int | None = None) -> FloatArray:
    """Finite floats of shape (n,)."""
    array = as_floats(values, name)
    if array.ndim != 1:
        raise CalibrationError(f"{name} must have shape (n_items,), not {array.shape}")
    if n is not None and len(array) != n:
        raise CalibrationError(f"{name} has {len(array)} rows and the scores have {n}; give one an item")
    return array


def distributions(values: ArrayLike) -> FloatArray:
    """Rows of probabilities, checked and normalised: (n_items, n_columns)."""
    array = as_floats(values, "probabilities")
    if array.ndim != 2 or not array.shape[1]:
        raise CalibrationError(f"probabilities must have shape (n_items, n_levels), not {array.shape}")
    negative = (array < 0).any(axis=1)
    if negative.any():
        raise CalibrationError(f"row {int(np.flatnonzero(negative)[0])}: a probability is negative")
    total = array.sum(axis=1, keepdims=True)
    off = np.abs(total[:, 0] - 1) > SUM_TOLERANCE
    if off.any():
        row = int(np.flatnonzero(off)[0])
        raise CalibrationError(f"row {row}: probabilities sum to {total[row, 0]:.6g}; normalise each row to 1")
    normalised: FloatArray = array / total
    return normalised


def expected_level(values: ArrayLike) -> FloatArray:
    """Σ index × probability of each row; values (n_items, n_levels)."""
    probabilities = distributions(values)
    expected: FloatArray = probabilities @ np.arange(probabilities.shape[1], dtype=np.float64)
    # Rounding may carry Σ i·pᵢ past the last level by one ulp.
    return np.minimum(expected, float(probabilities.shape[1] - 1))


def not_empty(score: FloatArray) -> None:
    """Refuse to fit nothing."""
    if not len(score):
        raise CalibrationError("there are no labelled rows; give at least one")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreScale:
    """How a judge's output becomes one score, and that score a level."""

    kind: Literal["probabilities", "scores"]
    n_levels: int
    score_range: tuple[float, float] | None

    @classmethod
    def of(
        cls, values: ArrayLike, *, n_levels: int | None, score_range: tuple[float, float] | None = None
    ) -> tuple[Self, FloatArray]:
        """Read the form from the shape; returns the scale and the scores (n_items,)."""
        array = as_floats(values, "probabilities")
        if array.ndim == 1:
            if score_range is not None and not (np.isfinite(score_range).all() and score_range[0] < score_range[1]):
                raise CalibrationError(f"score_range must be (lowest, highest), not {score_range}")
            scale = cls(kind="scores", n_levels=DEFAULT_LEVELS if n_levels is None else n_levels, score_range=score_range)
        elif array.ndim == 2:
            if n_levels not in (None, array.shape[1]):
                raise CalibrationError(f"probabilities have {array.shape[1]} columns and n_levels is {n_levels}; make them equal")
            if score_range is not None:
                raise CalibrationError("score_range is for plain scores; probabilities carry their own scale, so leave it out")
            scale = cls(kind="probabilities", n_levels=array.shape[1], score_range=None)
        else:
            raise CalibrationError(f"probabilities must have shape (n_items, n_levels) or (n_items,), not {array.shape}")
        if scale.n_levels < 1:
            raise CalibrationError("n_levels must be 1 or more")
        scale.check_range(score := scale.score(array))
        return scale, score

    def score(self, values: ArrayLike) -> FloatArray:
        """One score an item, from values in the form that was fitted."""
        array = as_floats(values, "probabilities")
        wanted = (self.n_levels,) if self.kind == "probabilities" else ()
        if array.ndim == 0 or array.shape[1:] != wanted:
            form = f"level probabilities (n_items, {self.n_levels})" if wanted else "plain scores (n_items,)"
            raise CalibrationError(f"this calibrator takes {form}, not shape {array.shape}")
        return expected_level(array) if wanted else array

    def check_range(self, score: FloatArray) -> None:
        """Refuse labelled scores outside the range that the caller named."""
        if self.score_range is None:
            return
        low, high = self.score_range
        slack = RANGE_TOLERANCE * (high - low)
        off = (score < low - slack) | (score > high + slack)
        if off.any():
            row = int(np.flatnonzero(off)[0])
            raise CalibrationError(
                f"row {row}: score {score[row]:g} is outside score_range ({low:g}, {high:g}); correct the range"
            )

    def level(self, score: FloatArray) -> FloatArray | None:
        """The raw level on 0 … n_levels − 1 that a score stands for; None where nobody said how they map."""
        if self.kind == "probabilities":
            return score
        if self.score_range is None:
            return None
        low, high = self.score_range
        return np.clip((score - low) / (high - low), 0, 1) * (self.n_levels - 1)

    def scores_of_levels(self) -> FloatArray:
        """The scores that stand for the levels; none where nobody said how they map."""
        levels = np.arange(self.n_levels, dtype=np.float64)
        if self.kind == "probabilities":
            return levels
        if self.score_range is None or self.n_levels < 2:
            return np.empty(0)
        low, high = self.score_range
        return low + levels * (high - low) / (self.n_levels - 1)


def as_gold(gold: ArrayLike, n: int, n_levels: int) -> FloatArray:
    """Gold levels on 0 … n_levels − 1."""
    array = one_dimensional(gold, "gold", n)
    off = (array < 0) | (array > n_levels - 1)
    if off.any():
        row = int(np.flatnonzero(off)[0])
        raise CalibrationError(
            f"row {row}: gold {array[row]:g} is off the scale 0 … {n_levels - 1}; convert gold to level indices or set n_levels"
        )
    return array


def on_grid(gold: FloatArray, n_levels: int) -> FloatArray:
    """Gold as it is, or on a fine grid where it takes too many values to fit a threshold each."""
    if len(np.unique(gold)) <= MAX_SUPPORT:
        return gold
    step = (n_levels - 1) / (MAX_SUPPORT - 1)
    placed: FloatArray = np.round(gold / step) * step
    return placed


def as_weight(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Non-negative weights with a positive sum."""
    if sample_weight is None:
        return np.ones(n)
    array = one_dimensional(sample_weight, "sample_weight", n)
    if (array < 0).any():
        raise CalibrationError(f"row {int(np.flatnonzero(array < 0)[0])}: sample_weight is negative")
    if not (array > 0).any():
        raise CalibrationError("every sample_weight is zero; at least one label must count")
    return array


def group_codes(groups: Groups | None, n: int) -> IntArray:
    """One integer a group, in sorted order of the groups' names; None stands for a group of its own."""
    if groups is None:
        return np.arange(n)
    if len(groups) != n:
        raise CalibrationError(f"groups has {len(groups)} rows and the scores have {n}; give one an item")
    if isinstance(groups, np.ndarray):
        if groups.ndim != 1:
            raise CalibrationError(f"groups must have shape (n_items,), not {groups.shape}")
        if groups.dtype.kind in "biuUS":
            return np.unique(groups, return_inverse=True)[1]
    values = list(groups)
    if {type(value) for value in values} in ({str}, {int}):
        return np.unique(np.asarray(values), return_inverse=True)[1]
    # Mixed types cannot be sorted by value; their repr can. NaN, which is not itself, is how data frames write None.
    keys = [f"\0{row}" if value is None or value != value else repr(value) for row, value in enumerate(values)]  # noqa: PLR0124
    return np.unique(np.asarray(keys), return_inverse=True)[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Labelled scores in canonical order: sorted by score, then gold, then weight; none of weight zero."""

    score: FloatArray
    gold: FloatArray
    weight: FloatArray
    group: IntArray
    n_groups: int


def canonical(score: FloatArray, gold: FloatArray, weight: FloatArray, groups: Groups | None) -> Sample:
    """Sort the labels so that nothing later depends on the order of the rows."""
    used = np.flatnonzero(weight > 0)
    order = used[np.lexsort((weight[used], gold[used], score[used]))]
    if groups is not None:
        code = np.unique(group_codes(groups, len(score))[order], return_inverse=True)[1]
    else:
        times = weight[order]
        if (times == np.round(times)).all() and times.sum() <= MAX_UNROLLED:
            # Two rows that stand alone may fall into different half-samples, so a row of weight 2 must be two rows.
            order, weight = np.repeat(order, times.astype(np.intp)), np.ones(len(score))
        # Each row is its own group, numbered in sorted order: a permutation of the rows changes nothing.
        code = np.arange(len(order))
    return Sample(score=score[order], gold=gold[order], weight=weight[order], group=code, n_groups=int(code.max(initial=-1)) + 1)
