"""Coverage and size of conformal intervals on simulated judges, beside oracles that know how gold falls at every score.

Run from the repository root; about a quarter of an hour of one free core for 200 repeats:

    python tests/bench/conformal_coverage.py [--repeats 200] [--confidence 0.9] [--out table.jsonl]

Each repeat draws n labels, fits, and measures on 400 fresh items of other groups. ``--out`` keeps each finished cell, and a second
run goes on where the first was stopped. Size is the mean number of levels in the set. Two oracles: one whose set holds gold with
the stated probability on *every* item, and the smallest that does so on average over items. A cell is flagged where coverage is below the nominal by more than 0.01 and two
standard errors.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from isograde.calibration import Calibrator
from statistical.oracle import oracle_sizes
from statistical.simulated import JUDGES, simulate

SIZES = (8, 12, 20, 40, 100, 400)
SETTINGS = {
    "plain": {},
    "noisy raters": {"noisy": True},
    "clustered": {"clustered": True},
    "90 % at level 4": {"skewed": True},
    "90 % at level 4, clustered": {"skewed": True, "clustered": True},
}
N_TEST = 400


def cell(judge, n, repeats, confidence, rng, **setting):
    """Coverage with its standard error, and mean size, of both kinds of interval."""
    columns = []
    for _ in range(repeats):
        labels, test = simulate(judge, n, rng, **setting), simulate(judge, N_TEST, rng, **setting)
        groups = labels.groups if setting.get("clustered") else None
        calibrator = Calibrator().fit(labels.probabilities, labels.gold, groups=groups, rng=rng)
        row = []
        for randomized in (False, True):
            found = calibrator.predict_interval(test.probabilities, confidence, randomized=randomized, rng=rng)
            row += [found.levels[np.arange(N_TEST), test.gold.astype(int)].mean(), found.levels.sum(axis=1).mean()]
        columns.append(row)
    mean, error = np.mean(columns, axis=0), np.std(columns, axis=0, ddof=1) / np.sqrt(repeats)
    return {
        "coverage": mean[0],
        "coverage_se": error[0],
        "size": mean[1],
        "randomized_coverage": mean[2],
        "randomized_coverage_se": error[2],
        "randomized_size": mean[3],
    }


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--confidence", type=float, default=0.9)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    done = {}
    if given.out is not None and given.out.exists():
        lines = [json.loads(line) for line in given.out.read_text(encoding="utf-8").splitlines()]
        kept = [r for r in lines if r["repeats"] >= given.repeats and r["confidence"] == given.confidence]
        done = {(r["setting"], r["judge"], r["n"]): r for r in kept}
    print(
        f"{given.confidence:.0%} intervals, {given.repeats} repeats or more; ± is one standard error; * is under nominal − 0.01"
    )
    columns = "setting, judge, n, coverage, size, randomized coverage, size, oracle on every item, oracle on average, repeats"
    head = columns.split(", ")
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for setting, options in SETTINGS.items():
        for judge in JUDGES:
            oracle = None
            for n in SIZES:
                found = done.get((setting, judge, n))
                if found is None:
                    key = [sorted(SETTINGS).index(setting), JUDGES.index(judge), n]
                    oracle = oracle or oracle_sizes(given.confidence, judge, np.random.default_rng(key[:2]), **options)
                    found = cell(judge, n, given.repeats, given.confidence, np.random.default_rng(key), **options)
                    found |= {"setting": setting, "judge": judge, "n": n, "oracle_every": oracle[0], "oracle_average": oracle[1]}
                    found |= {"repeats": given.repeats, "confidence": given.confidence}
                    if given.out is not None:
                        with given.out.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(found) + "\n")
                print(line(found), flush=True)


def line(found):
    """One row of the table."""

    def coverage(name):
        value, error = found[name], found[f"{name}_se"]
        flag = " *" if value + 2 * error < found["confidence"] - 0.01 else ""
        return f"{value:.3f} ± {error:.3f}{flag}"

    cells = [found["setting"], found["judge"], str(found["n"]), coverage("coverage"), f"{found['size']:.2f}"]
    cells += [coverage("randomized_coverage"), f"{found['randomized_size']:.2f}"]
    cells += [f"{found['oracle_every']:.2f}", f"{found['oracle_average']:.2f}", str(found["repeats"])]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
