"""MAE ÷ the smaller of raw judge's and constant's: stored judges and word overlap on ../shared/data, and simulated judges.

Run from the repository root; about three minutes:

    python tests/bench/calibration_table.py [--repeats 40] [--grades grades.jsonl]

``--grades`` adds a table of other judges: one JSON object a line with ``task``, ``probabilities`` (one a level), ``gold`` (in
level indices) and ``group``.

Each repeat draws groups until n labels are there, at most ten of a group unless there are few groups, fits on them and measures
on every other group. The constant is the training labels' lower median; raw is the judge's expected level; both on the same test
part. A cell is the mean over tasks ± its standard error over tasks.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from isograde.calibration import Calibrator, fit_idr

SHARED = Path(os.environ.get("ISOGRADE_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data"
SIZES = (10, 20, 30, 50, 100, 200)
MIN_TEST = 20
# Labels of one group at most, unless there are too few groups.
MOST_A_GROUP = 10
METHODS = ("isotonic mean", "plain IDR", "pool", "constant", "raw")


def stored_tasks():
    """One task a criterion: (level probabilities, gold level, groups)."""
    tasks = {}
    for name in ("llm_rubric_real", "llm_rubric_synth"):
        by_criterion = defaultdict(list)
        with gzip.open(SHARED / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                by_criterion[row["criterion"]].append(row)
        for criterion, rows in sorted(by_criterion.items()):
            probabilities = np.array([row["judge_levels"] for row in rows], dtype=float)
            gold = np.array([row["gold"] - row["judge_level_values"][0] for row in rows], dtype=float)
            tasks[f"{name}/{criterion}"] = (
                probabilities / probabilities.sum(axis=1, keepdims=True),
                gold,
                np.array([row["group"] for row in rows]),
            )
    return tasks


def overlap(output, references):
    """F1 of the words of an answer and its nearest reference: a cheap judge, on 0–1."""
    words = Counter(re.findall(r"\w+", output.lower()))
    best = 0.0
    for reference in references:
        other = Counter(re.findall(r"\w+", reference.lower()))
        best = max(best, 2 * (words & other).total() / max(1, words.total() + other.total()))
    return best


def overlap_tasks(most=1500):
    """Human gold beside word overlap, a score without probabilities: (score, gold level, groups)."""
    tasks = {}
    for name in ("saf2_en", "saf1_de", "scientsbank_3way", "beetle_3way", "evouna_nq", "evouna_tq", "wmt23_zhen"):
        with gzip.open(SHARED / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows = [row for row in map(json.loads, lines) if row["expected"] and row["output"]]
        rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:most]]
        references = [row["expected"] if isinstance(row["expected"], list) else [row["expected"]] for row in rows]
        tasks[name] = (
            np.array([overlap(row["output"], texts) for row, texts in zip(rows, references, strict=True)]),
            np.array([4 * (row["gold"] - row["gold_scale"][0]) / np.ptp(row["gold_scale"]) for row in rows]),
            np.array([str(row.get("group") or row["id"]) for row in rows]),
        )
    return tasks


def graded_tasks(path):
    """Tasks of a file of grades."""
    by_task = defaultdict(list)
    with path.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            by_task[row["task"]].append(row)
    return {
        task: tuple(np.array([row[field] for row in rows]) for field in ("probabilities", "gold", "group"))
        for task, rows in by_task.items()
    }


JUDGES = {
    # name: noise of the judge beside the humans' own spread of 1, and what it does to a level
    "informative": (0.4, lambda level: level),
    "fair": (0.8, lambda level: level),
    "weak": (2.0, lambda level: level),
    "lenient": (0.5, lambda level: np.clip(0.8 * level + 1.2, 0, 4)),
    "compressed": (0.5, lambda level: 2.2 + 0.2 * (level - 2)),
    "extreme": (0.5, lambda level: np.where(level > 1.7, 3.8, 0.2)),
}
GOLD_CUTS = {"even": (-0.84, -0.25, 0.25, 0.84), "skewed": (-1.7, -1.2, -0.7, -0.1)}


def simulated_tasks(n=600, questions=120):
    """Five gold levels cut from a latent quality; a judge sees it with noise, and bends it."""
    rng = np.random.default_rng(20240501)
    tasks = {}
    for judge, (noise, bend) in JUDGES.items():
        for shape, cuts in GOLD_CUTS.items():
            group = np.arange(n) % questions
            quality = np.sqrt(0.8) * rng.normal(size=n) + np.sqrt(0.2) * rng.normal(size=questions)[group]
            seen = (quality + noise * rng.normal(size=n)) / np.hypot(1, noise)
            level = np.clip(bend(np.clip((2.0 if shape == "even" else 3.0) + 1.3 * seen, 0, 4)), 0, 4)
            low = np.minimum(np.floor(level), 3).astype(int)
            probabilities = np.zeros((n, 5))
            probabilities[np.arange(n), low] = 1 - (level - low)
            probabilities[np.arange(n), low + 1] = level - low
            tasks[f"{judge}/{shape}"] = (probabilities, np.searchsorted(cuts, quality).astype(float), group.astype(str))
    return tasks


def draw(groups, n, rng):
    """Rows by group, groups in random order, until n labels are there; every row of another group is left to test on."""
    names, code = np.unique(groups, return_inverse=True)
    order = rng.permutation(len(groups))
    order = order[np.argsort(rng.permutation(len(names))[code[order]], kind="stable")]
    # With a few large groups, labels come from half of them, so that the rest can be tested on.
    share = max(1, -(-n // max(1, len(names) // 2)))
    first = np.r_[True, code[order][1:] != code[order][:-1]]
    place = np.arange(len(order)) - np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    train = order[place < max(share, MOST_A_GROUP)][:n]
    return train, np.flatnonzero(~np.isin(code, code[train]))


def errors(task, n, rng):
    """MAE of each method on one split, or None where too little is left to test on."""
    probabilities, gold, groups = task
    train, test = draw(groups, n, rng)
    if len(test) < MIN_TEST:
        return None
    plain = probabilities.ndim == 1
    level = 4 * probabilities if plain else probabilities @ np.arange(probabilities.shape[1])
    idr = fit_idr(level[train], gold[train])
    cdf = idr.predict_cdf(level[test])
    pool = Calibrator(score_range=(0, 1) if plain else None).fit(probabilities[train], gold[train], groups=groups[train], rng=rng)
    predicted = {
        "isotonic mean": idr.support[-1] - cdf[:, :-1] @ np.diff(idr.support),
        "plain IDR": idr.support[(cdf < 0.5 - 1e-9).sum(axis=1)],
        "pool": pool.predict(probabilities[test]),
        "constant": np.sort(gold[train])[(n - 1) // 2],
        "raw": level[test],
    }
    return np.array([np.abs(predicted[method] - gold[test]).mean() for method in METHODS])


def ratios(tasks, n, repeats):
    """Per task, the mean over splits of MAE ÷ min(MAE raw, MAE constant): (n_tasks, n_methods)."""
    table = []
    for number, task in enumerate(tasks.values()):
        rng = np.random.default_rng([n, number])
        measured = [mae for mae in (errors(task, n, rng) for _ in range(repeats)) if mae is not None]
        if measured:
            maes = np.array(measured)
            table.append((maes / maes[:, 3:].min(axis=1, keepdims=True)).mean(axis=0))
    return np.array(table)


def print_table(title, tasks, repeats):
    """Print one markdown table."""
    print(f"\n{title}\n\n| labels | tasks | {' | '.join(METHODS)} |\n|---|---|{'---|' * len(METHODS)}", flush=True)
    for n in SIZES:
        table = ratios(tasks, n, repeats)
        if len(table):
            cells = [
                f"{mean:.3f} ± {error:.3f}"
                for mean, error in zip(table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(len(table)), strict=True)
            ]
            print(f"| {n} | {len(table)} | {' | '.join(cells)} |", flush=True)


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--grades", type=Path, default=None)
    arguments = parser.parse_args()
    repeats = arguments.repeats
    if SHARED.is_dir():
        stored = stored_tasks()
        probabilities, gold, _ = stored["llm_rubric_real/Q0"]
        rmse = np.sqrt(((probabilities @ np.arange(4) - gold) ** 2).mean())
        print(f"RMSE of the expected level, llm_rubric_real Q0, {len(gold)} rows, native 1–4: {rmse:.4f} (published 0.919)")
        print_table("Stored judges (llm_rubric_real, llm_rubric_synth: one task a criterion)", stored, repeats)
        print_table("Word overlap as the judge, human gold (a plain score on 0–1)", overlap_tasks(), repeats)
    else:
        print(f"stored judges skipped: {SHARED} is missing")
    if arguments.grades:
        print_table(f"Judges in {arguments.grades.name}", graded_tasks(arguments.grades), repeats)
    print_table("Simulated judges: " + ", ".join(JUDGES) + " × even, skewed gold", simulated_tasks(), repeats)


if __name__ == "__main__":
    main()
