"""What holds for every calibrator, whatever the labels."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from isograde.calibration import Calibrator, IsotonicCalibrator, corp, crps, rps

# Quarters are exact in binary, so sums do not depend on their order.
QUARTERS = st.integers(0, 16).map(lambda quarter: quarter / 4)
ROWS = st.lists(st.tuples(QUARTERS, QUARTERS, st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=25).filter(
    lambda rows: any(weight for _, _, weight, _ in rows)
)
COUNTS = st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any)
GRID = np.linspace(-1, 5, 61)


def columns(rows):
    score, gold, weight, group = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return score, gold, weight, group


def pooled():
    return Calibrator(n_levels=5, score_range=(0, 4), n_subsamples=6)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.booleans())
def test_weights_are_repeats(rows, grouped):
    score, gold, weight, group = columns(rows)
    times = weight.astype(int)
    pool = pooled().fit(score, gold, groups=group if grouped else None, sample_weight=weight)
    repeated = pooled().fit(np.repeat(score, times), np.repeat(gold, times), groups=np.repeat(group, times) if grouped else None)
    np.testing.assert_allclose(pool.predict_distribution(GRID), repeated.predict_distribution(GRID), atol=1e-9)
    plain = IsotonicCalibrator().fit(score, gold, sample_weight=weight).predict(GRID)
    np.testing.assert_allclose(
        plain, IsotonicCalibrator().fit(np.repeat(score, times), np.repeat(gold, times)).predict(GRID), atol=1e-12
    )


@settings(max_examples=60, deadline=None)
@given(ROWS, st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_the_rows_does_not_matter(rows, random, grouped):
    score, gold, weight, group = columns(rows)
    order = np.array(random.sample(range(len(rows)), len(rows)))
    first = pooled().fit(score, gold, groups=group if grouped else None, sample_weight=weight)
    second = pooled().fit(score[order], gold[order], groups=group[order] if grouped else None, sample_weight=weight[order])
    np.testing.assert_allclose(first.predict_distribution(GRID), second.predict_distribution(GRID), atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(ROWS)
def test_predictions_rise_with_the_score_and_stay_on_the_scale(rows):
    score, gold, weight, group = columns(rows)
    for calibrator in (pooled(), IsotonicCalibrator(n_levels=5)):
        calibrator.fit(score, gold, groups=group, sample_weight=weight)
        for predicted in (calibrator.predict(GRID), calibrator.predict_mean(GRID)):
            assert (np.diff(predicted) >= -1e-12).all()
            assert predicted.min() >= 0
            assert predicted.max() <= 4
    pool = pooled().fit(score, gold, groups=group, sample_weight=weight)
    # A higher score never makes a low level more likely.
    assert (np.diff(np.cumsum(pool.predict_distribution(GRID), axis=1), axis=0) <= 1e-9).all()


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_a_file_predicts_what_its_calibrator_does(rows):
    score, gold, weight, group = columns(rows)
    pool = pooled().fit(score, gold, groups=group, sample_weight=weight)
    np.testing.assert_array_equal(Calibrator.from_json(pool.to_json()).predict_proba(GRID), pool.predict_proba(GRID))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any)), min_size=1, max_size=20
    )
)
def test_corp_parts_sum_to_the_score_and_none_is_negative(rows):
    gold = np.array([level for level, _ in rows], dtype=float)
    forecast = np.array([counts for _, counts in rows], dtype=float)
    forecast /= forecast.sum(axis=1, keepdims=True)
    parts = corp(forecast, np.arange(5), gold)
    np.testing.assert_allclose(parts.score, parts.miscalibration - parts.discrimination + parts.uncertainty, atol=1e-9)
    np.testing.assert_allclose(parts.score, rps(forecast, gold).value, atol=1e-9)
    np.testing.assert_allclose(parts.score, crps(forecast, np.arange(5), gold).value, atol=1e-9)
    assert min(parts.miscalibration, parts.discrimination, parts.uncertainty) >= 0
