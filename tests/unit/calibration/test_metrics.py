"""Errors, agreement, counts: hand calculations and undefined figures."""

from __future__ import annotations

import numpy as np
import pytest

from isograde.calibration import (
    bias,
    bootstrap_figure,
    exact_agreement,
    kendall_tau_b,
    level_counts,
    level_probabilities,
    mae,
    rmse,
    spearman,
    within_one,
)
from isograde.errors import CalibrationError

PREDICTED, GOLD = [0.5, 2.0, 4.0, 1.0], [1, 2, 2, 3]


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        # Differences −0.5, 0, 2, −2.
        (mae, 4.5 / 4),
        (rmse, (8.25 / 4) ** 0.5),
        (bias, -0.5 / 4),
        # Nearest levels 0, 2, 4, 1 (0.5 goes down) beside 1, 2, 2, 3.
        (exact_agreement, 1 / 4),
        (within_one, 2 / 4),
    ],
)
def test_by_hand(measure, expected):
    figure = measure(PREDICTED, GOLD)
    assert figure.value == pytest.approx(expected)
    assert (figure.n, figure.reason, figure.interval) == (4, None, None)


@pytest.mark.parametrize("measure", [mae, rmse, bias, exact_agreement, within_one])
def test_no_rows(measure):
    assert measure([], []).value is None
    assert measure([], []).reason == "no rows"


@pytest.mark.parametrize("measure", [spearman, kendall_tau_b])
def test_rank_correlations_that_are_not_defined(measure):
    assert measure([1], [1]).reason == "fewer than two rows"
    assert measure([1, 1], [1, 2]).reason == "all predictions are the same"
    assert measure([1, 2], [1, 1]).reason == "all gold labels are the same"


def test_unequal_lengths_and_missing_values_are_refused():
    with pytest.raises(CalibrationError, match="2 predictions and 1 gold labels"):
        mae([1, 2], [1])
    with pytest.raises(CalibrationError, match="row 1: predicted is not a finite number"):
        mae([1, None], [1, 1])


def test_level_counts():
    assert level_counts([0, 0.5, 0.6, 4], 5) == (2, 1, 0, 0, 1)
    with pytest.raises(CalibrationError, match="row 1: the value is off the scale"):
        level_counts([0, 5], 5)


def test_level_probabilities_split_fractions():
    # A quarter of 1.25's mass goes to 2.
    np.testing.assert_allclose(level_probabilities(np.array([[0.6, 0.4]]), np.array([0.0, 1.25]), 3), [[0.6, 0.3, 0.1]])


def test_bootstrap_figure_resamples_whole_groups():
    # Within a group all errors are equal, so an interval by group is wider than one by row.
    error = np.repeat(np.arange(10) % 2, 20)
    by_row = bootstrap_figure(mae, error, np.zeros(200), n_resamples=400).interval
    by_group = bootstrap_figure(mae, error, np.zeros(200), groups=np.repeat(np.arange(10), 20), n_resamples=400).interval
    assert by_group.n_groups == 10
    assert by_group.high - by_group.low > 2 * (by_row.high - by_row.low)
