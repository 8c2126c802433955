"""Coverage and width of the intervals, and false alarms of the habits, by simulation; the full table is in tests/bench."""

from __future__ import annotations

import numpy as np
import pytest

from isograde.calibration import Calibrator, habit
from statistical.oracle import oracle_sizes
from statistical.simulated import LEVELS, group_codes, judged, latent, simulate

CELLS = {
    "twenty labels of noisy raters": ("informative", 20, {"noisy": True}),
    "ten groups of four": ("biased", 40, {"clustered": True}),
    "forty labels, 90 % at level 4": ("compressed", 40, {"skewed": True}),
    "a hundred labels": ("informative", 100, {}),
}
N_REPEATS = 60
N_TEST = 300


def measured(judge, n, setting, rng, confidence_level=0.9):
    """Coverage, mean size and randomized coverage of each repeat."""
    rows = []
    for _ in range(N_REPEATS):
        labels, test = simulate(judge, n, rng, **setting), simulate(judge, N_TEST, rng, **setting)
        calibrator = Calibrator(n_subsamples=6).fit(labels.probabilities, labels.gold, groups=labels.groups, rng=rng)
        plain, drawn = (
            calibrator.predict_interval(test.probabilities, confidence_level, randomized=each, rng=rng).levels
            for each in (False, True)
        )
        gold = (np.arange(N_TEST), test.gold.astype(int))
        rows.append((plain[gold].mean(), plain.sum(axis=1).mean(), drawn[gold].mean()))
    return np.array(rows)


@pytest.mark.parametrize("cell", CELLS)
def test_intervals_cover(cell):
    judge, n, setting = CELLS[cell]
    coverage, size, randomized = measured(judge, n, setting, np.random.default_rng([n, len(cell)])).T
    # One in a hundred below the nominal, and two standard errors of a mean over repeats.
    for held in (coverage, randomized):
        assert held.mean() >= 0.89 - 2 * held.std(ddof=1) / np.sqrt(N_REPEATS)
    # Ties are broken so that no more than what was asked is given, but for what few groups cost.
    assert randomized.mean() <= 0.95
    assert size.mean() <= 5
    if n == 100:
        every, average = oracle_sizes(0.9, judge, np.random.default_rng(0), **setting)
        assert average - 0.1 <= size.mean() <= every


def test_habits_alarm_in_one_of_twenty():
    # Nothing but quality moves this judge; length belongs to the group, which is where naive errors go wrong.
    rng = np.random.default_rng(5)
    n, alarms = 60, 0
    groups = group_codes(n, clustered=True)
    for _ in range(400):
        quality = latent(n, groups, rng)
        level = judged(quality, "informative", rng) @ LEVELS + 0.3 * rng.normal(size=15)[groups]
        gold = np.clip(np.round(2 + 1.4 * quality), 0, 4)
        length = rng.normal(size=15)[groups] + 0.3 * rng.normal(size=n)
        alarms += habit(level, gold, length, groups=groups).p_value < 0.05
    # 0.05 and two standard errors of a rate on 400.
    assert alarms / 400 <= 0.072
