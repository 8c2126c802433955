"""Scores of distributions against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss

from isograde.calibration import corp, crps, crps_values, fit_idr, reliability_curve, rps, rps_values, threshold_figures
from isograde.errors import CalibrationError


@pytest.mark.parametrize("seed", range(12))
def test_crps_is_the_integral_of_its_definition(seed):
    rng = np.random.default_rng(seed)
    support = np.unique(rng.uniform(0, 4, 5))
    masses = rng.dirichlet(np.ones(len(support)))
    gold = rng.uniform(-1, 5)

    def integrand(t):
        return (masses[support <= t].sum() - (gold <= t)) ** 2

    integral, _ = quad(integrand, -2, 6, points=[*support, gold], limit=200)
    np.testing.assert_allclose(crps_values([masses], support, [gold]), [integral], atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_crps_is_its_kernel_form(seed):
    # E|X − y| − ½ E|X − X′| (Gneiting & Raftery 2007, eq. 21).
    rng = np.random.default_rng(50 + seed)
    support, gold = np.arange(5.0), rng.uniform(0, 4, 7)
    forecast = rng.dirichlet(np.ones(5), size=7)
    spread = np.einsum("na,nb,ab->n", forecast, forecast, np.abs(support[:, None] - support)) / 2
    np.testing.assert_allclose(
        crps_values(forecast, support, gold), (forecast * np.abs(support - gold[:, None])).sum(axis=1) - spread
    )


def test_rps_by_hand():
    # F = 0.1, 0.3, 0.6, 1; gold 1 → 0, 1, 1: 0.01 + 0.49 + 0.16. gold 3 → 0, 0, 0: 0.01 + 0.09 + 0.36.
    forecast = [[0.1, 0.2, 0.3, 0.4]] * 2
    np.testing.assert_allclose(rps_values(forecast, [1, 3]), [0.66, 0.46])
    # A point forecast's RPS is its absolute error.
    np.testing.assert_allclose(rps_values(np.eye(5), [4, 4, 4, 4, 4]), [4, 3, 2, 1, 0])
    # Gold 1.5 is half at 1 and half at 2: 1{gold ≤ k} is 0, ½, 1.
    np.testing.assert_allclose(rps_values(forecast[:1], [1.5]), [0.01 + 0.04 + 0.16])
    np.testing.assert_allclose(rps(forecast, [1, 3]).value, 0.56)


def test_brier_and_its_decomposition_against_scikit_learn():
    rng = np.random.default_rng(5)
    p = rng.integers(0, 11, 80) / 10
    event = (rng.uniform(size=80) < p**2).astype(float)
    (figures,) = threshold_figures(np.column_stack([1 - p, p]), event)
    recalibrated = IsotonicRegression().fit(p, event).predict(p)
    reliable = brier_score_loss(event, recalibrated)
    base = brier_score_loss(event, np.full(80, event.mean()))
    parts = figures.brier
    np.testing.assert_allclose(parts.score, brier_score_loss(event, p))
    np.testing.assert_allclose(parts.miscalibration, brier_score_loss(event, p) - reliable, atol=1e-12)
    np.testing.assert_allclose(parts.discrimination, base - reliable, atol=1e-12)
    np.testing.assert_allclose(parts.uncertainty, base)
    np.testing.assert_allclose(figures.event_rate.value, event.mean())


def test_corp_of_ordered_forecasts_is_that_of_isotonic_distributional_regression():
    # Forecasts that rise with x: recalibration threshold by threshold is IDR on x (Arnold et al. 2024, section 4).
    rng = np.random.default_rng(8)
    x = rng.integers(1, 10, 60) / 10
    gold = np.clip(np.round(4 * x + rng.normal(size=60)), 0, 4)
    support = np.arange(5.0)
    binomial = np.array([1, 4, 6, 4, 1]) * x[:, None] ** support * (1 - x[:, None]) ** (4 - support)
    idr = fit_idr(x, gold)
    recalibrated = np.diff(idr.predict_cdf(x), axis=1, prepend=0)
    climatology = np.array([(gold == level).mean() for level in idr.support])
    parts = corp(binomial, support, gold)
    score, reliable = crps(binomial, support, gold).value, crps(recalibrated, idr.support, gold).value
    base = crps(np.tile(climatology, (60, 1)), idr.support, gold).value
    np.testing.assert_allclose(
        [parts.score, parts.miscalibration, parts.discrimination, parts.uncertainty],
        [score, score - reliable, base - reliable, base],
        atol=1e-12,
    )


def test_ece_by_hand():
    # Bins [0, 0.1) and [0.9, 1]: gaps 0.05 − 0 and 0.95 − 0.5, each for half of the rows.
    (figures,) = threshold_figures([[0.95, 0.05], [0.95, 0.05], [0.05, 0.95], [0.05, 0.95]], [0, 0, 1, 0])
    np.testing.assert_allclose(figures.ece.value, 0.5 * 0.05 + 0.5 * 0.45)


def test_reliability_curve_by_hand():
    # Events 1, 0 at forecasts 0.2, 0.3 pool to ½; both rows at 0.8 happen.
    curve = reliability_curve([0.8, 0.2, 0.3, 0.8], [1, 1, 0, 1])
    np.testing.assert_allclose(curve.forecast, [0.2, 0.3, 0.8])
    np.testing.assert_allclose(curve.recalibrated, [0.5, 0.5, 1])
    np.testing.assert_array_equal(curve.count, [1, 1, 2])


def test_no_rows_are_no_figures():
    empty = np.empty((0, 3))
    assert rps(empty, []).value is None
    assert crps(empty, [0, 1, 2], []).reason == "no rows"
    assert corp(empty, [0, 1, 2], []).score is None
    assert threshold_figures(empty, [])[0].brier.reason == "no rows"
    assert threshold_figures(empty, [])[0].ece.value is None
    assert len(reliability_curve([], []).forecast) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rps([[0.5, 0.6]], [0]), "row 0: probabilities sum to 1.1"),
        (lambda: rps([0.5, 0.5], [0]), "must have shape"),
        (lambda: rps([[0.5, 0.5]], [2]), "row 0: gold 2 is off the scale 0 … 1"),
        (lambda: crps([[0.5, 0.5]], [1, 0], [0]), "support must ascend"),
        (lambda: corp([[0.5, 0.5]], [1, 0], [0]), "support must ascend"),
        (lambda: corp([[0.5, 0.5]], [0, 1], [2]), "row 0: gold is beyond the support"),
    ],
)
def test_what_is_no_forecast_is_refused(call, message):
    with pytest.raises(CalibrationError, match=message):
        call()
