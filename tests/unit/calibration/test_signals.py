"""The calibrator of several signals."""

from __future__ import annotations

import json
from math import comb

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict

from isograde.calibration import Calibrator, JudgeFingerprint, SignalCalibrator
from isograde.calibration.index import fit_shares, held_out_error, simplex_grid
from isograde.errors import CalibrationError, StatisticsError


def labelled(n=120, seed=0, **noise):
    """Signals that follow gold, each with noise of its own."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 5, n)
    return {name: np.clip(gold / 4 + rng.normal(0, spread, n), 0, 1) for name, spread in noise.items()}, gold


@pytest.mark.parametrize(("n_signals", "steps"), [(1, 10), (2, 10), (3, 10), (4, 7), (5, 5), (8, 3), (40, 1)])
def test_the_grid_is_the_simplex(n_signals, steps):
    grid = simplex_grid(n_signals)
    # Stars and bars: steps units among the signals.
    assert grid.shape == (comb(steps + n_signals - 1, steps), n_signals)
    np.testing.assert_allclose(grid.sum(axis=1), 1)
    assert len(np.unique(grid, axis=0)) == len(grid)
    assert {tuple(row) for row in np.eye(n_signals)} <= {tuple(row) for row in grid}


@pytest.mark.parametrize("sign", [1, -1])
def test_the_held_out_error_is_that_of_scikit_learn(sign):
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(8), [1, 2, 3, 4, 5, 5, 5, 5])
    index = rng.random(30)
    gold = 2 + sign * index + rng.normal(0, 0.1, 30)
    own = held_out_error(index, gold, np.ones(30), group, 8)
    # A line that would fall is level: the mean of the others.
    x = index[:, np.newaxis] if sign > 0 else np.zeros((30, 1))
    others = cross_val_predict(LinearRegression(), x, gold, groups=group, cv=LeaveOneGroupOut())
    assert own == pytest.approx(((others - gold) ** 2).mean())


def test_with_many_labels_the_weights_are_those_of_least_squares():
    signals, gold = labelled(4000, a=0.2, b=0.3, c=0.5)
    table = np.column_stack(list(signals.values()))
    weights, _ = fit_shares(table, gold.astype(float), np.ones(4000), np.arange(4000), 4000)
    # The level that a line starts from is one column up and one down, since nnls has no intercept.
    free, _ = nnls(np.column_stack([table, np.ones(4000), -np.ones(4000)]), gold / 4)
    # The grid is in tenths of the movement; the soft minimum lies between its points.
    np.testing.assert_allclose(weights, free[:3] / free[:3].sum(), atol=0.05)


def test_the_index_by_hand():
    # Alike but for their spread: signal b is half of a. Unit spread makes them the same, so each moves the index by half: weights
    # 1 : 2 in their own units.
    gold = np.tile(np.arange(5), 8)
    calibrator = SignalCalibrator().fit({"a": gold / 4, "b": gold / 8}, gold)
    assert calibrator.weights_ == pytest.approx({"a": 1 / 3, "b": 2 / 3})
    assert calibrator.shares_ == pytest.approx({"a": 0.5, "b": 0.5})
    np.testing.assert_allclose(calibrator.index({"a": [0.0, 1.0, 0.6], "b": [0.0, 1.0, 0.3]}), [0, 1, 0.4])


def test_it_is_the_calibrator_on_the_index():
    signals, gold = labelled(a=0.2, b=0.3)
    groups = np.arange(120) // 4
    both = SignalCalibrator().fit(signals, gold, groups=groups)
    index = both.index(signals)
    alone = Calibrator(n_levels=5, score_range=(0, 1)).fit(index, gold, groups=groups)
    for name in ("predict", "predict_mean", "predict_distribution", "predict_proba"):
        np.testing.assert_array_equal(getattr(both, name)(signals), getattr(alone, name)(index))
    np.testing.assert_array_equal(both.predict_at_least(signals, 3), alone.predict_at_least(index, 3))
    assert both.provenance_ == alone.provenance_
    np.testing.assert_array_equal(both.support_, alone.support_)


def test_signals_that_say_nothing():
    signals, gold = labelled(200, good=0.2)
    rng = np.random.default_rng(5)
    fitted = SignalCalibrator().fit({**signals, "noise": rng.random(200), "still": np.full(200, 0.7)}, gold)
    assert fitted.shares_["noise"] < 0.05
    assert fitted.weights_["still"] == 0
    assert "still" not in fitted.names
    # What has no weight is not needed, and what is not known is ignored.
    needed = {name: [0.5] for name in fitted.names}
    np.testing.assert_array_equal(fitted.predict(needed), fitted.predict({**needed, "still": [0.1], "other": [9.0]}))
    still = SignalCalibrator().fit({"a": [0.5] * 4, "b": [0.2] * 4}, [0, 1, 2, 3])
    assert still.weights_ == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_few_labels(n):
    gold = np.arange(n) % 5
    fitted = SignalCalibrator().fit(np.column_stack([gold / 4, np.full(n, 0.5), np.linspace(0, 1, n)]), gold)
    assert sum(fitted.weights_.values()) == pytest.approx(1)
    assert np.isfinite(fitted.predict_proba([[0.0, 0.5, 1.0], [1.0, 1.0, 1.0]])).all()


def test_one_group_has_nothing_held_out():
    # So both signals move the index alike, whatever they say.
    fitted = SignalCalibrator().fit({"a": [0.0, 0.5, 1.0], "b": [1.0, 0.0, 0.5]}, [0, 2, 4], groups=["q"] * 3)
    assert fitted.shares_ == pytest.approx({"a": 0.5, "b": 0.5})


def test_order_and_weights():
    signals, gold = labelled(60, a=0.2, b=0.4)
    groups = np.arange(60) // 3
    order = np.random.default_rng(2).permutation(60)
    one = SignalCalibrator().fit(signals, gold, groups=groups)
    other = SignalCalibrator().fit({name: column[order] for name, column in signals.items()}, gold[order], groups=groups[order])
    assert other.weights_ == pytest.approx(one.weights_, abs=1e-12)
    times = np.arange(60) % 3
    weighted = SignalCalibrator().fit(signals, gold, groups=groups, sample_weight=times)
    repeated = SignalCalibrator().fit(
        {name: np.repeat(column, times) for name, column in signals.items()},
        np.repeat(gold, times),
        groups=np.repeat(groups, times),
    )
    assert weighted.weights_ == pytest.approx(repeated.weights_)
    np.testing.assert_allclose(weighted.predict_proba(signals), repeated.predict_proba(signals), atol=1e-9)


def test_a_file_predicts_what_its_calibrator_does():
    signals, gold = labelled(a=0.2, b=0.4)
    judge = JudgeFingerprint(model="m", rubric="r")
    fitted = SignalCalibrator(judge=judge, settings={"beta": "1"}, label_source="two raters").fit(signals, gold)
    back = SignalCalibrator.from_json(fitted.to_json())
    np.testing.assert_array_equal(back.predict_distribution(signals), fitted.predict_distribution(signals))
    assert (back.weights_, back.shares_) == (fitted.weights_, fitted.shares_)
    assert back.provenance_ == fitted.provenance_
    assert back.to_json() == fitted.to_json()
    back.check_judge(judge)
    back.check_settings({"beta": "1"})
    with pytest.raises(CalibrationError, match="model: 'm' and 'n'"):
        back.check_judge(JudgeFingerprint(model="n", rubric="r"))
    with pytest.raises(CalibrationError, match="beta: '1' and '2'; embeddings: None and 'e'"):
        back.check_settings({"beta": "2", "embeddings": "e"})


def test_files_that_are_none():
    signals, gold = labelled(20, a=0.2, b=0.4)
    text = SignalCalibrator().fit(signals, gold).to_json()
    with pytest.raises(CalibrationError, match="several signals, which a judge's grade alone does not have"):
        Calibrator.from_json(text)
    for change, said in [
        ({"weights": {"a": 0.5, "c": 0.5}}, "same signals"),
        ({"weights": {"a": 0.5, "b": 0.6}}, "sum to 1"),
        ({"weights": {"a": -0.5, "b": 1.5}}, "weights.a"),
        ({"extra": 1}, "extra"),
        ({"format": 2}, "format"),
    ]:
        with pytest.raises(CalibrationError, match=said):
            SignalCalibrator.from_json(json.dumps(json.loads(text) | change))
    with pytest.raises(CalibrationError, match="no isograde calibrator of signals"):
        SignalCalibrator.from_json(Calibrator(score_range=(0, 1)).fit([0.0, 1.0], [0, 4]).to_json())
    with pytest.raises(CalibrationError, match="no isograde calibrator of signals: file"):
        SignalCalibrator.from_json("{")


@pytest.mark.parametrize(
    ("signals", "gold", "said"),
    [
        ({}, [], "there is no signal"),
        ({"a": []}, [], "no labelled rows"),
        ({"a": [0.1, 1.2]}, [0, 1], "row 1: signal a is 1.2; signals lie in 0 … 1"),
        ({"a": [0.1, float("nan")]}, [0, 1], "row 1: signal a is not a finite number"),
        ({"a": [0.1, None]}, [0, 1], "row 1: signal a is not a finite number"),
        ({"a": [0.1, 0.2], "b": [0.1]}, [0, 1], r"signal b has shape \(1,\) and a has \(2,\)"),
        ({"a": [0.1, 0.2]}, [0], "gold has 1 rows"),
        ({"a": [0.1]}, [5], "row 0: gold 5 is off the scale"),
        ([0.1, 0.2], [0, 1], "name them in a mapping"),
        ({"a": ["x"]}, [0], "signal a must be numbers"),
    ],
)
def test_what_does_not_fit(signals, gold, said):
    with pytest.raises(CalibrationError, match=said):
        SignalCalibrator().fit(signals, gold)


def test_predictions_that_cannot_be():
    signals, gold = labelled(40, a=0.2, b=0.3)
    with pytest.raises(StatisticsError, match="not fitted"):
        SignalCalibrator().predict(signals)
    fitted = SignalCalibrator().fit(signals, gold)
    with pytest.raises(CalibrationError, match="needs the signals a, b, and b is missing"):
        fitted.predict({"a": [0.5]})
    with pytest.raises(CalibrationError, match=r"takes 2 signals \(a, b\), not 3"):
        fitted.predict([[0.1, 0.2, 0.3]])
    assert fitted.unfitted().n_levels == fitted.n_levels
