"""What holds for every calibrator of signals, whatever the labels."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from isograde.calibration import SignalCalibrator

QUARTERS = st.integers(0, 4).map(lambda quarter: quarter / 4)
ROWS = st.lists(st.tuples(QUARTERS, QUARTERS, QUARTERS, st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=25)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.booleans(), st.integers(0, 2))
def test_a_better_signal_never_makes_a_worse_prediction(rows, grouped, risen):
    table = np.array(rows, dtype=float)
    signals, gold, group = table[:, :3], table[:, 3], table[:, 4]
    fitted = SignalCalibrator(n_subsamples=6).fit(signals, gold, groups=group if grouped else None)
    assert min(fitted.weights_.values()) >= 0
    np.testing.assert_allclose(sum(fitted.weights_.values()), 1)
    better = signals.copy()
    better[:, risen] = np.minimum(1, better[:, risen] + 0.3)
    below, above = (np.cumsum(fitted.predict_distribution(each), axis=1) for each in (signals, better))
    # A higher signal never makes a low level more likely.
    assert (above <= below + 1e-9).all()
    assert (fitted.predict(better) >= fitted.predict(signals)).all()
    assert (fitted.predict_mean(better) >= fitted.predict_mean(signals) - 1e-9).all()
    index = fitted.index(better)
    assert index.min() >= 0
    assert index.max() <= 1


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_a_file_predicts_the_same(rows):
    table = np.array(rows, dtype=float)
    fitted = SignalCalibrator(n_subsamples=6).fit(table[:, :3], table[:, 3], groups=table[:, 4])
    back = SignalCalibrator.from_json(fitted.to_json())
    np.testing.assert_array_equal(back.predict_proba(table[:, :3]), fitted.predict_proba(table[:, :3]))
