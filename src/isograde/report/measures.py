"""The figures of a calibration report, with bootstrap intervals over groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration import (
    CrossFit,
    Figure,
    bootstrap_figure,
    corp,
    kendall_tau_b,
    level_probabilities,
    mean_limit,
    rps_values,
    spearman,
    threshold_figures,
)
from isograde.calibration.metrics import nearest_level
from isograde.report.parts import Estimate, PointFigure, SpreadFigure, ThresholdFigure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.intp]

__all__ = ["Forecasts", "Resampling", "group_interval", "point_figures", "spread_figures", "threshold_table"]

CONFIDENCE = 0.95
# Ranks cannot be summed by group, so their resamples are few and end at this many rows.
RANK_RESAMPLES = 200
MAX_RANKED = 5_000
CHUNK = 50  # resamples at a time: a table of counts stays small for any number of groups

Means = Callable[["FloatArray"], "FloatArray"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecasts:
    """What is measured against gold: levels and distributions, None where there are none, and why.

    Attributes
    ----------
    gold : ndarray of float, shape (n,)
    group : ndarray of int, shape (n,)
    cross : CrossFit or None
        Out-of-fold predictions.
    raw : ndarray of float, shape (n,), or None
        Expected level.
    proba : ndarray of float, shape (n, n_levels), or None
        The raw judge's.
    most_probable : ndarray of float, shape (n,), or None
    no_cross, no_raw, no_proba : str
        Why.
    """

    gold: FloatArray
    group: IntArray
    n_levels: int
    cross: CrossFit | None
    raw: FloatArray | None
    proba: FloatArray | None
    most_probable: FloatArray | None
    no_cross: str
    no_raw: str
    no_proba: str

    @property
    def predicted(self) -> FloatArray | None:
        """The best level there is: calibrated, else the raw one."""
        return self.raw if self.cross is None else self.cross.median

    def points(self) -> dict[str, tuple[FloatArray | None, str]]:
        """Predicted levels by the name of their column, each with the reason for none."""
        cross = self.cross
        return {
            "calibrated": (None if cross is None else cross.median, self.no_cross),
            "calibrated_mean": (None if cross is None else cross.mean, self.no_cross),
            "expected_level": (self.raw, self.no_raw),
            "most_probable": (self.most_probable, self.no_proba),
            "constant": (None if cross is None else cross.constant, self.no_cross),
        }


class Resampling:
    """Figures that are functions of means, all on the same resamples of whole groups, in one pass over the rows."""

    def __init__(self, group: IntArray, *, n_resamples: int, seed: int) -> None:
        self._group = group
        self._n_resamples = n_resamples
        self._seed = seed
        self._columns: list[FloatArray] = []
        self._jobs: dict[tuple[str, ...], tuple[slice, Means]] = {}

    def ask(self, name: tuple[str, ...], columns: list[FloatArray], figure: Means = lambda means: means[..., 0]) -> None:
        """Ask for a figure of the means of columns (n_items,); ``figure`` maps (…, n_columns) to (…,), NaN where undefined."""
        first = len(self._columns)
        self._columns += [np.bincount(self._group, column).astype(np.float64) for column in columns]
        self._jobs[name] = (slice(first, first + len(columns)), figure)

    def estimates(self) -> dict[tuple[str, ...], Estimate]:
        """All figures asked for."""
        size = np.bincount(self._group)
        n = len(self._group)
        if not self._jobs:
            return {}
        table = np.column_stack([*self._columns, size])
        whole = table[:, :-1].sum(axis=0) / n
        drawn = self._drawn(table) if len(size) > 1 else None
        return {
            name: _estimate(figure, whole[own], None if drawn is None else drawn[:, own], n)
            for name, (own, figure) in self._jobs.items()
        }

    def _drawn(self, table: FloatArray) -> FloatArray:
        """Means of every column in every resample, shape (n_resamples, n_columns)."""
        rng = np.random.default_rng(self._seed)
        n_groups = len(table)
        sums = []
        for start in range(0, self._n_resamples, CHUNK):
            draws = min(CHUNK, self._n_resamples - start)
            counts = [np.bincount(rng.integers(0, n_groups, n_groups), minlength=n_groups) for _ in range(draws)]
            sums.append(np.array(counts, dtype=np.float64) @ table)
        total = np.concatenate(sums)
        means: FloatArray = total[:, :-1] / total[:, -1:]
        return means


def _estimate(figure: Means, whole: FloatArray, drawn: FloatArray | None, n: int) -> Estimate:
    """Figure and percentile interval."""
    value = float(figure(whole))
    if not np.isfinite(value):
        return Estimate(value=None, n=n, reason="the same level everywhere")
    if drawn is None:
        return Estimate(value=value, n=n, reason="no interval: one group only")
    resampled = figure(drawn)
    defined = resampled[np.isfinite(resampled)]
    if len(defined) < 0.95 * len(resampled):
        return Estimate(value=value, n=n, reason="no interval: undefined in too many resamples")
    low, high = np.quantile(defined, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(value=value, low=float(low), high=float(high), n=n)


def group_interval(values: FloatArray, group: IntArray) -> Estimate:
    """Mean with a two-sided interval that needs no resampling: Student's t on group totals, as the signal test has it."""
    one_sided = (1 + CONFIDENCE) / 2
    above = mean_limit(values, groups=group, confidence_level=one_sided)
    below = mean_limit(-values, groups=group, confidence_level=one_sided)
    low = None if below.upper is None else -below.upper
    return Estimate(value=above.mean, low=low, high=above.upper, n=above.n, reason=above.reason)


