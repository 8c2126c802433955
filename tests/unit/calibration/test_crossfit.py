"""Out-of-fold predictions and the signal test."""

from __future__ import annotations

import numpy as np
import pytest

from isograde.calibration import Calibrator, cross_fit, signal
from isograde.errors import CalibrationError, StatisticsError

RNG = np.random.default_rng(2)
GOLD = RNG.integers(0, 5, 60).astype(float)
SCORE = np.clip(GOLD / 4 + 0.1 * RNG.normal(size=60), 0, 1)
GROUPS = np.arange(60) // 2


def scored():
    return Calibrator(score_range=(0, 1), n_subsamples=10)


def test_a_row_is_predicted_without_its_group():
    # Change one group's labels: nothing that was predicted for that group may change.
    first = cross_fit(SCORE, GOLD, calibrator=scored(), groups=GROUPS, n_splits=5)
    changed = np.where(GROUPS == 7, 4 - GOLD, GOLD)
    second = cross_fit(SCORE, changed, calibrator=scored(), groups=GROUPS, n_splits=5)
    own = GROUPS == 7
    for name in ("median", "mean", "constant", "proba"):
        np.testing.assert_array_equal(getattr(first, name)[own], getattr(second, name)[own])
    assert (first.mean[~own] != second.mean[~own]).any()


def test_a_fold_is_what_fitting_on_the_others_gives():
    cross = cross_fit(SCORE, GOLD, calibrator=scored(), groups=GROUPS, n_splits=2, rng=np.random.default_rng(1))
    rng = np.random.default_rng(1)
    # The folds are drawn first, then the fits in order.
    rng.permutation(30)
    out = cross.fold == 0
    fitted = scored().fit(SCORE[~out], GOLD[~out], groups=GROUPS[~out], rng=rng)
    np.testing.assert_array_equal(cross.median[out], fitted.predict(SCORE[out]))
    np.testing.assert_array_equal(cross.constant[out], np.sort(GOLD[~out])[14])
    np.testing.assert_allclose(cross.mean[out], fitted.predict_mean(SCORE[out]))
    np.testing.assert_allclose(cross.distribution[out] @ cross.support, cross.mean[out])
    np.testing.assert_allclose(cross.proba[out] @ np.arange(5), cross.mean[out])
    np.testing.assert_allclose(cross.climatology[out] @ cross.support, GOLD[~out].mean())
    np.testing.assert_allclose(cross.raw, SCORE * 4)


def test_supports_of_folds_are_merged():
    gold = GOLD.copy()
    gold[[0, 1]] = 2.5
    cross = cross_fit(SCORE, gold, calibrator=scored(), groups=GROUPS)
    assert 2.5 in cross.support
    np.testing.assert_allclose(cross.distribution.sum(axis=1), 1)
    np.testing.assert_allclose(cross.climatology.sum(axis=1), 1)
    # The group that alone has 2.5 is predicted by calibrators that never saw it.
    assert (cross.distribution[:2, cross.support == 2.5] == 0).all()


def test_probabilities_need_no_calibrator():
    cross = cross_fit(np.eye(5)[GOLD.astype(int)], GOLD)
    assert np.abs(cross.median - GOLD).mean() < 0.1
    assert cross_fit(SCORE, GOLD).raw is None


def test_what_cannot_be_split_is_refused():
    with pytest.raises(StatisticsError, match="1 group"):
        cross_fit(SCORE, GOLD, groups=["a"] * 60)
    with pytest.raises(CalibrationError, match="every sample_weight is zero"):
        cross_fit([0.1, 0.2], [0, 1], sample_weight=[0, 1])


def test_an_informative_judge_has_signal_and_a_constant_one_none():
    informed = signal(cross_fit(SCORE, GOLD, calibrator=scored(), groups=GROUPS), groups=GROUPS)
    assert informed.has_signal
    assert informed.mae.claimed
    assert informed.rps.claimed
    blind = signal(cross_fit(np.full(60, 0.5), GOLD, calibrator=scored(), groups=GROUPS), groups=GROUPS)
    assert not blind.has_signal
    # No constant is nearer than the best one.
    assert blind.mae.hindsight.mean >= 0
    assert blind.rps.hindsight.mean >= 0


def test_rps_sees_what_a_median_that_never_moves_hides():
    # Six in ten are level 4 at any score, but the rest are 0 at low scores and 3 at high ones.
    n = 200
    score = np.linspace(0, 1, n)
    gold = np.where(np.arange(n) % 5 < 2, np.where(score < 0.5, 0.0, 3.0), 4.0)
    found = signal(cross_fit(score, gold, calibrator=scored()))
    assert not found.mae.claimed
    assert found.rps.claimed
    assert found.has_signal


def test_a_judge_that_always_says_the_same_has_no_signal_where_every_group_is_alike():
    # every group holds each level once: all losses differ by rounding alone, and a mean of −1e-17 with no spread is no gain
    gold = np.tile(np.arange(5.0), 20)
    groups = np.repeat(np.arange(20), 5)
    cross = cross_fit(np.ones(100), gold, groups=groups)
    assert not signal(cross, groups=groups).has_signal
