"""Isotonic fits against scikit-learn and hand calculations."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from isograde.calibration import Calibrator, IsotonicCalibrator, fit_idr


def test_the_worked_example():
    # Ties at x = 1 average to ½ with weight 2; then ½, ½ (x = 1) and 0 (x = 2) violate and pool to (0 + 1 + 0) ÷ 3.
    x, y = [0, 1, 1, 2, 3], [0, 0, 1, 0, 1]
    np.testing.assert_allclose(IsotonicCalibrator().fit(x, y).predict(x), [0, 1 / 3, 1 / 3, 1 / 3, 1], atol=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_isotonic_mean_equals_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    x = rng.integers(0, 12, n) / 3 if seed % 2 else rng.uniform(0, 4, n)
    y, w = rng.integers(0, 5, n).astype(float), rng.integers(0, 4, n).astype(float)
    w[0] = 1
    new = np.linspace(-1, 5, 200)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(x[w > 0], y[w > 0], sample_weight=w[w > 0])
    ours = IsotonicCalibrator().fit(x, y, sample_weight=w)
    np.testing.assert_allclose(ours.predict(new), theirs.predict(new), atol=1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_idr_is_one_scikit_learn_fit_a_threshold(seed):
    rng = np.random.default_rng(100 + seed)
    x, y = rng.integers(0, 8, 40) / 2, rng.integers(0, 5, 40).astype(float)
    fit = fit_idr(x, y)
    for column, threshold in enumerate(fit.support):
        theirs = IsotonicRegression(increasing=False).fit(x, (y <= threshold).astype(float))
        np.testing.assert_allclose(fit.cdf[:, column], theirs.predict(fit.scores), atol=1e-12)


def test_idr_by_hand():
    # x = 1, 2, 3, 4 with y = 0, 2, 1, 2. P(y ≤ 0): 1, 0, 0, 0 falls already.
    # P(y ≤ 1): 1, 0, 1, 0 pools the middle to ½: 1, ½, ½, 0.
    fit = fit_idr([3, 1, 2, 4], [1, 0, 2, 2])
    np.testing.assert_array_equal(fit.support, [0, 1, 2])
    np.testing.assert_array_equal(fit.scores, [1, 2, 3, 4])
    np.testing.assert_allclose(fit.cdf, [[1, 1, 1], [0, 0.5, 1], [0, 0.5, 1], [0, 0, 1]])
    # Halfway from 1 to 2: P(y ≤ 0) = ½, P(y ≤ 1) = ¾. Beyond the ends: as at the ends.
    np.testing.assert_allclose(fit.predict_cdf([1.5, 0, 9]), [[0.5, 0.75, 1], [1, 1, 1], [0, 0, 1]])


def test_idr_weights_by_hand():
    # As above with weight 3 on y = 1: the middle pools to (0 × 1 + 1 × 3) ÷ 4.
    fit = fit_idr([3, 1, 2, 4], [1, 0, 2, 2], sample_weight=[3, 1, 1, 1])
    np.testing.assert_allclose(fit.cdf[:, 1], [1, 0.75, 0.75, 0])


def test_a_pool_of_one_label_by_hand():
    # One label, gold 1, at expected level 3: nothing can be held out, so the weights are the grid's mean, ⅓ each.
    # Isotonic and climatology: all on 1. Raw at expected level 3: all on 3; at 3.5: half on 3, half on 4.
    calibrator = Calibrator(score_range=(0, 4)).fit([3.0], [1.0])
    np.testing.assert_allclose(calibrator.predict_proba([3.0, 3.5]), [[0, 2 / 3, 0, 1 / 3, 0], [0, 2 / 3, 0, 1 / 6, 1 / 6]])
    np.testing.assert_allclose(calibrator.predict([3.0, 3.5]), [1, 1])
    np.testing.assert_allclose(calibrator.predict_mean([3.0]), [5 / 3])
