import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta

from isograde.calibration import bounded_mean_interval
from isograde.errors import CalibrationError, StatisticsError


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 1), (8, 8), (8, 7), (20, 18), (100, 90), (400, 0), (400, 397)])
def test_of_two_values_it_is_clopper_and_pearsons(n, k):
    low, high = bounded_mean_interval(np.repeat([1.0, 0.0], [k, n - k]), low=0, high=1)
    assert low == pytest.approx(beta.ppf(0.025, k, n - k + 1) if k else 0.0, abs=1e-5)
    assert high == pytest.approx(beta.ppf(0.975, k + 1, n - k) if k < n else 1.0, abs=1e-5)


def test_of_levels_it_is_the_dirichlet_quantile():
    # Learned-Miller & Thomas' own way: draw the weights. 400,000 draws leave an error of about 0.002 on this scale.
    levels = np.repeat([0.0, 2.0, 3.0, 4.0], [1, 2, 3, 24])
    rng = np.random.default_rng(0)
    weights = rng.standard_exponential((400_000, 31))
    weights /= weights.sum(axis=1, keepdims=True)
    means = weights[:, 1:] @ levels
    low, high = bounded_mean_interval(levels, low=0, high=4)
    assert low == pytest.approx(np.quantile(means, 0.025), abs=0.006)
    assert high == pytest.approx(np.quantile(means + 4 * weights[:, 0], 0.975), abs=0.006)


def test_betting_is_what_no_gambler_could_have_made_forty_times_more_on():
    # All labels at the top: 50 gamblers stake 2 %, 4 % … 100 % of what they can on «higher», each win multiplies by 1 + c (1/m − 1).
    stakes = np.arange(1, 51) / 50
    least = brentq(lambda m: np.mean((1 + stakes * (1 / m - 1)) ** 12) - 40, 0.1, 0.99)
    low, high = bounded_mean_interval(np.full(12, 4.0), low=0, high=4, method="betting")
    assert low == pytest.approx(4 * least, abs=1e-5)
    assert high == pytest.approx(4.0)


def test_betting_is_wider_and_holds_the_mean():
    levels = np.repeat([0.0, 1.0, 4.0], [3, 7, 30])
    tight = bounded_mean_interval(levels, low=0, high=4)
    proven = bounded_mean_interval(levels, low=0, high=4, method="betting")
    assert proven[0] < tight[0] < levels.mean() < tight[1] < proven[1]


@pytest.mark.parametrize("method", ["gaffke", "betting"])
def test_mirrored_labels_give_the_mirrored_interval(method):
    levels = np.array([0.0, 0.5, 1.0, 3.0, 4.0, 4.0])
    low, high = bounded_mean_interval(levels, low=0, high=4, method=method)
    assert bounded_mean_interval(4 - levels, low=0, high=4, method=method) == pytest.approx((4 - high, 4 - low), abs=1e-6)


def test_fewer_independent_draws_give_a_wider_interval():
    levels = np.repeat([1.0, 4.0], [4, 36])
    alone = bounded_mean_interval(levels, low=0, high=4)
    grouped = bounded_mean_interval(levels, low=0, high=4, effective_n=10)
    # ten draws of which one is 1 and nine are 4
    ten = bounded_mean_interval(np.repeat([1.0, 4.0], [1, 9]), low=0, high=4)
    assert grouped == pytest.approx(ten, abs=1e-6)
    assert grouped[0] < alone[0]


def test_what_is_refused():
    with pytest.raises(StatisticsError, match="at least one value"):
        bounded_mean_interval([], low=0, high=4)
    with pytest.raises(CalibrationError, match="row 1: 5 is off the scale 0 … 4"):
        bounded_mean_interval([1, 5], low=0, high=4)
