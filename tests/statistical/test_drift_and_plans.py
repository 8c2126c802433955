"""By simulation: drift checks alarm falsely no more often than they say, and label plans save what an oracle's would.

The full tables: ``python tests/bench/drift_and_plans.py``.
"""

import numpy as np
import pytest

from bench.drift_and_plans import alarms, savings


@pytest.mark.parametrize(("n", "clustered"), [(20, False), (80, True)])
def test_false_alarms_come_no_more_often_than_said(n, clustered):
    rates = alarms("informative", n, shift=0.0, clustered=clustered, repeats=300, rng=np.random.default_rng(1))
    # 300 checks: the standard error at 5 % is 1.26 %, so a true 5 % gives more than 9 % once in a thousand
    assert rates["judge"] <= 0.09
    assert rates["data"] <= 0.09


def test_a_move_is_found():
    rates = alarms("informative", 80, shift=0.5, clustered=False, repeats=60, rng=np.random.default_rng(2))
    assert rates["judge"] >= 0.9


def test_a_plan_saves_most_of_what_an_oracle_s_would():
    found = savings("biased", 40, skewed=True, repeats=15, rng=np.random.default_rng(3))
    assert found.oracle < 0.6  # of the variance of an even draw: here a plan pays
    assert (1 - found.plan) / (1 - found.oracle) >= 0.8
