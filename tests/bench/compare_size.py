"""Size and power of ``compare_means`` beside the paired t-test on the labelled pairs alone, over simulated judges.

Run from the repository root; about 20 minutes of one core at 1,000 repeats:

    python tests/bench/compare_size.py [--repeats 1000] [--out compare_size.md]

Two systems answer the same inputs; n pairs have gold on both sides, 1,000 more have none. «favours B» sees B's answers half a
standard deviation better than they are. Size: how often a difference is shown where there is none, by p ≤ 0.05 and by a 95 %
interval without 0; power: where B is better by 0.4 standard deviations of quality. «compared» is ``compare_means``, «judge» the
judge's own difference (``compare_judged``, which is not debiased), «t» the paired t-test on cluster means.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

import numpy as np
from scipy.special import stdtr

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from isograde.calibration.comparison import compare_means
from statistical.simulated import CLUSTER_SIZE, simulate_pair

SIZES = (8, 12, 20, 40, 100, 400)
N_JUDGED = 1_000
SHIFT = 0.4
JUDGES = {"informative": 0.0, "compressed": 0.0, "constant": 0.0, "favours B": 0.5}
HEAD = "| judge, pairs | groups | size, p | size, interval | size of t | size of the judge alone | power, p | power, interval | power of t |"


def t_test(difference, groups):
    """P-value of the paired t-test on means of groups of equal size; 1 where nothing varies."""
    means = np.bincount(groups, difference) / np.bincount(groups)
    error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else 0.0
    return 1.0 if error == 0 else 2 * float(stdtr(len(means) - 1, -abs(means.mean()) / error))


def repetition(judge, n, rng, *, shift, clustered, skewed):
    """Whether a difference is shown: by p, by the interval, by t, by the judge alone."""
    favour = JUDGES[judge]
    a, b = simulate_pair(
        "informative" if favour else judge, n + N_JUDGED, rng, shift=shift, favour=favour, clustered=clustered, skewed=skewed
    )
    known = np.arange(n + N_JUDGED) < n
    gold_a, gold_b = np.where(known, a.gold, np.nan), np.where(known, b.gold, np.nan)
    groups = a.groups if clustered else None
    found = compare_means(a.probabilities, b.probabilities, gold_a, gold_b, groups=groups, rng=rng)
    judged = found.judge_only
    return (
        found.p_value <= 0.05,
        found.low > 0 or found.high < 0,
        t_test((b.gold - a.gold)[:n], a.groups[:n]) <= 0.05,
        judged.low > 0 or judged.high < 0,
    )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    lines = [HEAD, "|---|" + "---|" * 8]
    print("\n".join(lines), flush=True)
    for clustered, skewed, n, judge in itertools.product((False, True), (False, True), SIZES, JUDGES):
        rates = []
        for shift in (0.0, SHIFT):
            rng = np.random.default_rng([n, clustered, skewed, list(JUDGES).index(judge), int(10 * shift)])
            shown = [repetition(judge, n, rng, shift=shift, clustered=clustered, skewed=skewed) for _ in range(arguments.repeats)]
            rates.append(np.mean(shown, axis=0))
        size, power = rates
        words = " ".join([judge, *(["clustered"] if clustered else []), *(["skewed"] if skewed else [])])
        figures = [*size, *power[:3]]
        groups = n // CLUSTER_SIZE if clustered else n
        line = f"| {words}, n = {n} | {groups} | {' | '.join(f'{figure:.3f}' for figure in figures)} |"
        lines.append(line)
        print(line, flush=True)
        if arguments.out:
            arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
