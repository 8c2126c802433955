"""Grade the parts kept apart with the embedded judge, through isograde, and print a table with intervals by question."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from evaluation import GRADED, auc, token_f1, within
from examples import Row, evaluation_rows
from numpy.typing import NDArray

from isograde import Grade, Judge
from isograde.calibration import Calibrator, Interval, bootstrap, cross_fit, signal

Statistic = Callable[[NDArray[np.int64]], float | None]


def _statistic(name: str, gold: NDArray[np.float64], scores: NDArray[np.float64], groups: list[str]) -> Statistic:
    """The set's measure on some rows; None where it is not defined on them."""

    def of(rows: NDArray[np.int64]) -> float | None:
        if name in GRADED:
            return within(gold[rows], scores[rows], [groups[row] for row in rows])
        return auc(gold[rows], scores[rows]) if len(set((gold[rows] > 2).tolist())) == 2 else None

    return of


def _shown(value: float, interval: Interval) -> str:
    return f"{value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def figures(name: str, rows: list[Row], levels: NDArray[np.float64], n_resamples: int) -> dict[str, Any]:
    """Judge, token-F1 and their difference; for graded sets the calibrated MAE out of fold."""
    low, high = (np.array([row["gold_scale"][end] for row in rows], dtype=np.float64) for end in (0, 1))
    gold = 4 * (np.array([row["gold"] for row in rows]) - low) / (high - low)
    groups = [row["group"] for row in rows]
    f1 = np.array([token_f1(row["expected"], row["output"]) for row in rows])
    judge, words = (_statistic(name, gold, scores, groups) for scores in (levels, f1))
    everything = np.arange(len(rows))

    def difference(picked: NDArray[np.int64]) -> float | None:
        one, two = judge(picked), words(picked)
        return None if one is None or two is None else one - two

    measured = {"judge": judge, "token-F1": words, "difference": difference}
    result: dict[str, Any] = {
        "set": name,
        "rows": len(rows),
        "groups": len(set(groups)),
        "measure": "Spearman" if name in GRADED else "AUC",
    }
    for label, statistic in measured.items():
        result[label] = _shown(statistic(everything) or 0.0, bootstrap(statistic, groups, n_resamples=n_resamples, rng=0))
    if name in GRADED:
        cross = cross_fit(levels / 4, gold, calibrator=Calibrator(score_range=(0, 1)), groups=groups, rng=0)
        error, blind = np.abs(cross.median - gold).mean(), np.abs(cross.constant - gold).mean()
        result |= {
            "MAE": f"{error:.3f}",
            "MAE of the constant": f"{blind:.3f}",
            "has signal": signal(cross, groups=groups).has_signal,
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="the base model's GGUF file; fetched where not given")
    parser.add_argument("--rows", type=int, help="at most so many of each set, drawn with a fixed seed; all where not given")
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--out", type=Path, help="append the figures to this JSONL file")
    args = parser.parse_args()
    with Judge(args.model, rubric="answer_correctness") as judge:
        for name, whole in evaluation_rows().items():
            rows = whole if args.rows is None or args.rows >= len(whole) else random.Random(0).sample(whole, args.rows)
            graded = judge.score_batch([{key: row[key] for key in ("input", "output", "expected", "group")} for row in rows])
            kept = [(row, grade.expected_level) for row, grade in zip(rows, graded, strict=True) if isinstance(grade, Grade)]
            result = figures(name, [row for row, _ in kept], np.array([level for _, level in kept]), args.resamples)
            print(json.dumps(result), flush=True)
            if args.out is not None:
                with args.out.open("a") as out:
                    out.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
