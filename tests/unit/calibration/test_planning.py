"""Label plans: hand-computed allocations, known inclusion probabilities, and widths from Student's t."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from isograde.calibration.planning import allocate, draw, half_widths
from isograde.errors import CalibrationError


def test_labels_go_where_size_times_spread_is():
    # levels 0 and 4; strata of equal summed spread: 30 × 1.0 and 100 × 0.3 are 30 each, so 12 labels are 6 and 6
    plan = allocate([0.0] * 30 + [4.0] * 100, [1.0] * 30 + [0.3] * 100, 12, n_strata=2)
    assert plan.n_items == (30, 100)
    assert plan.n_drawn == (6, 6)
    assert plan.inclusion[0] == pytest.approx(6 / 30)
    assert plan.inclusion[-1] == pytest.approx(6 / 100)


def test_a_calibrator_that_is_too_sure_still_has_its_sure_items_drawn():
    plan = allocate([0.0] * 50 + [4.0] * 50, [1.0] * 50 + [0.0] * 50, 20, n_strata=2)
    assert min(plan.inclusion) > 0.05  # spreads of 0 count as a fifth of the largest


def test_equal_spreads_are_drawn_evenly():
    assert set(allocate(range(100), np.ones(100), 20).inclusion) == {0.2}
    assert set(allocate(range(100), np.zeros(100), 20).inclusion) == {0.2}


@given(st.lists(st.tuples(st.floats(0, 4), st.floats(0, 2)), min_size=1, max_size=40), st.integers(1, 60), st.integers(1, 8))
def test_every_design_is_one(items, n, n_strata):
    level, spread = (np.array(column) for column in zip(*items, strict=True))
    plan = allocate(level, spread, n, n_strata=n_strata)
    assert sum(plan.n_drawn) == min(n, len(items))
    assert all(0 < drawn <= size for drawn, size in zip(plan.n_drawn, plan.n_items, strict=True))
    assert plan.inclusion.sum() == pytest.approx(min(n, len(items)))
    chosen = draw(plan, rng=0)
    assert len(set(chosen.tolist())) == min(n, len(items))


def test_weighted_by_inclusion_the_mean_is_unbiased():
    rng = np.random.default_rng(4)
    level = rng.uniform(0, 4, 200)
    gold = level + rng.normal(0, 1, 200) * (level < 2)
    plan = allocate(level, np.where(level < 2, 1.0, 0.3), 20)
    means = []
    for _ in range(4000):
        chosen = draw(plan, rng=rng)
        means.append((gold[chosen] / plan.inclusion[chosen]).sum() / 200)
    error = np.std(means) / np.sqrt(len(means))
    assert abs(np.mean(means) - gold.mean()) < 4 * error


def test_widths_are_student_s():
    assert half_widths(0.8, [20]) == pytest.approx([stats.t.ppf(0.975, 19) * 0.8 / np.sqrt(20)])
    # of 100 items: √(1/20 − 1/100)
    assert half_widths(0.8, [20], n_items=100) == pytest.approx([stats.t.ppf(0.975, 19) * 0.8 * 0.2])
    assert half_widths(0.8, [1, 100], n_items=100) == [None, 0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(([], [], 5), "at least one"), (([1.0], [1.0], 0), "at least one"), (([1.0, 2.0], [1.0, -1.0], 1), "row 1")],
)
def test_what_is_no_design_is_refused(arguments, said):
    with pytest.raises(CalibrationError, match=said):
        allocate(*arguments)