def undefined(reason: str, n: int) -> Estimate:
    """No figure, and why."""
    return Estimate(value=None, n=n, reason=reason)


def from_figure(figure: Figure) -> Estimate:
    """A figure of the calibration package as the report keeps it."""
    interval = figure.interval
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    reason = figure.reason or (None if interval is None or interval.reason is None else f"no interval: {interval.reason}")
    return Estimate(value=figure.value, low=low, high=high, n=figure.n, reason=reason)


_POINT_MEASURES = (
    ("MAE", "mean distance from gold; the lower the better", "levels"),
    ("RMSE", "root of the mean squared distance: large errors weigh more", "levels"),
    ("bias", "mean of predicted − gold: above 0 is too lenient", "levels"),
    ("exact agreement", "share of rows on gold's nearest level", "share"),
    ("within one", "share of rows at most one level off", "share"),
    ("Spearman ρ", "rank correlation: 1 is the same order", "number"),
    ("Kendall τ-b", "rank correlation that allows for ties", "number"),
    ("quadratic-weighted κ", "agreement beyond chance; large errors weigh more", "number"),
)


def ask_points(resampling: Resampling, forecasts: Forecasts) -> None:
    """Ask for every measure of predicted levels that is a function of means."""
    gold = forecasts.gold
    b = nearest_level(gold)
    for name, (predicted, _) in forecasts.points().items():
        if predicted is None:
            continue
        error = predicted - gold
        a = nearest_level(predicted)
        resampling.ask(("MAE", name), [np.abs(error)])
        resampling.ask(("RMSE", name), [error**2], lambda means: np.sqrt(means[..., 0]))
        resampling.ask(("bias", name), [error])
        resampling.ask(("exact agreement", name), [(a == b).astype(np.float64)])
        resampling.ask(("within one", name), [(np.abs(a - b) <= 1).astype(np.float64)])
        resampling.ask(("quadratic-weighted κ", name), [(a - b) ** 2, a, b, a**2, b**2], _kappa)


def _kappa(means: FloatArray) -> FloatArray:
    """Quadratic-weighted κ: 1 − observed ÷ chance, chance the mean squared difference of independent draws."""
    observed, a, b, aa, bb = np.moveaxis(means, -1, 0)
    chance = aa - a**2 + bb - b**2 + (a - b) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa: FloatArray = np.where(chance > 1e-12, 1 - observed / chance, np.nan)
    return kappa


def point_figures(
    forecasts: Forecasts, found: dict[tuple[str, ...], Estimate], *, n_resamples: int, seed: int
) -> tuple[PointFigure, ...]:
    """Lay out the measures of predicted levels."""
    n = len(forecasts.gold)
    table: list[PointFigure] = []
    ranks = {"Spearman ρ": spearman, "Kendall τ-b": kendall_tau_b}
    for measure, meaning, unit in _POINT_MEASURES:
        row: dict[str, Estimate] = {}
        for name, (predicted, reason) in forecasts.points().items():
            if predicted is None:
                row[name] = undefined(reason, n)
            elif measure not in ranks:
                row[name] = found[measure, name]
            elif name == "constant":
                row[name] = undefined("a constant ranks nothing", n)
            elif n > MAX_RANKED:
                row[name] = _without_interval(ranks[measure](predicted, forecasts.gold))
            else:
                resamples = min(n_resamples, RANK_RESAMPLES)
                row[name] = from_figure(
                    bootstrap_figure(
                        ranks[measure], predicted, forecasts.gold, groups=forecasts.group, n_resamples=resamples, rng=seed
                    )
                )
        table.append(PointFigure(name=measure, meaning=meaning, unit=unit, **row))  # type: ignore[arg-type] # units are literals above
    return tuple(table)


