"""Whether a judge, or the data, has moved since a calibrator was fitted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from isograde.calibration._inputs import as_gold, as_rng, distributions, expected_level, group_codes
from isograde.calibration.resampling import mean_limit
from isograde.errors import CalibrationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import RNG, BoolArray, FloatArray, Groups

__all__ = ["Drift", "DriftTest", "data_drift", "holm", "judge_drift"]

DriftName: TypeAlias = Literal["judge: level", "judge: MAE", "judge: distribution", "data: distribution", "data: outside range"]

# All sign patterns are tried up to this many groups; 2¹² = 4,096.
MAX_EXACT = 12
# Cells of a table of resamples that is held at once.
CELLS = 2_000_000
# Statistics that differ by less than this, relatively, are the same.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftTest:
    """One look at whether something moved.

    Attributes
    ----------
    name : str
        ``judge: level`` (change of the mean expected level), ``judge: MAE`` (change of its mean absolute error, raw),
        ``judge: distribution`` and ``data: distribution`` (total variation between the mean level distributions),
        ``data: outside range`` (share of new rows whose expected level no gold item had).
    estimate : float
        In levels, or a share.
    low, high : float or None
        95 % interval by group (Student's t on group totals) of a change in levels; None for shares, and with one group.
    p_value, p_adjusted : float
        By permutation of groups; the second by Holm over all looks of the check.
    n, n_groups : int
        Rows compared, and groups.
    moved : bool
        The adjusted p-value is at most alpha, and the estimate at least the tolerance.
    """

    name: DriftName
    estimate: float
    low: float | None
    high: float | None
    p_value: float
    p_adjusted: float
    n: int
    n_groups: int
    moved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """All looks of one check.

    Attributes
    ----------
    tests : tuple of DriftTest
    alpha : float
        The chance, at most, that a check alarms where nothing has moved.
    tolerance : float
        Changes smaller than this, in levels or as a share, are no alarm whatever their p-value.
    judge_moved, data_moved : bool or None
        None where it was not tested.
    """

    tests: tuple[DriftTest, ...]
    alpha: float
    tolerance: float
    judge_moved: bool | None
    data_moved: bool | None

    @classmethod
    def of(cls, tests: list[DriftTest], *, alpha: float = 0.05, tolerance: float = 0.05) -> Drift:
        """Correct the p-values for the number of looks (Holm), and say what moved.

        Raises
        ------
        CalibrationError
            Alpha is not between 0 and 1, or the tolerance is negative.

        Examples
        --------
        >>> before = np.eye(5)[np.tile([0, 2, 4], 20)]
        >>> Drift.of(judge_drift(before, before, np.tile([0, 2, 4], 20))).judge_moved
        False
        """
        if not 0 < alpha < 1 or tolerance < 0:
            raise CalibrationError(f"alpha must lie between 0 and 1 and tolerance be 0 or more, not {alpha:g} and {tolerance:g}")
        adjusted = holm([test.p_value for test in tests])
        judged = tuple(
            replace(test, p_adjusted=p, moved=p <= alpha and abs(test.estimate) >= tolerance)
            for test, p in zip(tests, adjusted, strict=True)
        )
        moved: dict[str, bool | None] = {"judge": None, "data": None}
        for test in judged:
            kind = test.name.partition(":")[0]
            moved[kind] = bool(moved[kind]) or test.moved
        return cls(tests=judged, alpha=alpha, tolerance=tolerance, judge_moved=moved["judge"], data_moved=moved["data"])


def holm(p_values: list[float]) -> list[float]:
    """Holm's step-down adjustment of p-values, which keeps the chance of any false alarm.

    Parameters
    ----------
    p_values : list of float

    Returns
    -------
    list of float
        In the order given.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure, Scand. J. Statistics 6, 65–70.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])  # 3 × 0.01; 2 × 0.03; then no less than the one before
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    stepped = np.minimum(np.maximum.accumulate(np.asarray(p_values, dtype=np.float64)[order] * factors), 1.0)
    adjusted = np.empty(len(p_values))
    adjusted[order] = stepped
    return [float(p) for p in adjusted]


