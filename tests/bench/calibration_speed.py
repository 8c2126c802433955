"""Fit and predict 1,000,000 pairs: time beside one scikit-learn isotonic fit on the same data, and peak memory by size.

Run from the repository root; about half a minute:

    python tests/bench/calibration_speed.py
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
from sklearn.isotonic import IsotonicRegression

from isograde.calibration import Calibrator


def pairs(n):
    """Scores on 0–4 and five gold levels that follow them."""
    rng = np.random.default_rng(0)
    score = rng.uniform(0, 4, n)
    return score, np.clip(np.round(score + rng.normal(size=n)), 0, 4)


def seconds(call):
    """Best of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def peak(call):
    """Peak memory that a call allocates, in bytes."""
    tracemalloc.start()
    call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def main():
    """Print the ratios."""
    score, gold = pairs(1_000_000)
    baseline = seconds(lambda: IsotonicRegression().fit(score, gold))
    calibrator = Calibrator(score_range=(0, 4))
    fit = seconds(lambda: calibrator.fit(score, gold))
    print(
        f"scikit-learn IsotonicRegression.fit {baseline:.3f} s; Calibrator.fit {fit:.3f} s: {fit / baseline:.1f} × (limit 40 ×)"
    )
    for name in ("predict", "predict_mean", "predict_distribution", "predict_proba"):
        took = seconds(lambda name=name: getattr(calibrator, name)(score))
        print(f"{name}: {len(score) / took / 1e6:.1f} million items a second (limit 1)")
    for n in (100_000, 200_000, 400_000, 800_000):
        x, y = pairs(n)
        most = peak(lambda x=x, y=y: Calibrator(score_range=(0, 4)).fit(x, y))
        print(f"fit {n} pairs: peak {most / 1e6:.0f} MB, {most / n:.0f} bytes a pair")
    for n in (20, 200, 2_000, 10_000):
        x, y = pairs(n)
        print(f"fit {n} pairs: {1000 * seconds(lambda x=x, y=y: Calibrator(score_range=(0, 4)).fit(x, y)):.1f} ms")


if __name__ == "__main__":
    main()
