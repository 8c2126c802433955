"""Prediction-powered means beside the method's own code; ppi_reference.py made the numbers."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from isograde.calibration.estimation import estimate_mean
from isograde.calibration.rectified import Design, infer

MEAN, LOW, HIGH = 2.00407867, 1.90908239, 2.09907495


@pytest.fixture
def drawn():
    spec = importlib.util.spec_from_file_location("ppi_reference", Path(__file__).with_name("ppi_reference.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.draw()


def test_with_predictions_as_they_are(drawn):
    gold, predicted = drawn
    n = len(gold)
    design = Design(
        labelled=np.arange(n),
        group=np.arange(len(predicted)),
        weight=np.full(n, 1 / n),
        unsure=np.ones(n),
        scale=(0.0, 4.0),
        step=1.0,
        estimand="population",
    )
    found = infer(
        design,
        gold,
        lambda train: predicted.copy(),
        confidence_level=0.95,
        bounded="gaffke",
        n_splits=10,
        rng=np.random.default_rng(0),
    )
    # Theirs divides the covariance by the variance of all predictions, ours by that of the labelled ones (the regression slope),
    # out of fold: the means are a seventh of a standard error apart. Ours throws one more label in.
    assert found.best.mean == pytest.approx(MEAN, abs=0.01)
    assert found.best.high - found.best.low == pytest.approx(HIGH - LOW, rel=0.02)
    assert found.best.method == "prediction-powered"


def test_calibrated_out_of_fold(drawn):
    gold, predicted = drawn
    labels = np.concatenate([gold, np.full(len(predicted) - len(gold), np.nan)])
    found = estimate_mean(predicted, labels, score_range=(0, 4))
    assert found.mean == pytest.approx(MEAN, abs=0.015)
    assert found.high - found.low == pytest.approx(HIGH - LOW, rel=0.04)
