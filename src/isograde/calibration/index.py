"""Weights of several signals: one index that rises with each of them."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from isograde.calibration._inputs import FloatArray, IntArray

__all__: list[str] = []

# Candidates are a grid on the simplex: steps of a tenth for three signals, of a fifth for five.
MOST_CANDIDATES = 130
FINEST_STEPS = 10
# How fast a candidate loses trust: by exp(−SHARPNESS) for each group of labels and each variance of gold in squared error.
SHARPNESS = 1.0
# Before any label an index of one signal more is this much less likely: few signals are cheaper, and safer with few labels.
PRIOR = 0.5
# A signal that moves the index by less than this share of the whole is left out.
SMALL = 0.02
# A standard deviation, or an error in squared levels, that is rounding.
NO_SPREAD = 1e-9


def fit_shares(
    signals: FloatArray, gold: FloatArray, weight: FloatArray, group: IntArray, n_groups: int
) -> tuple[FloatArray, FloatArray]:
    """Weights of the signals in the index, and the share of it that each moves; (n_signals,) each, sums 1.

    Signals are brought to unit spread. Each candidate on a grid of the simplex is one predictor in a line with a slope of 0 or
    more, scored by its squared error on each group when the line is fitted to all other groups; the candidates are averaged by
    a soft minimum of that error.
    """
    spread = np.sqrt(_mean((signals - _mean(signals, weight)) ** 2, weight))
    moving = spread > NO_SPREAD
    if not moving.any():
        # Nothing moves, so no weighting is better than another.
        equal = np.full(signals.shape[1], 1 / signals.shape[1])
        return equal, equal
    unit = signals[:, moving] / spread[moving]
    grid = simplex_grid(unit.shape[1])
    trust = _prior(grid)
    if n_groups > 1:
        error = np.array([held_out_error(unit @ candidate, gold, weight, group, n_groups) for candidate in grid])
        scale = max(float(_mean((gold - _mean(gold, weight)) ** 2, weight)), NO_SPREAD)
        trust *= np.exp(-SHARPNESS * n_groups * (error - error.min()) / scale)
    shares = np.zeros(signals.shape[1])
    shares[moving] = trust @ grid / trust.sum()
    shares[shares < SMALL] = 0.0
    shares /= shares.sum()
    weights = np.divide(shares, spread, out=np.zeros_like(shares), where=moving)
    return weights / weights.sum(), shares


def simplex_grid(n_signals: int) -> FloatArray:
    """Weights that sum to 1, evenly spread, with every single signal among them: (n_candidates, n_signals)."""
    fits = [s for s in range(1, FINEST_STEPS + 1) if comb(s + n_signals - 1, s) <= MOST_CANDIDATES]
    steps = max(fits, default=1)
    # Bars between stars: the gaps between n_signals − 1 bars among the places.
    places = steps + n_signals - 1
    bars = combinations(range(places), n_signals - 1)
    grid = np.array([np.diff((-1, *chosen, places)) - 1 for chosen in bars], dtype=np.float64)
    return grid / steps


def held_out_error(index: FloatArray, gold: FloatArray, weight: FloatArray, group: IntArray, n_groups: int) -> float:
    """Mean squared error, in squared levels, of each group under the line fitted to the others; the line never falls."""

    def without(values: FloatArray) -> FloatArray:
        own = np.bincount(group, values, n_groups)
        others: FloatArray = own.sum() - own
        return others

    # Centred, so that the sums of squares keep their digits.
    x, y = index - _mean(index, weight), gold - _mean(gold, weight)
    total = without(weight)
    mean_x, mean_y = without(weight * x) / total, without(weight * y) / total
    square = without(weight * x * x) / total - mean_x**2
    product = without(weight * x * y) / total - mean_x * mean_y
    slope = np.divide(np.maximum(product, 0), square, out=np.zeros(n_groups), where=square > NO_SPREAD)
    residual = y - mean_y[group] - slope[group] * (x - mean_x[group])
    return float(_mean(residual**2, weight))


def _prior(grid: FloatArray) -> FloatArray:
    """Trust before any label: PRIOR to the number of signals used, shared evenly by the candidates that use as many."""
    used = (grid > 0).sum(axis=1)
    alike = np.bincount(used)
    prior: FloatArray = PRIOR**used / alike[used]
    return prior


def _mean(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted mean over the rows."""
    mean: FloatArray = np.average(values, axis=0, weights=weight)
    return mean