def _without_interval(figure: Figure) -> Estimate:
    """A rank correlation of many rows."""
    estimate = from_figure(figure)
    return estimate.model_copy(update={"reason": estimate.reason or f"no interval above {MAX_RANKED:,} rows"})


def _distributions(forecasts: Forecasts) -> dict[str, tuple[FloatArray | None, str]]:
    """Predicted level probabilities by the name of their column."""
    cross, n_levels = forecasts.cross, forecasts.n_levels
    # A point mass at the constant, split between its two levels where it lies between them.
    constant = None if cross is None else np.clip(1 - np.abs(cross.constant[:, np.newaxis] - np.arange(n_levels)), 0, None)
    climatology = None if cross is None else level_probabilities(cross.climatology, cross.support, n_levels)
    return {
        "calibrated": (None if cross is None else cross.proba, forecasts.no_cross),
        "raw": (forecasts.proba, forecasts.no_proba),
        "constant": (constant, forecasts.no_cross),
        "climatology": (climatology, forecasts.no_cross),
    }


def ask_spreads(resampling: Resampling, forecasts: Forecasts) -> None:
    """Ask for the RPS and the Brier scores of every predicted distribution."""
    gold, n_levels = forecasts.gold, forecasts.n_levels
    events = np.clip(gold[:, np.newaxis] - np.arange(n_levels - 1), 0, 1)
    for k in range(n_levels - 1):
        resampling.ask(("rate", str(k + 1)), [events[:, k]])
    for name, (proba, _) in _distributions(forecasts).items():
        if proba is None:
            continue
        resampling.ask(("RPS", name), [rps_values(proba, gold)])
        tails = np.cumsum(proba[:, :0:-1], axis=1)[:, ::-1]
        for k in range(n_levels - 1):
            resampling.ask(("Brier", name, str(k + 1)), [(tails[:, k] - events[:, k]) ** 2])


_PARTS = (
    ("miscalibration", "what a better calibration would still take off"),
    ("discrimination", "what telling rows apart takes off; 0 knows nothing"),
    ("uncertainty", "what always forecasting these labels' own distribution costs"),
)


def spread_figures(forecasts: Forecasts, found: dict[tuple[str, ...], Estimate]) -> tuple[SpreadFigure, ...]:
    """Lay out RPS and its CORP decomposition: RPS = miscalibration − discrimination + uncertainty."""
    n = len(forecasts.gold)
    rps: dict[str, Estimate] = {}
    parts: dict[str, dict[str, Estimate]] = {name: {} for name, _ in _PARTS}
    for name, (proba, reason) in _distributions(forecasts).items():
        if proba is None:
            rps[name] = undefined(reason, n)
            for part in parts.values():
                part[name] = undefined(reason, n)
            continue
        rps[name] = found["RPS", name]
        whole = corp(proba, np.arange(forecasts.n_levels), forecasts.gold)
        for measure, columns in parts.items():
            columns[name] = Estimate(value=getattr(whole, measure), n=n, reason=whole.reason)
    first = SpreadFigure(
        name="RPS", meaning="distance of the whole distribution from gold, in levels; the lower the better", **rps
    )
    return (first, *(SpreadFigure(name=name, meaning=meaning, **parts[name]) for name, meaning in _PARTS))


def threshold_table(forecasts: Forecasts, found: dict[tuple[str, ...], Estimate]) -> tuple[ThresholdFigure, ...]:
    """Lay out Brier score and ECE of P(gold ≥ level) for each level but the lowest."""
    n = len(forecasts.gold)
    tables = _distributions(forecasts)
    eces = {
        name: None if proba is None else [from_figure(each.ece) for each in threshold_figures(proba, forecasts.gold)]
        for name, (proba, _) in tables.items()
        if name in {"calibrated", "raw"}
    }

    def brier(name: str, level: int) -> Estimate:
        return found.get(("Brier", name, str(level))) or undefined(tables[name][1], n)

    def ece(name: str, level: int) -> Estimate:
        column = eces[name]
        return undefined(tables[name][1], n) if column is None else column[level - 1]

    return tuple(
        ThresholdFigure(
            level=level,
            event_rate=found["rate", str(level)],
            brier_calibrated=brier("calibrated", level),
            brier_raw=brier("raw", level),
            brier_climatology=brier("climatology", level),
            ece_calibrated=ece("calibrated", level),
            ece_raw=ece("raw", level),
        )
        for level in range(1, forecasts.n_levels)
    )
