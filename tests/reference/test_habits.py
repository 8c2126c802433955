"""Cluster-robust regression against R's clubSandwich; cluster_robust.R beside this file made the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from isograde.calibration import habit

ROW = np.arange(60)
GOLD = (ROW * 7) % 5
X = ((ROW * 13) % 17) / 4
UNEQUAL = np.floor(np.sqrt(ROW))  # groups of 1, 3, 5, … rows
LEVEL = 0.7 * GOLD + 0.1 * X + ((ROW * ROW * 31) % 23) / 10 - 1 + ((UNEQUAL * UNEQUAL) % 7) / 5


@pytest.mark.parametrize(
    ("values", "groups", "expected", "freedom"),
    [
        (X, UNEQUAL, [0.1301886792, -0.0502274161, 0.3106047746, 0.1240044288], 5.21487448),
        (X, None, [0.1301886792, -0.0128539995, 0.2732313580, 0.0729652971], 31.39888100),
        (UNEQUAL % 2, UNEQUAL, [0.0352528090, -0.7232148927, 0.7937205107, 0.9057520038], 4.30403037),
    ],
    ids=["by group", "by row", "the same throughout a group"],
)
def test_club_sandwich(values, groups, expected, freedom):
    found = habit(LEVEL, GOLD, values, groups=groups)
    assert [found.slope, found.low, found.high, found.p_value] == pytest.approx(expected, abs=1e-9)
    assert found.degrees_of_freedom == pytest.approx(freedom, abs=1e-7)
    assert (found.n, found.n_groups) == (60, 60 if groups is None else 8)
