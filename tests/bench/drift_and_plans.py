"""How often drift checks alarm, falsely and rightly, and what label plans save beside an oracle's.

    python tests/bench/drift_and_plans.py --repeats 1000

Power of the judge's check is given beside a paired t-test on the gold items' absolute errors, which is what one would do without
it. A plan's variance is that of the stratified mean of gold minus the calibrated level, over that of an even draw; the oracle
knows each item's own spread of that difference.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_1samp

from isograde.calibration import Calibrator
from isograde.calibration.drift import Drift, data_drift, judge_drift
from isograde.calibration.planning import Allocation, allocate

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from statistical.simulated import JUDGES, LEVELS, gold_levels, group_codes, judged, latent, simulate

NEIGHBOURS = 400
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """Variances as shares of an even draw's."""

    plan: float
    oracle: float


def alarms(
    judge: str, n: int, *, shift: float, clustered: bool, repeats: int, rng: np.random.Generator, skewed: bool = False
) -> dict[str, float]:
    """Share of checks that alarm about judge and data, and of t-tests on the change of the absolute error, all at 5 %.

    Both gradings and both sets are noisy; ``shift`` moves what the second judge sees and the second set's quality, in standard
    deviations of quality.
    """
    found = dict.fromkeys(("judge", "data", "t-test"), 0)
    for _ in range(repeats):
        groups = group_codes(n, clustered=clustered)
        quality = latent(n, groups, rng)
        gold = gold_levels(quality, rng, skewed=skewed)
        shared = rng.normal(size=n)
        before, after = (
            judged(quality + moved, judge, rng, skewed=skewed, noise=np.sqrt(0.8) * shared + np.sqrt(0.2) * rng.normal(size=n))
            for moved in (0.0, shift)
        )
        tests = judge_drift(before, after, gold, groups=groups, n_resamples=499, rng=rng)
        found["judge"] += bool(Drift.of(tests, tolerance=0).judge_moved)
        change = np.abs(after @ LEVELS - gold) - np.abs(before @ LEVELS - gold)
        by_group = np.bincount(groups, change)
        found["t-test"] += bool(np.ptp(by_group) > 0 and ttest_1samp(by_group, 0).pvalue <= 0.05)
        m = 4 * n
        others = group_codes(m, clustered=clustered)
        fresh = judged(latent(m, others, rng) + shift, judge, rng, skewed=skewed)
        data = data_drift(before, fresh, groups=groups, new_groups=others, n_resamples=199, rng=rng)
        found["data"] += bool(Drift.of(data, tolerance=0).data_moved)
    return {name: count / repeats for name, count in found.items()}


def savings(
    judge: str,
    n_pilot: int,
    *,
    skewed: bool,
    repeats: int,
    rng: np.random.Generator,
    n_items: int = 1000,
    n_labels: int = 60,
) -> Savings:
    """Variance of a planned draw and of the oracle's, each over an even draw's, averaged over pilots."""
    even = plan = oracle = 0.0
    many = simulate(judge, 20_000, rng, skewed=skewed)
    order = np.argsort(many.probabilities @ LEVELS, kind="stable")
    for _ in range(repeats):
        drawn = simulate(judge, n_items + n_pilot, rng, skewed=skewed)
        calibrator = Calibrator().fit(drawn.probabilities[:n_pilot], drawn.gold[:n_pilot])
        distribution = calibrator.predict_distribution(drawn.probabilities[n_pilot:])
        mean = distribution @ calibrator.support_
        spread = np.sqrt(np.maximum(distribution @ calibrator.support_**2 - mean**2, 0))
        rest = drawn.gold[n_pilot:] - mean
        known = (many.gold - calibrator.predict_mean(many.probabilities))[order]
        seen = drawn.probabilities[n_pilot:] @ LEVELS
        true = _local_spread(known, (many.probabilities @ LEVELS)[order], seen)
        even += _variance(Allocation(stratum=np.zeros(n_items, dtype=np.intp), n_items=(n_items,), n_drawn=(n_labels,),
                                     inclusion=np.full(n_items, n_labels / n_items)), rest)  # fmt: skip
        plan += _variance(allocate(mean, spread, n_labels), rest)
        oracle += _variance(allocate(true, true, n_labels), rest)
    return Savings(plan=plan / even, oracle=oracle / even)


def _local_spread(values: FloatArray, at: FloatArray, wanted: FloatArray) -> FloatArray:
    """Root mean square of the values whose judge's level is nearest to the wanted."""
    total = np.cumsum(np.concatenate([[0.0], values**2]))
    place = np.clip(np.searchsorted(at, wanted), NEIGHBOURS // 2, len(values) - NEIGHBOURS // 2)
    spread: FloatArray = np.sqrt((total[place + NEIGHBOURS // 2] - total[place - NEIGHBOURS // 2]) / NEIGHBOURS)
    return spread


def _variance(design: Allocation, values: FloatArray) -> float:
    """Variance of the stratified mean (Cochran 1977, § 5.4)."""
    parts = [
        size**2 * (1 - drawn / size) * values[design.stratum == stratum].var(ddof=1) / drawn
        for stratum, (size, drawn) in enumerate(zip(design.n_items, design.n_drawn, strict=True))
        if drawn < size
    ]
    return float(sum(parts)) / len(values) ** 2


def main() -> None:
    """Print both tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=300)
    repeats = parser.parse_args().repeats
    rng = np.random.default_rng(0)
    print(
        "| judge | gold | clustered | shift | alarm: judge | alarm: data | t-test on the error |\n|---|---|---|---|---|---|---|"
    )
    for judge in JUDGES:
        for n, clustered in ((12, False), (40, False), (100, False), (100, True), (400, True)):
            for shift in (0.0, 0.3):
                found = alarms(judge, n, shift=shift, clustered=clustered, repeats=repeats, rng=rng)
                cells = [f"{found[name]:.3f}" for name in ("judge", "data", "t-test")]
                print("|", " | ".join([judge, str(n), "yes" if clustered else "no", f"{shift:g}", *cells]), "|", flush=True)
    print("\n| judge | skewed | pilot | variance: plan | oracle | share of the gain |\n|---|---|---|---|---|---|")
    for judge in JUDGES:
        for skewed in (False, True):
            for pilot in (20, 40, 100):
                found = savings(judge, pilot, skewed=skewed, repeats=max(10, repeats // 10), rng=rng)
                gain = "–" if found.oracle > 0.995 else f"{(1 - found.plan) / (1 - found.oracle):.2f}"
                cells = [judge, "yes" if skewed else "no", str(pilot), f"{found.plan:.3f}", f"{found.oracle:.3f}", gain]
                print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