def judge_drift(
    before: ArrayLike,
    after: ArrayLike,
    gold: ArrayLike,
    *,
    groups: Groups | None = None,
    n_resamples: int = 9_999,
    rng: RNG = None,
) -> list[DriftTest]:
    """Compare two gradings of the same gold items.

    Where nothing has moved, the two gradings of a group may change places without anybody noticing. So their differences have
    random signs, and the p-values come from flipping the signs of whole groups: exact up to 12 groups, by random flips above. The
    mean absolute error is the raw expected level's, since a calibrator was fitted on the first grading and would favour it.

    Parameters
    ----------
    before, after : array_like, shape (n_items, n_levels)
        Level probabilities then and now.
    gold : array_like, shape (n_items,)
        In level indices.
    groups : sequence, shape (n_items,), optional
        Items that share a question; each by itself where not given.
    n_resamples : int, default 9999
    rng : numpy.random.Generator or int, optional
        None is a fixed stream.

    Returns
    -------
    list of DriftTest
        Level, MAE and distribution; p-values not yet adjusted (see :meth:`Drift.of`).

    Raises
    ------
    CalibrationError
        The inputs do not fit together.

    References
    ----------
    Good (2005), Permutation, Parametric and Bootstrap Tests of Hypotheses, ch. 3; Phipson & Smyth (2010), Permutation p-values
    should never be zero, Stat. Appl. Genet. Mol. Biol. 9, doi 10.2202/1544-6115.1585.

    Examples
    --------
    >>> before = np.eye(5)[np.tile([1, 2, 3], 20)]
    >>> after = np.roll(before, 1, axis=1)  # one level higher throughout
    >>> level, error, _ = judge_drift(before, after, np.tile([1, 2, 3], 20))
    >>> level.estimate, error.estimate, level.p_value < 0.001
    (1.0, 1.0, True)
    """
    one, two = distributions(before), distributions(after)
    if one.shape != two.shape:
        raise CalibrationError(f"the two gradings have shapes {one.shape} and {two.shape}; give the same items and levels")
    if not len(one):
        raise CalibrationError("there are no gold items to compare on")
    truth = as_gold(gold, len(one), one.shape[1])
    code = group_codes(groups, len(one))
    n_groups = int(code.max()) + 1
    shift = expected_level(two) - expected_level(one)
    error = np.abs(expected_level(two) - truth) - np.abs(expected_level(one) - truth)
    totals = [
        np.stack([np.bincount(code, column) for column in change.T], axis=1).astype(np.float64)
        for change in (shift[:, np.newaxis], error[:, np.newaxis], two - one)
    ]
    p_values = _p_values(totals, n_resamples, as_rng(rng))
    names: tuple[DriftName, DriftName] = ("judge: level", "judge: MAE")
    tests = []
    for name, change, p in zip(names, (shift, error), p_values, strict=False):
        high, low = (mean_limit(sign * change, groups=code, confidence_level=0.975).upper for sign in (1, -1))
        tests.append(
            DriftTest(
                name=name,
                estimate=float(change.mean()),
                low=None if low is None else -low,
                high=high,
                p_value=p,
                p_adjusted=p,
                n=len(change),
                n_groups=n_groups,
            )
        )
    apart, p = float(np.abs((two - one).mean(axis=0)).sum() / 2), p_values[2]
    about: dict[str, Any] = {"low": None, "high": None, "n": len(one), "n_groups": n_groups}
    return [*tests, DriftTest(name="judge: distribution", estimate=apart, p_value=p, p_adjusted=p, **about)]


