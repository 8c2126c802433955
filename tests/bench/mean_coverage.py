"""Coverage and width of ``estimate_mean`` over simulated judges, and of Gaffke's interval over every distribution on five levels.

Run from the repository root; the full table takes about an hour of one core, and goes on where it stopped:

    python tests/bench/mean_coverage.py --repeats 2000 [--out mean_coverage.json] [--table mean_coverage.md]
    python tests/bench/mean_coverage.py --gaffke          # exact worst coverage by enumeration, a few minutes

A cell is a judge, whether raters are noisy, items clustered (groups of four) and gold skewed (90 % at level 4), and the number of
labels n, labelled at random beside 2,000 judged rows. «label-only t» is Student's t of the labels' group totals (the textbook
interval); it knows no judge, so its coverage is pooled over the judges. A ratio of widths is given where it covers 0.94 or more.
«theory» is √(1 − ρ² m ÷ (m + n)), ρ the correlation of gold and the judge's best prediction of it and m the judged rows without
gold: what a known calibration and infinitely many labels for λ would reach with independent rows (in groups a judge that explains
what they share gains more). Coverage is tested against 0.95 with Holm's correction over the cells at 1 %; cells with fewer than 10
labelled groups are reported and not tested.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from functools import cache
from math import comb
from pathlib import Path

import numpy as np
from scipy.special import gammaln, stdtrit
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from isograde.calibration.bounded import bounded_mean_interval
from isograde.calibration.estimation import estimate_mean, estimate_pass_rate
from statistical.simulated import CLUSTER_SIZE, JUDGES, LEVELS, population_mean, population_pass_rate, simulate

SIZES = (8, 12, 20, 40, 100, 400)
N_JUDGED = 2_000
ENOUGH_GROUPS = 10
COMPARED_FROM = 0.94
MOST_WIDER = 1.03
BATCH = 100  # repetitions between two savings


def cells():
    """Every cell, the small ones first."""
    return [
        {"judge": judge, "noisy": noisy, "clustered": clustered, "skewed": skewed, "n": n}
        for n, skewed, clustered, noisy, judge in itertools.product(SIZES, (0, 1), (0, 1), (0, 1), JUDGES)
    ]


def name_of(cell):
    """One line a cell."""
    words = [cell["judge"], *(word for word in ("noisy", "clustered", "skewed") if cell[word])]
    return f"{' '.join(words)}, n = {cell['n']}"


def label_t(gold, groups):
    """Textbook interval: Student's t on group means of equal size."""
    means = np.bincount(groups, gold) / np.bincount(groups)
    if len(means) < 2:
        return 0.0, 4.0
    half = stdtrit(len(means) - 1, 0.975) * means.std(ddof=1) / np.sqrt(len(means))
    return max(means.mean() - half, 0.0), min(means.mean() + half, 4.0)


def repetition(cell, rng):
    """Covered and width of the estimate, the textbook interval, and the pass rate's; whether it was rectified, bounded."""
    shape = {word: bool(cell[word]) for word in ("noisy", "clustered", "skewed")}
    n = cell["n"]
    drawn = simulate(cell["judge"], n + N_JUDGED, rng, **shape)
    gold = np.where(np.arange(len(drawn.gold)) < n, drawn.gold, np.nan)
    groups = drawn.groups if cell["clustered"] else None
    truth = population_mean(skewed=shape["skewed"])
    found = estimate_mean(drawn.probabilities, gold, groups=groups, rng=rng)
    low, high = label_t(drawn.gold[:n], drawn.groups[:n])
    row = [found.low <= truth <= found.high, found.high - found.low, low <= truth <= high, high - low]
    rate = estimate_pass_rate(drawn.probabilities, gold, groups=groups, rng=rng)
    row += [rate.low <= population_pass_rate(skewed=shape["skewed"]) <= rate.high, rate.high - rate.low]
    return [float(value) for value in row] + [found.method == "prediction-powered", found.method == "bounded", found.mean - truth]


def best_correlation(cell):
    """Correlation of gold with the judge's best prediction of it, from a large draw."""
    if cell["judge"] == "constant":
        return 0.0
    shape = {word: bool(cell[word]) for word in ("noisy", "clustered", "skewed")}
    drawn = simulate(cell["judge"], 200_000, np.random.default_rng(1), **shape)
    score = drawn.probabilities @ LEVELS
    place = np.argsort(np.argsort(score)) * 200 // len(score)
    means = np.bincount(place, drawn.gold) / np.bincount(place)
    return float(np.corrcoef(means[place], drawn.gold)[0, 1])


def run(repeats, path):
    """Add repetitions to every cell until it has them, saving as it goes; the stream of a cell depends on nothing but itself."""
    done = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for target in range(BATCH, repeats + BATCH, BATCH):
        for cell in cells():
            name, wanted = name_of(cell), min(target, repeats)
            have = done.setdefault(name, {"sums": [0.0] * 9, "repeats": 0, "squared": 0.0})
            if have["repeats"] >= wanted:
                continue
            seed = [
                have["repeats"],
                *(int(value) if not isinstance(value, str) else JUDGES.index(value) for value in cell.values()),
            ]
            rng = np.random.default_rng(seed)
            rows = np.array([repetition(cell, rng) for _ in range(wanted - have["repeats"])], dtype=float)
            have["sums"] = (np.array(have["sums"]) + rows.sum(axis=0)).tolist()
            have["squared"] += float((rows[:, -1] ** 2).sum())
            have["repeats"] = wanted
            path.write_text(json.dumps(done), encoding="utf-8")
    return done


@cache
def _correlation(judge, noisy, clustered, skewed):
    """Correlation by what it depends on."""
    return best_correlation({"judge": judge, "noisy": noisy, "clustered": clustered, "skewed": skewed})


