"""A published figure on stored judge probabilities."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from isograde.calibration import rmse

SHARED = Path(os.environ.get("ISOGRADE_SHARED", Path(__file__).resolve().parents[3] / "shared"))
FILE = SHARED / "data" / "llm_rubric_real.jsonl.gz"


@pytest.mark.skipif(not FILE.is_file(), reason="the shared data folder with llm_rubric_real is not here (set ISOGRADE_SHARED)")
def test_llm_rubric_expected_level():
    # Hashemi et al. (2024), LLM-Rubric, ACL: RMSE 0.919 of the expected level on Q0, real conversations, native 1–4.
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["criterion"] == "Q0"]
    probabilities = np.array([row["judge_levels"] for row in rows])
    expected = probabilities @ np.array([1, 2, 3, 4]) / probabilities.sum(axis=1)
    figure = rmse(expected, [row["gold"] for row in rows])
    assert figure.n == 223
    assert figure.value == pytest.approx(0.919, abs=1e-3)
