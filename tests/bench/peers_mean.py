"""Intervals for the mean of a judged set from few labels, side by side: isograde, cje-eval, truescore, and the labels alone.

Run from the repository root in an environment with the peers (they are an extra of their own):

    pip install -e ".[bench-peers]"
    python tests/bench/peers_mean.py [--repeats 500] [--out peers_mean.md]

Every tool sees the same draws: a simulated judge (tests/statistical/simulated.py), n labelled rows at random and 1,000 judged
ones, all as the tool's own guide says for means of a bounded scale: cje-eval ``calibrated_mean_ci`` with cluster ids, truescore
``ppi_estimate`` with clusters, the judge's score on 0–1. A cell is the share of 95 % intervals that cover the known population
mean, and their mean width in levels. A tool that raises covers nothing and is counted in «errors».
"""

from __future__ import annotations

import argparse
import importlib.metadata
import logging
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from isograde.calibration.estimation import estimate_mean
from statistical.simulated import LEVELS, population_mean, simulate

SIZES = (8, 12, 20, 40, 100, 400)
N_JUDGED = 1_000
TOP = 4.0
SETTINGS = {
    "informative": {"judge": "informative"},
    "informative, noisy rater": {"judge": "informative", "noisy": True},
    "biased": {"judge": "biased"},
    "constant": {"judge": "constant"},
    "informative, 90 % at level 4": {"judge": "informative", "skewed": True},
    "constant, 90 % at level 4": {"judge": "constant", "skewed": True},
    "informative, groups of four": {"judge": "informative", "clustered": True},
    "informative, groups of four, 90 % at level 4": {"judge": "informative", "clustered": True, "skewed": True},
}


def ours(drawn, n, groups):
    """Interval of isograde."""
    gold = np.where(np.arange(len(drawn.gold)) < n, drawn.gold, np.nan)
    found = estimate_mean(drawn.probabilities, gold, groups=groups)
    return found.low, found.high


def cje(drawn, n, groups):
    """Interval of cje-eval, labels on 0–1."""
    from cje import calibrated_mean_ci

    labels = np.where(np.arange(len(drawn.gold)) < n, drawn.gold / TOP, np.nan)
    low, high = calibrated_mean_ci(drawn.probabilities @ LEVELS / TOP, labels, cluster_ids=groups).ci
    return TOP * low, TOP * high


def truescore(drawn, n, groups):
    """Interval of truescore."""
    from truescore import ppi_estimate

    found = ppi_estimate(drawn.probabilities @ LEVELS / TOP, drawn.gold[:n] / TOP, np.arange(n), clusters=groups)
    return TOP * found.low, TOP * found.high


def label_t(drawn, n, groups):
    """Student's t of the labels alone, on group means."""
    gold = drawn.gold[:n]
    means = gold if groups is None else np.bincount(groups[:n], gold) / np.bincount(groups[:n])
    half = stdtrit(len(means) - 1, 0.975) * means.std(ddof=1) / np.sqrt(len(means))
    return max(means.mean() - half, 0.0), min(means.mean() + half, TOP)


TOOLS = {"isograde": ours, "cje-eval": cje, "truescore": truescore, "label-only t": label_t}


def main():
    """Print the table, a row as it is done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=500)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # the peers advise on every call
    versions = {name: importlib.metadata.version(name) for name in ("cje-eval", "truescore")}
    head = "| judge | n | " + " | ".join(f"{name} {versions.get(name, '')}".strip() for name in TOOLS) + " | errors |"
    lines = [head, "|---|---|" + "---|" * (len(TOOLS) + 1)]
    print("\n".join(lines), flush=True)
    spent = dict.fromkeys(TOOLS, 0.0)
    n_calls = 0
    for (name, setting), n in ((each, n) for each in SETTINGS.items() for n in SIZES):
        truth = population_mean(skewed=setting.get("skewed", False))
        covered, widths, errors = ({tool: [] for tool in TOOLS} for _ in range(3))
        rng = np.random.default_rng([n, list(SETTINGS).index(name)])
        for _ in range(arguments.repeats):
            drawn = simulate(n=n + N_JUDGED, rng=rng, **setting)
            groups = drawn.groups if setting.get("clustered") else None
            n_calls += 1
            for tool, interval in TOOLS.items():
                start = time.perf_counter()
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        low, high = interval(drawn, n, groups)
                except Exception as error:  # noqa: BLE001 - a peer's failure is a result here
                    errors[tool].append(type(error).__name__)
                    covered[tool].append(False)
                else:
                    covered[tool].append(low <= truth <= high)
                    widths[tool].append(high - low)
                spent[tool] += time.perf_counter() - start
        cells = [f"{np.mean(covered[tool]):.3f} ({np.mean(widths[tool]) if widths[tool] else np.nan:.3f})" for tool in TOOLS]
        failed = "; ".join(f"{tool}: {len(found)} {found[0]}" for tool, found in errors.items() if found)
        lines.append(f"| {name} | {n} | {' | '.join(cells)} | {failed or '–'} |")
        print(lines[-1], flush=True)
        if arguments.out:
            arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    lines.append("\nmilliseconds a call: " + ", ".join(f"{tool} {1000 * spent[tool] / n_calls:.1f}" for tool in TOOLS))
    print(lines[-1])
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
