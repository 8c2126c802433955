"""What an index of signals gains and risks, on fresh rows; every stream is fixed."""

from __future__ import annotations

import numpy as np
import pytest

from isograde.calibration import Calibrator, SignalCalibrator, rps_values

N_FRESH = 1500
N_DRAWS = 30


def graded(rng, n):
    """Gold levels 0–4, more of the high ones."""
    return rng.choice(5, n, p=[0.1, 0.15, 0.2, 0.25, 0.3])


def seen(rng, gold, noise):
    """A signal that follows gold."""
    return np.clip(0.1 + 0.2 * gold + rng.normal(0, noise, len(gold)), 0, 1)


def independent(rng, n):
    gold = graded(rng, n)
    return np.column_stack([seen(rng, gold, 0.3), seen(rng, gold, 0.3)]), gold


def one_of_three(rng, n):
    """Two know nothing, and one of those hardly moves."""
    gold = graded(rng, n)
    return np.column_stack([seen(rng, gold, 0.2), rng.random(n), 0.6 + 0.4 * rng.random(n)]), gold


def one_of_five(rng, n):
    gold = graded(rng, n)
    return np.column_stack([seen(rng, gold, 0.25), *(rng.random(n) for _ in range(4))]), gold


def copies(rng, n):
    """Two repeat the first with a little noise."""
    gold = graded(rng, n)
    first = seen(rng, gold, 0.25)
    return np.column_stack([first, *(np.clip(first + rng.normal(0, 0.02, n), 0, 1) for _ in range(2))]), gold


def bent(rng, n):
    """No signal is linear in gold, and gold is right or wrong."""
    gold = 4 * (rng.random(n) < 0.75)
    logit = 1 / (1 + np.exp(4 - 1.5 * gold - rng.logistic(0, 1.5, n)))
    cubed = np.clip(0.05 + 0.225 * gold + rng.normal(0, 0.5, n), 0, 1) ** 3
    return np.column_stack([logit, cubed, 0.8 + 0.2 * rng.random(n)]), gold


def useless(rng, n):
    return rng.random((n, 3)), graded(rng, n)


def ratio(draw, n):
    """RPS of the index on fresh rows ÷ that of the signal that is best on them; mean weight shares of the signals."""
    rng = np.random.default_rng(1)
    losses, shares = [], []
    for _ in range(N_DRAWS):
        (signals, gold), (fresh, truth) = draw(rng, n), draw(rng, N_FRESH)
        index = SignalCalibrator(n_subsamples=6).fit(signals, gold)
        alone = [Calibrator(score_range=(0, 1), n_subsamples=6).fit(column, gold) for column in signals.T]
        forecasts = [index.predict_proba(fresh), *(c.predict_proba(x) for c, x in zip(alone, fresh.T, strict=True))]
        losses.append([rps_values(forecast, truth).mean() for forecast in forecasts])
        shares.append(list(index.shares_.values()))
    mean = np.mean(losses, axis=0)
    return mean[0] / mean[1:].min(), np.mean(shares, axis=0)


# Half a tenth of the best signal's RPS at 40 labels, and two hundredths at 200: nobody knows beforehand which signal is the best.
@pytest.mark.parametrize(("n", "worst"), [(40, 1.05), (200, 1.02)])
@pytest.mark.parametrize("draw", [independent, one_of_three, one_of_five, copies, bent, useless])
def test_the_index_is_never_clearly_worse_than_the_best_signal(draw, n, worst):
    assert ratio(draw, n)[0] <= worst


@pytest.mark.parametrize(("draw", "n", "most"), [(independent, 40, 0.88), (independent, 200, 0.84), (bent, 200, 0.8)])
def test_the_index_is_better_where_signals_know_different_things(draw, n, most):
    assert ratio(draw, n)[0] <= most


@pytest.mark.parametrize(("draw", "n"), [(one_of_three, 40), (one_of_three, 200), (one_of_five, 200)])
def test_signals_that_know_nothing_get_little_weight(draw, n):
    _, shares = ratio(draw, n)
    assert shares[0] > 0.85
    assert shares[1:].max() < 0.1
