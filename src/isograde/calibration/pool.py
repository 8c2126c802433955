"""The pool behind :class:`~isograde.calibration.Calibrator`: three forecasts, and how much to trust each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration.isotonic import distinct, interpolate, merge_curves, trim, weighted_isotonic

if TYPE_CHECKING:
    from isograde.calibration._inputs import BoolArray, FloatArray, Sample

__all__: list[str] = []

# Up to here the isotonic part averages over half-samples; with more labels that changes nothing and costs much.
MAX_SUBAGGED = 10_000
N_FOLDS = 5
# A mean over half-samples bends at nearly every score; this many points draw it as well, in a smaller file.
MAX_SUBAGGED_KNOTS = 1_000
# Steps of 0.1 on each weight: 66 pools.
GRID_STEPS = 10
# How fast a pool loses trust: by exp(−SHARPNESS) for each group of labels and each climatology's worth of CRPS.
# tests/bench/calibration_table.py shows the errors to be flat between 2 and 8.
SHARPNESS = 3.0
# A CRPS, in levels, that is rounding and not spread.
NO_SPREAD = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPool:
    """Forecasts as cumulative probabilities at support[:-1], and their weights (isotonic, climatology, raw)."""

    knots: FloatArray
    cdf: FloatArray
    climatology: FloatArray
    weights: FloatArray


def raw_cdf(level: FloatArray, support: FloatArray) -> FloatArray:
    """Cumulative probability at support[:-1] of a point mass at level, split linearly between its neighbours on the support."""
    return np.clip((support[1:] - level[:, np.newaxis]) / np.diff(support), 0, 1)


def pooled_cdf(pool: FittedPool, score: FloatArray, level: FloatArray | None, support: FloatArray) -> FloatArray:
    """P(gold ≤ support) for every support point but the last, shape (n_items, n_support − 1); level is the raw one, if any."""
    isotonic, climatology, raw = pool.weights.tolist()
    cdf: FloatArray = isotonic * interpolate(score, pool.knots, pool.cdf) + climatology * pool.climatology
    return cdf if level is None else cdf + raw * raw_cdf(level, support)


def held_out_groups(n_groups: int, n_subsamples: int, rng: np.random.Generator) -> list[BoolArray]:
    """Which groups each part-fit leaves out: complementary halves when subagging, else folds; none for a single group."""
    if n_groups < 2:
        return []
    if not n_subsamples:
        fold = np.empty(n_groups, dtype=np.intp)
        fold[rng.permutation(n_groups)] = np.arange(n_groups) % N_FOLDS
        return [fold == f for f in range(min(N_FOLDS, n_groups))]
    held_out: list[BoolArray] = []
    for _ in range((n_subsamples + 1) // 2):
        half = np.zeros(n_groups, dtype=bool)
        half[rng.permutation(n_groups)[: n_groups // 2]] = True
        held_out += [half, ~half]
    return held_out


def fit_pool(
    sample: Sample, support: FloatArray, raw_level: FloatArray | None, n_subsamples: int, rng: np.random.Generator
) -> FittedPool:
    """Fit the three forecasts threshold by threshold (memory stays linear), scoring each out of sample as it goes."""
    at, row = distinct(sample.score)
    subagged = len(sample.score) <= MAX_SUBAGGED and n_subsamples > 0
    held_out = held_out_groups(sample.n_groups, n_subsamples if subagged else 0, rng)
    column = np.searchsorted(support, sample.gold)
    weight, total = sample.weight, sample.weight.sum()
    curves: list[tuple[FloatArray, FloatArray]] = []
    climatology = np.empty(len(support) - 1)
    products = np.zeros((3, 3))
    for k, width in enumerate(np.diff(support)):
        below = (column <= k).astype(np.float64)
        climatology[k] = below @ weight / total
        summed = np.zeros(len(at))
        # Out-of-sample forecasts of P(gold ≤ support[k]), summed over the part-fits that left the row out: isotonic, climatology.
        left_out = np.zeros((2, len(row)))
        times = np.zeros(len(row))
        for out in held_out:
            rows_out = out[sample.group]
            part = np.where(rows_out, 0.0, weight)
            kept, fitted = weighted_isotonic(row, len(at), below, part, increasing=False)
            curve = np.interp(at, at[kept], fitted)
            summed += curve
            left_out[0] += np.where(rows_out, curve[row], 0.0)
            left_out[1] += np.where(rows_out, below @ part / part.sum(), 0.0)
            times += rows_out
        if subagged and held_out:
            curves.append(trim(at, summed / len(held_out)))
        else:
            curves.append(trim(at, weighted_isotonic(row, len(at), below, weight, increasing=False)[1]))
        if held_out:
            raw = below if raw_level is None else raw_cdf(raw_level, support[k : k + 2])[:, 0]
            error = np.vstack([left_out / times, raw]) - below
            products += width * (error * weight) @ error.T / total
    knots, cdf = merge_curves(curves) if curves else (at[:1], np.empty((1, 0)))
    if subagged and len(knots) > MAX_SUBAGGED_KNOTS:
        drawn = np.linspace(0, len(knots) - 1, MAX_SUBAGGED_KNOTS).round().astype(np.intp)
        knots, cdf = knots[drawn], cdf[drawn]
    return FittedPool(
        knots=knots,
        # The fits are ordered along the support in theory; rounding may break it by an ulp.
        cdf=np.clip(np.maximum.accumulate(cdf, axis=1), 0, 1),
        climatology=np.clip(np.maximum.accumulate(climatology), 0, 1),
        weights=pool_weights(products, sample.n_groups if held_out else 0, with_raw=raw_level is not None),
    )


def pool_weights(products: FloatArray, n_groups: int, *, with_raw: bool) -> FloatArray:
    """Soft minimum of the out-of-sample CRPS over a grid of weights.

    ``products[a, b]`` is the mean over labels of ∫ (F_a − 1{gold ≤ t})(F_b − 1{gold ≤ t}) dt, so a pool's CRPS is w′ products w.
    """
    steps = np.arange(GRID_STEPS + 1)
    first, second = (part.ravel() for part in np.meshgrid(steps, steps, indexing="ij"))
    grid = np.column_stack([first, second, GRID_STEPS - first - second])
    grid = grid[(grid[:, 2] >= 0) if with_raw else (grid[:, 2] == 0)] / GRID_STEPS
    crps = np.einsum("ga,ab,gb->g", grid, products, grid)
    # Climatology's CRPS is zero, but for rounding, only where every label is the same; then levels are the scale.
    scale = products[1, 1] if products[1, 1] > NO_SPREAD else 1.0
    trust = np.exp(-SHARPNESS * n_groups * (crps - crps.min()) / scale)
    weights: FloatArray = trust @ grid / trust.sum()
    return np.clip(weights, 0, 1)