def _labels_of(cell):
    """What a cell's labels depend on."""
    return tuple(cell[word] for word in ("noisy", "clustered", "skewed", "n"))


def table(done):
    """Rows of the table, and what breaks the rules."""
    rows, tested, pooled = [], [], {}
    for cell in cells():
        have = done.get(name_of(cell))
        if have is not None:
            hits, repeats = pooled.get(_labels_of(cell), (0.0, 0))
            pooled[_labels_of(cell)] = (hits + have["sums"][2], repeats + have["repeats"])
    for cell in cells():
        have = done.get(name_of(cell))
        if have is None or not have["repeats"]:
            continue
        covered, width, _, t_width, rate_covered, rate_width, rectified, bounded, error = np.array(have["sums"]) / have["repeats"]
        t_covered = pooled[_labels_of(cell)][0] / pooled[_labels_of(cell)][1]
        n_groups = cell["n"] // CLUSTER_SIZE if cell["clustered"] else cell["n"]
        compared = t_covered >= COMPARED_FROM and n_groups >= ENOUGH_GROUPS
        rho = _correlation(*(cell[word] for word in ("judge", "noisy", "clustered", "skewed")))
        theory = np.sqrt(1 - rho**2 * N_JUDGED / (N_JUDGED + cell["n"]))
        row = {"cell": name_of(cell), "repeats": have["repeats"], "groups": n_groups, "covered": covered, "width": width,
               "t_covered": t_covered, "t_width": t_width, "ratio": width / t_width if compared else None, "theory": theory,
               "rate_covered": rate_covered, "rate_width": rate_width, "rectified": rectified, "bounded": bounded, "bias": error}  # fmt: skip
        rows.append(row)
        if n_groups >= ENOUGH_GROUPS:
            for kind in ("covered", "rate_covered"):
                p = binom.cdf(round(row[kind] * have["repeats"]), have["repeats"], 0.95)
                tested.append((p, f"{row['cell']} ({'mean' if kind == 'covered' else 'pass rate'})", row[kind]))
    tested.sort()
    under = []
    for place, (p, cell, covered) in enumerate(tested):
        if p > 0.01 / (len(tested) - place):
            break
        under.append(f"{cell}: {covered:.3f}")
    wide = [f"{row['cell']}: {row['ratio']:.3f}" for row in rows if row["ratio"] is not None and row["ratio"] > MOST_WIDER]
    return rows, tested, under, wide


def markdown(done):
    """The table and its verdict."""
    rows, tested, under, wide = table(done)
    lines = [
        (
            "| judge, labels | repeats | groups | covered | width | label-only t covers | its width | ratio | theory | pass rate covered "
            "| its width | rectified | bounded |"
        ),
        "|---|" + "---|" * 12,
    ]
    for row in rows:
        ratio = "–" if row["ratio"] is None else f"{row['ratio']:.3f}"
        lines.append(
            f"| {row['cell']} | {row['repeats']} | {row['groups']} | {row['covered']:.3f} | {row['width']:.3f} | {row['t_covered']:.3f} "
            f"| {row['t_width']:.3f} | {ratio} | {row['theory']:.3f} | {row['rate_covered']:.3f} | {row['rate_width']:.3f} "
            f"| {row['rectified']:.2f} | {row['bounded']:.2f} |"
        )
    lowest = min((row for row in rows if row["groups"] >= ENOUGH_GROUPS), key=lambda row: row["covered"], default=None)
    lines += ["", f"{len(tested)} tests of coverage; significantly under 0.95 (Holm, 1 %): {', '.join(under) or 'none'}."]
    if lowest is not None:
        lines.append(f"Lowest coverage of a mean with 10 groups or more: {lowest['covered']:.3f} ({lowest['cell']}).")
    lines.append(f"More than 3 % wider than label-only t where that covers 0.94: {', '.join(wide) or 'none'}.")
    return "\n".join(lines)


def gaffke_worst(n, step, confidence_level=0.95):
    """Least exact coverage of Gaffke's interval, for n draws of five levels, over a grid of distributions, by enumeration."""
    counts = np.array([c for c in itertools.product(range(n + 1), repeat=5) if sum(c) == n])
    limits = np.array(
        [bounded_mean_interval(np.repeat(LEVELS, c), low=0, high=4, confidence_level=confidence_level) for c in counts]
    )
    ways = gammaln(n + 1) - gammaln(counts + 1).sum(axis=1)
    parts = round(1 / step)
    worst = (2.0, 2.0, None)
    for share in itertools.product(range(parts + 1), repeat=4):
        if sum(share) > parts:
            continue
        p = np.array([*share, parts - sum(share)]) / parts
        mean = float(p @ LEVELS)
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = np.exp(ways + np.where(counts > 0, counts * np.log(p), 0.0).sum(axis=1))
        above, below = chance[limits[:, 0] > mean + 1e-9].sum(), chance[limits[:, 1] < mean - 1e-9].sum()
        worst = min(worst, (1 - above - below, 1 - max(above, below), p.tolist()), key=lambda each: each[0])
    return worst, comb(parts + 4, 4)


def main():
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("mean_coverage.json"))
    parser.add_argument("--table", type=Path)
    parser.add_argument("--gaffke", action="store_true", help="Enumerate Gaffke's interval instead.")
    arguments = parser.parse_args()
    if arguments.gaffke:
        for n in (1, 2, 3, 5, 8, 12):
            (least, one_sided, p), n_grid = gaffke_worst(n, 0.05)
            print(
                f"n = {n}: least coverage over {n_grid} distributions {least:.4f} (at {p}; its worse side {one_sided:.4f})",
                flush=True,
            )
        return
    text = markdown(run(arguments.repeats, arguments.out))
    print(text)
    if arguments.table:
        arguments.table.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
