"""What the plots of a calibration report show, as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration import Calibrator, level_counts, reliability_curve
from isograde.calibration.metrics import nearest_level
from isograde.report.parts import Counts, Heatmap, IsotonicCurve, Reliability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isograde.report.inputs import Cases
    from isograde.report.measures import Forecasts

    FloatArray = NDArray[np.float64]

__all__ = ["distributions", "heatmaps", "isotonic_curve", "reliability_curves"]

MAX_POINTS = 200  # of a curve
CELLS = 40  # into which the judge's axis is cut where labels are gathered
MAX_GOLD_VALUES = 41


def reliability_curves(forecasts: Forecasts) -> tuple[Reliability, ...]:
    """CORP reliability of P(gold ≥ level), calibrated out of fold and raw, for each level but the lowest."""
    if forecasts.cross is None:
        return ()
    found = []
    for level in range(1, forecasts.n_levels):
        event = np.clip(forecasts.gold - (level - 1), 0, 1)
        calibrated = _tail(forecasts.cross.proba, level)
        found.append(
            Reliability(
                level=level,
                calibrated=_reliability(calibrated, event),
                raw=() if forecasts.proba is None else _reliability(_tail(forecasts.proba, level), event),
                histogram=tuple(np.histogram(calibrated, bins=10, range=(0, 1))[0].tolist()),
            )
        )
    return tuple(found)


def _tail(proba: FloatArray, level: int) -> FloatArray:
    """P(at the level or above)."""
    tail: FloatArray = np.clip(proba[:, level:].sum(axis=1), 0, 1)
    return tail


def _reliability(forecast: FloatArray, event: FloatArray) -> tuple[tuple[float, float], ...]:
    """A curve's corners: points inside a flat stretch are left out, and where many are left, evenly."""
    curve = reliability_curve(np.round(forecast, 4), event)
    x, y = curve.forecast, curve.recalibrated
    keep = np.ones(len(x), dtype=bool)
    keep[1:-1] = (y[1:-1] != y[:-2]) | (y[1:-1] != y[2:])
    return _pairs(*_thinned(x[keep], y[keep]))


def _thinned(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """At most MAX_POINTS points, with both ends."""
    if len(x) <= MAX_POINTS:
        return x, y
    drawn = np.unique(np.linspace(0, len(x) - 1, MAX_POINTS).round().astype(np.intp))
    return x[drawn], y[drawn]


def _pairs(x: FloatArray, y: FloatArray) -> tuple[tuple[float, float], ...]:
    """Points, rounded to what a plot can show."""
    return tuple(zip(np.round(x, 4).tolist(), np.round(y, 4).tolist(), strict=True))


def isotonic_curve(fitted: Calibrator, score: FloatArray, gold: FloatArray, n_levels: int, *, plain: bool) -> IsotonicCurve:
    """The calibrator that all labels fit, along the judge's axis, with the labels gathered in cells."""
    low, high = (float(score.min()), float(score.max())) if plain else (0.0, float(n_levels - 1))
    grid = np.linspace(low, high, MAX_POINTS + 1) if high > low else np.array([low])
    # A calibrator looks at nothing but the expected level; two neighbouring levels can have any.
    given = grid if plain else np.clip(1 - np.abs(grid[:, np.newaxis] - np.arange(n_levels)), 0, None)
    width = (high - low) / CELLS or 1.0
    cell = np.round((score - low) / width) * width + low
    shown = gold if len(np.unique(gold)) <= MAX_GOLD_VALUES else np.round(gold / (n_levels - 1) * CELLS) * (n_levels - 1) / CELLS
    places, counts = np.unique(np.round(np.column_stack([cell, shown]), 6), axis=0, return_counts=True)
    weights = fitted.weights_
    return IsotonicCurve(
        score_name="the judge's score" if plain else "the judge's expected level",
        score=tuple(np.round(grid, 4).tolist()),
        mean=tuple(np.round(fitted.predict_mean(given), 4).tolist()),
        median=tuple(np.round(fitted.predict(given), 4).tolist()),
        points=tuple((x, y, count) for (x, y), count in zip(places.tolist(), counts.tolist(), strict=True)),
        isotonic_weight=weights.isotonic,
        climatology_weight=weights.climatology,
        raw_weight=weights.raw,
    )


def heatmaps(forecasts: Forecasts) -> tuple[Heatmap, ...]:
    """Rows by predicted level and gold level, raw and calibrated."""
    cross = forecasts.cross
    named = (
        ("the judge's most probable level", forecasts.most_probable),
        ("the calibrated level", None if cross is None else cross.median),
    )
    found = []
    for name, predicted in named:
        if predicted is not None:
            place = nearest_level(predicted) * forecasts.n_levels + nearest_level(forecasts.gold)
            counts = np.bincount(place.astype(np.intp), minlength=forecasts.n_levels**2).reshape(forecasts.n_levels, -1)
            found.append(Heatmap(name=name, counts=tuple(tuple(row) for row in counts.tolist())))
    return tuple(found)


def distributions(forecasts: Forecasts, cases: Cases) -> tuple[Counts, ...]:
    """Rows by level: gold, the judge and the calibrated judge where there are labels, else the judge on all rows."""
    n_levels = len(cases.labels)
    columns: list[tuple[str, FloatArray | None]] = [
        ("gold", forecasts.gold),
        ("judge", forecasts.most_probable),
        ("calibrated", None if forecasts.cross is None else forecasts.cross.median),
    ]
    if not len(forecasts.gold):
        columns = [("judge", cases.values.argmax(axis=1).astype(np.float64) if cases.values.ndim == 2 else None)]
    return tuple(
        Counts(name=name, counts=level_counts(values, n_levels)) for name, values in columns if values is not None and len(values)
    )
