"""Claims that only simulation can check; every stream is fixed."""

from __future__ import annotations

import numpy as np
import pytest

from isograde.calibration import Calibrator, bootstrap_mean, cross_fit, signal

N_SIMULATIONS = 120
# Five per cent and two standard errors of a rate on 120 simulations: 0.05 + 2 √(0.05 × 0.95 ÷ 120).
MOST_FALSE_CLAIMS = 0.09


def claims(draw, seed):
    """Share of simulations with a claim: of any signal, and by the first limit alone."""
    rng = np.random.default_rng(seed)
    found, first_alone = 0, 0
    for _ in range(N_SIMULATIONS):
        score, gold, groups = draw(rng)
        calibrator = Calibrator(score_range=(0, 4), n_subsamples=6)
        result = signal(cross_fit(score, gold, calibrator=calibrator, groups=groups, n_splits=5, rng=rng), groups=groups)
        found += result.has_signal
        first_alone += result.mae.out_of_fold.upper < 0
    return found / N_SIMULATIONS, first_alone / N_SIMULATIONS


def random_labels(rng):
    return rng.uniform(0, 4, 40), rng.integers(0, 5, 40), None


def always_the_middle(rng):
    return np.full(20, 2.0), rng.integers(0, 5, 20), None


def two_extremes(rng):
    return rng.uniform(1.5, 2.5, 30), 4 * rng.integers(0, 2, 30), None


def few_groups_with_effects(rng):
    groups = np.arange(48) % 6
    gold = np.clip(rng.integers(0, 5, 48) + np.round(rng.normal(size=6))[groups], 0, 4)
    return np.clip(2 + rng.normal(size=6)[groups] + rng.normal(size=48), 0, 4), gold, groups


@pytest.mark.parametrize("draw", [random_labels, always_the_middle, two_extremes, few_groups_with_effects])
def test_no_gain_is_claimed_on_random_labels(draw):
    found, _ = claims(draw, 1)
    assert found <= MOST_FALSE_CLAIMS


def test_the_limit_beside_the_best_constant_is_needed():
    # What held-out labels do to the training median would pass for a gain.
    _, first_alone = claims(always_the_middle, 1)
    assert first_alone > MOST_FALSE_CLAIMS


def test_a_fair_judge_is_found():
    def fair(rng):
        gold = rng.integers(0, 5, 60)
        return np.clip(gold + rng.normal(size=60), 0, 4), gold, None

    found, _ = claims(fair, 2)
    assert found > 0.95


def mae_ratio(bend, noise, n_labels, seed):
    """Mean over draws of MAE ÷ min(MAE of the raw judge, MAE of the constant), on 300 fresh rows."""
    rng = np.random.default_rng(seed)
    ratios = []
    for _ in range(40):
        gold = rng.integers(0, 5, n_labels + 300).astype(float)
        score = np.clip(bend(np.clip(gold + noise * rng.normal(size=len(gold)), 0, 4)), 0, 4)
        calibrator = Calibrator(score_range=(0, 4)).fit(score[:n_labels], gold[:n_labels], rng=rng)
        test = gold[n_labels:]
        raw, constant = np.abs(score[n_labels:] - test).mean(), np.abs(np.median(gold[:n_labels]) - test).mean()
        ratios.append(np.abs(calibrator.predict(score[n_labels:]) - test).mean() / min(raw, constant))
    return float(np.mean(ratios))


def test_a_worthless_judge_costs_little():
    assert mae_ratio(lambda level: level, 99, 50, 3) < 1.03


def test_a_good_judge_is_kept_with_20_labels():
    assert mae_ratio(lambda level: level, 0.5, 20, 4) < 1.03


def test_a_bent_judge_is_mended():
    assert mae_ratio(lambda level: 2.2 + 0.2 * (level - 2), 0.5, 50, 5) < 0.6


def test_bootstrap_by_group_covers():
    # 40 groups of 3 with effects: 95 % intervals cover the true mean 0; two standard errors of a rate on 300 is 0.025.
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(300):
        groups = np.repeat(np.arange(40), 3)
        values = rng.normal(size=40)[groups] + 0.5 * rng.normal(size=120)
        interval = bootstrap_mean(values, groups=groups, n_resamples=400, rng=rng)
        covered += interval.low <= 0 <= interval.high
    assert 0.915 <= covered / 300 <= 0.98
