"""What each signal is worth beside human gold labels, alone, blended and weighed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from isograde.calibration import (
    Calibrator,
    Figure,
    SignalCalibrator,
    bootstrap_figure,
    bootstrap_mean,
    grouped_folds,
    mean_limit,
    rps_values,
    spearman,
)
from isograde.errors import CalibrationError
from isograde.report.measures import CONFIDENCE, MAX_RANKED, RANK_RESAMPLES, from_figure, group_interval
from isograde.report.parts import Answer, Estimate
from isograde.report.signal_parts import Cost, SignalRow, SignalTable, signals_answer
from isograde.report.text import plural

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.intp]

__all__ = ["BLEND", "signal_table"]

N_RESAMPLES = 1000

BLEND: Mapping[str, float] = {"claim_f1": 0.75, "similarity": 0.25}
"""The weights of RAGAS's answer correctness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """Out-of-fold losses of one way to grade: (n_items,) each."""

    score: FloatArray
    error: FloatArray
    rps: FloatArray


def signal_table(
    signals: Mapping[str, Sequence[float | None] | ArrayLike],
    gold: ArrayLike,
    *,
    groups: Sequence[Any] | NDArray[Any] | None = None,
    n_levels: int = 5,
    costs: Mapping[str, Mapping[str, Cost]] | None = None,
    blend: Mapping[str, float] = BLEND,
    rng: int | None = None,
) -> SignalTable:
    """Measure each signal alone, a fixed blend and the fitted index, out of fold, on the same rows and folds.

    Parameters
    ----------
    signals : mapping of str to sequence of (float or None), length n_items
        In [0, 1]. Rows that lack one are left out of all lines and counted. The first is what the others must beat.
    gold : array_like, shape (n_items,)
        In level indices.
    groups : sequence, length n_items, optional
        Items that share a question, never split between fitting and measuring; each row by itself where not given.
    n_levels : int, default 5
    costs : mapping of str to mapping of str to Cost, optional
        For each signal, the parts of work that it needs; a part that several signals need is counted once.
    blend : mapping of str to float
        Weights, summing to 1; it has a line where each of its signals is there and has a weight.
    rng : int, optional
        None is a fixed stream.

    Returns
    -------
    SignalTable

    Raises
    ------
    CalibrationError
        The inputs do not fit together; the message names the row.

    Notes
    -----
    Intervals of differences in MAE and RPS are Student's t on group totals (CR1), all others percentile bootstraps over groups.
    The index's weights are fitted within each training part, so that its line owes nothing to the rows it is measured on.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> gold = rng.integers(0, 5, 150)
    >>> good, poor = (np.clip(gold / 4 + rng.normal(0, s, 150), 0, 1) for s in (0.15, 0.6))
    >>> table = signal_table({"rubric": good, "similarity": poor}, gold)
    >>> [(row.name, row.shown) for row in table.rows]
    [('rubric', None), ('similarity', 'further'), ('index', None)]
    >>> table.answer.sentence
    'Use rubric: nothing is shown to be nearer to the humans on these 150 rows.'
    """
    names = list(signals)
    levels = np.asarray(gold, dtype=np.float64)
    whole = _columns(signals, len(levels))
    complete = np.isfinite(whole).all(axis=1)
    kept = np.flatnonzero(complete)
    missing = tuple((name, int(np.isnan(whole[:, i]).sum())) for i, name in enumerate(names) if np.isnan(whole[:, i]).any())
    table, y = whole[kept], levels[kept]
    codes = np.arange(len(y)) if groups is None else _codes(groups, kept)
    n_groups = len(np.unique(codes))
    seed = 0 if rng is None else rng
    if n_groups < 2:
        reason = f"{plural(len(y), 'row')} with every signal in {plural(n_groups, 'group')} cannot be split to fit and to measure"
        return SignalTable(
            answer=Answer(sentence=f"Not known: {reason}."),
            n=len(y),
            n_groups=n_groups,
            missing=missing,
            n_left_out=len(whole) - len(kept),
            rows=(),
        )
    fold = grouped_folds(codes, rng=seed)
    alone = Calibrator(n_levels=n_levels, score_range=(0, 1))
    ways: list[tuple[str, Literal["signal", "blend", "index"], tuple[str, ...], _Measured]] = [
        (name, "signal", (name,), _held_out(alone, table[:, i], y, codes, fold, seed)) for i, name in enumerate(names)
    ]
    if all(name in names and weight > 0 for name, weight in blend.items()):
        mixed = table @ np.array([blend.get(name, 0.0) for name in names])
        weights = "/".join(f"{weight:g}" for weight in blend.values())
        ways.append((f"{weights} blend", "blend", tuple(blend), _held_out(alone, mixed, y, codes, fold, seed)))
    final = SignalCalibrator(n_levels=n_levels).fit(table, y, groups=codes, rng=seed)
    shares = dict(zip(names, final.shares_.values(), strict=True))
    if len(names) > 1:
        needed = tuple(name for name in names if shares[name] > 0)
        ways.append(("index", "index", needed, _held_out(final, table, y, codes, fold, seed)))
    first = ways[0][3]
    rows = [
        _row(name, kind, own, None if own is first else first, y, codes, looks=len(ways) - 1, seed=seed).model_copy(
            update={"share": shares.get(name), **_cost(used, costs)}
        )
        for name, kind, used, own in ways
    ]
    return SignalTable(
        answer=signals_answer(rows, len(y), n_groups),
        n=len(y),
        n_groups=n_groups,
        missing=missing,
        n_left_out=len(whole) - len(kept),
        rows=tuple(rows),
    )


