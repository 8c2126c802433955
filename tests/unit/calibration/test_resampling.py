"""Folds, limits, intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from isograde.calibration import bootstrap, bootstrap_mean, grouped_folds, mean_limit
from isograde.errors import CalibrationError, StatisticsError


def test_folds_keep_groups_together_and_are_balanced():
    groups = np.repeat(np.arange(40), np.random.default_rng(0).integers(1, 6, 40))
    fold = grouped_folds(groups, n_splits=5, rng=1)
    assert all(len(set(fold[groups == group])) == 1 for group in range(40))
    sizes = np.bincount(fold)
    assert len(sizes) == 5
    assert sizes.max() - sizes.min() <= 5


def test_folds_depend_on_the_stream_only():
    assert (grouped_folds(range(20)) == grouped_folds(range(20))).all()
    assert (grouped_folds(range(20), rng=1) != grouped_folds(range(20), rng=2)).any()


def test_fewer_groups_than_folds():
    assert sorted(grouped_folds(["a", "b", "c"], n_splits=10)) == [0, 1, 2]
    with pytest.raises(StatisticsError, match="nothing can be held out of 1 group"):
        grouped_folds(["a", "a"])
    with pytest.raises(StatisticsError, match="in 1 fold"):
        grouped_folds(["a", "b"], n_splits=1)


def test_mean_limit_of_single_rows_is_the_t_interval():
    values = np.random.default_rng(3).normal(size=30)
    limit = mean_limit(values)
    expected = stats.ttest_1samp(values, 0, alternative="less").confidence_interval(0.95).high
    assert limit.upper == pytest.approx(expected)


def test_mean_limit_of_equal_groups_is_the_t_interval_of_their_means():
    values = np.random.default_rng(4).normal(size=60)
    limit = mean_limit(values, groups=np.repeat(np.arange(12), 5))
    means = values.reshape(12, 5).mean(axis=1)
    assert limit.upper == pytest.approx(stats.ttest_1samp(means, 0, alternative="less").confidence_interval(0.95).high)
    assert (limit.n, limit.n_groups) == (60, 12)


def test_mean_limit_where_it_is_not_defined():
    assert mean_limit([]).reason == "no rows"
    one = mean_limit([1.0, 2.0], groups=["a", "a"])
    assert (one.mean, one.upper) == (1.5, None)
    assert "one group" in one.reason


def test_bootstrap_of_a_mean_agrees_with_scipy():
    values = np.random.default_rng(5).exponential(size=80)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=8000, method="percentile", rng=0).confidence_interval
    for ours in (
        bootstrap_mean(values, n_resamples=8000, rng=1),
        bootstrap(lambda rows: float(values[rows].mean()), range(80), n_resamples=8000, rng=2),
    ):
        assert ours.low == pytest.approx(theirs.low, abs=0.015)
        assert ours.high == pytest.approx(theirs.high, abs=0.015)


def test_bca_agrees_with_scipy():
    values = np.random.default_rng(6).exponential(size=40)
    theirs = stats.bootstrap((values,), np.std, n_resamples=8000, method="BCa", rng=0).confidence_interval
    ours = bootstrap(lambda rows: float(values[rows].std()), range(40), n_resamples=8000, method="BCa", rng=1)
    assert ours.low == pytest.approx(theirs.low, abs=0.03)
    assert ours.high == pytest.approx(theirs.high, abs=0.03)


def test_intervals_that_are_not_defined():
    assert bootstrap_mean([1.0, 2.0], groups=["a", "a"]).reason == "fewer than two groups"
    assert bootstrap(lambda rows: 1.0, ["a", "a"]).low is None
    undefined = bootstrap(lambda rows: None if (rows == 0).any() else 1.0, range(5), n_resamples=100)
    assert "of 100 resamples" in undefined.reason
    # One resample that holds both groups, and a figure that needs the first.
    needed = bootstrap(lambda rows: 1.0 if 0 in rows else None, ["a", "b"], n_resamples=1, method="BCa", rng=1)
    assert needed.reason == "undefined without one of the groups"


def test_lengths_that_differ_are_refused():
    with pytest.raises(CalibrationError, match="groups has 1 rows"):
        mean_limit([1.0, 2.0], groups=["a"])