def data_drift(
    reference: ArrayLike,
    new: ArrayLike,
    *,
    groups: Groups | None = None,
    new_groups: Groups | None = None,
    n_resamples: int = 1_999,
    rng: RNG = None,
) -> list[DriftTest]:
    """Compare new rows with the gold items by what the judge says of them.

    The p-values come from assigning whole groups anew to «gold» and «new», so they hold where the groups of both are drawn from
    one population. New rows whose expected level lies outside that of all gold items are where a calibrator only extends what
    it knows; a few are normal (with n gold items and no drift, 2 ÷ (n + 1) of the new rows), which the p-value allows for.

    Parameters
    ----------
    reference : array_like, shape (n_items, n_levels)
        Level probabilities of the gold items.
    new : array_like, shape (n_new, n_levels)
    groups, new_groups : sequence, optional
        Items that share a question; each by itself where not given. A name in both is one group each.
    n_resamples : int, default 1999
    rng : numpy.random.Generator or int, optional
        None is a fixed stream.

    Returns
    -------
    list of DriftTest
        Distribution and share outside the range; p-values not yet adjusted (see :meth:`Drift.of`).

    Raises
    ------
    CalibrationError
        The inputs do not fit together.

    References
    ----------
    Good (2005), Permutation, Parametric and Bootstrap Tests of Hypotheses, ch. 3.

    Examples
    --------
    >>> gold, new = np.eye(5)[np.tile([1, 2, 3], 10)], np.eye(5)[np.tile([2, 3, 4], 10)]
    >>> distribution, outside = data_drift(gold, new)
    >>> round(outside.estimate, 2), outside.p_value < 0.05
    (0.33, True)
    """
    old, fresh = distributions(reference), distributions(new)
    if old.shape[1:] != fresh.shape[1:]:
        raise CalibrationError(f"gold items have {old.shape[1]} levels and new rows {fresh.shape[1]}; grade by one rubric")
    if not (len(old) and len(fresh)):
        raise CalibrationError("there are no gold items, or no new rows, to compare")
    first = group_codes(groups, len(old))
    n_old = int(first.max()) + 1
    code = np.concatenate([first, n_old + group_codes(new_groups, len(fresh))])
    n_groups = int(code.max()) + 1
    whole = np.concatenate([old, fresh])
    level = expected_level(whole)
    size = np.bincount(code).astype(np.float64)
    sums = np.stack([np.bincount(code, column) for column in whole.T], axis=1)
    lowest, highest = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
    np.minimum.at(lowest, code, level)
    np.maximum.at(highest, code, level)
    ordered = np.sort(level)

    def measured(is_old: BoolArray) -> FloatArray:
        """Squared distance and rows outside the range, (n_resamples, 2), of assignments (n_resamples, n_groups)."""
        weight = is_old.astype(np.float64)
        n = weight @ size
        apart = (weight @ sums) / n[:, np.newaxis] - ((1 - weight) @ sums) / (len(level) - n)[:, np.newaxis]
        low = np.where(is_old, lowest, np.inf).min(axis=1) - ROUNDING
        high = np.where(is_old, highest, -np.inf).max(axis=1) + ROUNDING
        outside = np.searchsorted(ordered, low, "left") + len(level) - np.searchsorted(ordered, high, "right")
        return np.column_stack([(apart**2).sum(axis=1), outside / (len(level) - n)])

    seen = measured((np.arange(n_groups) < n_old)[np.newaxis])[0]
    generator = as_rng(rng)
    reached = np.zeros(2)
    step = max(1, CELLS // n_groups)
    for start in range(0, n_resamples, step):
        drawn = generator.random((min(step, n_resamples - start), n_groups)).argsort(axis=1) < n_old
        reached += (measured(drawn) >= seen * (1 - ROUNDING)).sum(axis=0)
    p_values = (1 + reached) / (1 + n_resamples)
    apart = float(np.abs(old.mean(axis=0) - fresh.mean(axis=0)).sum() / 2)
    about: dict[str, Any] = {"low": None, "high": None, "n": len(fresh), "n_groups": n_groups}
    names: tuple[DriftName, DriftName] = ("data: distribution", "data: outside range")
    return [
        DriftTest(name=name, estimate=estimate, p_value=float(p), p_adjusted=float(p), **about)
        for name, estimate, p in zip(names, (apart, float(seen[1])), p_values, strict=True)
    ]


def _flips(n_groups: int, n_resamples: int, generator: np.random.Generator) -> Iterator[FloatArray]:
    """Signs for each group, (n, n_groups), in pieces: all of them where they are few, else random ones with all +1 first."""
    if n_groups <= MAX_EXACT:
        yield np.array(list(product((1.0, -1.0), repeat=n_groups)))
        return
    yield np.ones((1, n_groups))
    step = max(1, CELLS // n_groups)
    for start in range(0, n_resamples, step):
        yield generator.choice((1.0, -1.0), (min(step, n_resamples - start), n_groups))


def _p_values(totals: list[FloatArray], n_resamples: int, generator: np.random.Generator) -> list[float]:
    """Share of sign flips whose squared length of the sum reaches that of the data; totals by group, (n_groups, n_columns)."""
    seen = [float((each.sum(axis=0) ** 2).sum()) * (1 - ROUNDING) for each in totals]
    reached, n = np.zeros(len(totals)), 0
    for signs in _flips(len(totals[0]), n_resamples, generator):
        n += len(signs)
        reached += [int((((signs @ each) ** 2).sum(axis=1) >= least).sum()) for each, least in zip(totals, seen, strict=True)]
    return [float(p) for p in reached / n]