def _columns(signals: Mapping[str, Any], n: int) -> FloatArray:
    """Signals as columns, NaN where one is missing: (n_items, n_signals)."""
    if not signals:
        raise CalibrationError("there is no signal; give at least one")
    columns = []
    for name, values in signals.items():
        column = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        if column.shape != (n,):
            raise CalibrationError(f"signal {name} has shape {column.shape} and there are {n} gold labels; give one a row")
        if (off := (column < 0) | (column > 1)).any():
            row = int(np.flatnonzero(off)[0])
            raise CalibrationError(f"row {row}: signal {name} is {column[row]:g}; signals lie in 0 … 1, so rescale it")
        columns.append(column)
    return np.column_stack(columns)


def _codes(groups: Sequence[Any] | NDArray[Any], kept: IntArray) -> IntArray:
    """One integer a group of the rows that are kept; None is a group of its own."""
    code: dict[Any, int] = {}
    own = [groups[i] for i in kept]
    return np.array([code.setdefault((i,) if g is None else g, len(code)) for i, g in enumerate(own)], dtype=np.intp)


def _held_out(
    template: Calibrator | SignalCalibrator, values: FloatArray, gold: FloatArray, codes: IntArray, fold: IntArray, seed: int
) -> _Measured:
    """Predict every row by a calibrator that never saw its group."""
    score, error, rps = np.empty(len(gold)), np.empty(len(gold)), np.empty(len(gold))
    for held_out in range(int(fold.max()) + 1):
        rows, others = np.flatnonzero(fold == held_out), np.flatnonzero(fold != held_out)
        fitted = template.unfitted().fit(values[others], gold[others], groups=codes[others], rng=seed)
        score[rows] = fitted.index(values[rows]) if isinstance(fitted, SignalCalibrator) else values[rows]
        error[rows] = np.abs(fitted.predict(values[rows]) - gold[rows])
        rps[rows] = rps_values(fitted.predict_proba(values[rows]), gold[rows])
    return _Measured(score=score, error=error, rps=rps)


def _row(
    name: str,
    kind: Literal["signal", "blend", "index"],
    own: _Measured,
    first: _Measured | None,
    gold: FloatArray,
    codes: IntArray,
    *,
    looks: int,
    seed: int,
) -> SignalRow:
    """Figures of one way to grade, and their differences from the first."""
    row = SignalRow(
        name=name,
        kind=kind,
        share=None,
        mae=_mean(own.error, codes, seed),
        rps=_mean(own.rps, codes, seed),
        spearman=_ranked(spearman, own.score, gold, codes=codes, seed=seed),
        tokens=None,
        seconds=None,
    )
    if first is None:
        return row
    loss = own.rps - first.rps
    confidence = 1 - (1 - CONFIDENCE) / looks / 2
    shown: Literal["nearer", "further"] | None = None
    if _below_zero(loss, codes, confidence):
        shown = "nearer"
    elif _below_zero(-loss, codes, confidence):
        shown = "further"
    return row.model_copy(
        update={
            "mae_difference": group_interval(own.error - first.error, codes),
            "rps_difference": group_interval(loss, codes),
            "spearman_difference": _ranked(_spearman_difference, own.score, first.score, gold, codes=codes, seed=seed),
            "shown": shown,
        }
    )


def _mean(losses: FloatArray, codes: IntArray, seed: int) -> Estimate:
    """Mean loss, with an interval that stays on its own side of 0."""
    interval = bootstrap_mean(losses, groups=codes, n_resamples=N_RESAMPLES, rng=seed)
    return from_figure(Figure(value=float(losses.mean()), n=len(losses), interval=interval))


def _below_zero(values: FloatArray, codes: IntArray, confidence: float) -> bool:
    """Whether a mean's upper limit is below 0."""
    upper = mean_limit(values, groups=codes, confidence_level=confidence).upper
    return upper is not None and upper < 0


def _ranked(measure: Any, *arrays: FloatArray, codes: IntArray, seed: int) -> Estimate:
    """A rank correlation, or a difference of two, with its interval while the rows are few enough."""
    if len(codes) > MAX_RANKED:
        figure = from_figure(measure(*arrays))
        return figure.model_copy(update={"reason": figure.reason or f"no interval above {MAX_RANKED:,} rows"})
    return from_figure(bootstrap_figure(measure, *arrays, groups=codes, n_resamples=RANK_RESAMPLES, rng=seed))


def _spearman_difference(own: FloatArray, first: FloatArray, gold: FloatArray) -> Figure:
    """Difference of two rank correlations with gold."""
    one, other = spearman(own, gold), spearman(first, gold)
    if one.value is None or other.value is None:
        return replace(one, value=None, reason=one.reason or other.reason)
    return replace(one, value=one.value - other.value)


def _cost(used: Sequence[str], costs: Mapping[str, Mapping[str, Cost]] | None) -> dict[str, float | None]:
    """Tokens and seconds of the parts that some signals need, each part once."""
    if costs is None or any(name not in costs for name in used):
        return {"tokens": None, "seconds": None}
    parts = {part: cost for name in used for part, cost in costs[name].items()}
    tokens, seconds = ([getattr(cost, unit) for cost in parts.values()] for unit in ("tokens", "seconds"))
    return {
        "tokens": None if None in tokens else float(sum(tokens)),
        "seconds": None if None in seconds else float(sum(seconds)),
    }
