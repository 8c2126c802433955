"""Judge habits: figures by hand, and what is not defined."""

from __future__ import annotations

import numpy as np
import pytest

from isograde.calibration import habit
from isograde.errors import CalibrationError


def test_two_rows_a_gold_level_by_hand():
    # Within each gold level the level rises by 0.4, 0.6, 0.5 and 0.5 from the first row to the second: the slope is their mean.
    gold = np.repeat([0, 1, 2, 3], 2)
    level = gold + np.array([0, 0.4, 0, 0.6, 0, 0.5, 0, 0.5])
    found = habit(level, gold, np.tile([0, 1], 4))
    assert found.slope == pytest.approx(0.5)
    assert found.low < 0.5 < found.high
    assert found.high - found.slope == pytest.approx(found.slope - found.low)


def test_gold_is_taken_as_categories():
    # A judge that bends the scale: longer answers are better ones, and nothing is left of it at equal gold.
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 5, 400)
    level = np.array([0.0, 2.5, 3, 3.2, 4])[gold] + 0.1 * rng.normal(size=400)
    assert habit(level, gold, gold + rng.normal(size=400)).p_value > 0.01


def test_gold_of_many_values_enters_as_levels_and_a_slope():
    rng = np.random.default_rng(1)
    gold, x = rng.uniform(0, 4, 300), rng.normal(size=300)
    found = habit(gold + 0.3 * x + 0.1 * rng.normal(size=300), gold, x)
    assert found.slope == pytest.approx(0.3, abs=0.03)


def test_the_order_and_the_names_of_groups_do_not_matter():
    rng = np.random.default_rng(2)
    gold, x, level, group = rng.integers(0, 5, 50), rng.normal(size=50), rng.normal(size=50), rng.integers(0, 9, 50)
    order = rng.permutation(50)
    first = habit(level, gold, x, groups=group)
    second = habit(level[order], gold[order], x[order], groups=[f"g{100 - each}" for each in group[order]])
    assert [second.slope, second.low, second.p_value] == pytest.approx([first.slope, first.low, first.p_value])


@pytest.mark.parametrize(
    ("level", "gold", "values", "groups", "reason"),
    [
        ([1, 2, 3, 4], [0, 0, 1, 1], [0, 1, 0, 1], ["a"] * 4, "fewer than two groups"),
        ([], [], [], None, "fewer than two groups"),
        ([1, 2, 3], [0, 1, 2], [0, 1, 0], None, "no more rows than gold levels"),
        ([1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 1, 1], [2, 2, 2, 5, 5, 5], None, "the same at every row of equal gold"),
        ([0, 1, 0, 2, 3, 2], [0, 0, 0, 1, 1, 1], [0, 1, 0, 0, 1, 0], None, "is told by gold and this alone"),
    ],
)
def test_what_is_not_defined_says_why(level, gold, values, groups, reason):
    found = habit(level, gold, values, groups=groups)
    assert reason in found.reason
    assert (found.slope, found.low, found.high, found.p_value) == (None, None, None, None)


def test_what_is_refused():
    with pytest.raises(CalibrationError, match="row 1: values is not a finite number"):
        habit([1, 2], [0, 1], [0, float("nan")])
    with pytest.raises(CalibrationError, match="gold has 1 rows"):
        habit([1, 2], [0], [0, 1])
    with pytest.raises(CalibrationError, match="confidence_level must lie between 0 and 1, not 95"):
        habit([1, 2], [0, 1], [0, 1], confidence_level=95)
