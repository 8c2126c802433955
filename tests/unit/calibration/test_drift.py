"""Drift: exact p-values against scipy and enumeration, Holm against R, and what counts as a move."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import permutation_test

from isograde.calibration.drift import Drift, DriftTest, data_drift, holm, judge_drift
from isograde.errors import CalibrationError

LEVELS = np.arange(5)


def peaked(levels):
    """Level probabilities (n, 5) with these means."""
    low = np.minimum(np.floor(levels).astype(int), 3)
    table = np.zeros((len(low), 5))
    table[np.arange(len(low)), low] = low + 1 - levels
    table[np.arange(len(low)), low + 1] = levels - low
    return table


def test_holm_is_r_s():
    # R 4.3: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm")
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])
    assert holm([]) == []


def test_p_values_of_few_items_are_exact():
    rng = np.random.default_rng(1)
    before, after = rng.uniform(0, 4, 10), rng.uniform(0, 4, 10)
    gold = rng.integers(0, 5, 10)
    level, error, _ = judge_drift(peaked(before), peaked(after), gold)
    options = {"permutation_type": "samples", "n_resamples": np.inf}
    mean = lambda x, y, axis=-1: np.mean(x - y, axis=axis)
    assert level.p_value == pytest.approx(permutation_test((after, before), mean, **options).pvalue)
    distances = (np.abs(after - gold), np.abs(before - gold))
    assert error.p_value == pytest.approx(permutation_test(distances, mean, **options).pvalue)
    assert level.estimate == pytest.approx(float(np.mean(after - before)))
    assert error.estimate == pytest.approx(float(np.mean(distances[0] - distances[1])))


def test_a_group_flips_as_a_whole():
    # three groups of ten rows, all one level higher: of 2³ sign patterns two reach the sum
    before, after = peaked(np.full(30, 1.0)), peaked(np.full(30, 2.0))
    level, _, distribution = judge_drift(before, after, np.full(30, 2), groups=np.repeat(["a", "b", "c"], 10))
    assert level.p_value == distribution.p_value == pytest.approx(0.25)
    assert (level.n, level.n_groups) == (30, 3)
    assert distribution.estimate == pytest.approx(1.0)  # all probability lies on another level


def test_data_p_values_are_those_of_all_assignments():
    rng = np.random.default_rng(2)
    old, new = rng.uniform(0, 3, 5), rng.uniform(1, 4, 4)
    levels = np.concatenate([old, new])
    table = peaked(levels)
    seen = np.sum((table[:5].mean(axis=0) - table[5:].mean(axis=0)) ** 2)
    reached = outside = 0
    share = np.mean((new < old.min()) | (new > old.max()))
    assignments = list(combinations(range(9), 5))
    for chosen in assignments:
        mask = np.isin(np.arange(9), chosen)
        reached += np.sum((table[mask].mean(axis=0) - table[~mask].mean(axis=0)) ** 2) >= seen - 1e-12
        low, high = levels[mask].min(), levels[mask].max()
        outside += np.mean((levels[~mask] < low) | (levels[~mask] > high)) >= share - 1e-12
    distribution, beyond = data_drift(table[:5], table[5:], n_resamples=20_000, rng=3)
    # standard error of a share of 20,000 draws: at most 0.0036
    assert distribution.p_value == pytest.approx(reached / len(assignments), abs=0.015)
    assert beyond.p_value == pytest.approx(outside / len(assignments), abs=0.015)
    assert beyond.estimate == pytest.approx(share)


def test_groups_of_the_data_move_together():
    old, new = peaked(np.tile([1.0, 2.0, 3.0], 20)), peaked(np.full(60, 3.5))
    alone, _ = data_drift(old, new)
    together, _ = data_drift(old, new, groups=np.repeat(range(6), 10), new_groups=np.repeat(["x", "y"], 30))
    assert alone.p_value < 0.001
    assert together.p_value >= 1 / 28 - 0.02  # two of eight groups can be chosen in 28 ways
    assert together.n_groups == 8


def test_the_same_grades_are_no_move():
    before = peaked(np.linspace(0, 4, 50))
    drift = Drift.of(judge_drift(before, before, np.full(50, 2)))
    assert [test.p_adjusted for test in drift.tests] == [1, 1, 1]
    assert drift.judge_moved is False
    assert drift.data_moved is None


def test_a_change_under_the_tolerance_is_no_alarm():
    before = peaked(np.linspace(0, 3.9, 200))
    after = peaked(np.linspace(0, 3.9, 200) + 0.02)
    tests = judge_drift(before, after, np.full(200, 2))
    assert tests[0].p_value < 0.001
    assert Drift.of(tests, tolerance=0.05).judge_moved is False
    assert Drift.of(tests, tolerance=0.01).judge_moved is True


def test_p_values_are_adjusted_over_all_looks():
    given = [
        DriftTest(name=name, estimate=1.0, low=None, high=None, p_value=0.02, p_adjusted=0.02, n=9, n_groups=9)
        for name in ("judge: level", "judge: MAE", "data: distribution")
    ]
    assert Drift.of(given[:2]).judge_moved is True  # 2 × 0.02
    drift = Drift.of(given)  # 3 × 0.02
    assert (drift.judge_moved, drift.data_moved) == (False, False)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda p: judge_drift(p, p[:2], [1, 2, 3]), "same items"),
        (lambda p: judge_drift(p[:0], p[:0], []), "no gold items"),
        (lambda p: data_drift(p, p[:, :4] / p[:, :4].sum(axis=1, keepdims=True)), "one rubric"),
        (lambda p: data_drift(p, p[:0]), "no new rows"),
        (lambda _: Drift.of([], alpha=0), "alpha"),
    ],
)
def test_what_does_not_fit_is_refused(call, said):
    with pytest.raises(CalibrationError, match=said):
        call(peaked(np.array([1.0, 2.0, 3.0])))
