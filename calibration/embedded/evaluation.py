"""Figures on the parts kept apart: AUC where the gold is right or wrong, Spearman within question where it is graded."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

GRADED = {"saf2_en unseen questions", "saf1_de", "saf2_en withheld"}


def gold_levels(rows: Sequence[dict[str, Any]]) -> NDArray[np.float64]:
    """Gold on the rubric's scale, 0 to 4."""
    low, high = (np.array([row["gold_scale"][end] for row in rows], dtype=np.float64) for end in (0, 1))
    return 4 * (np.array([row["gold"] for row in rows]) - low) / (high - low)


def token_f1(expected: str, output: str) -> float:
    """F1 of the bags of lower-case words."""
    one, two = (Counter(re.findall(r"\w+", text.lower())) for text in (expected, output))
    common = sum((one & two).values())
    return 2 * common / (sum(one.values()) + sum(two.values())) if common else 0.0


def _ranks(x: NDArray[np.float64]) -> NDArray[np.float64]:
    order = np.sort(x)
    return (np.searchsorted(order, x, "left") + np.searchsorted(order, x, "right") + 1) / 2


def auc(gold: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
    """Mann–Whitney: the chance that a right answer scores above a wrong one, ties half."""
    right = gold > 2
    n, m = int(right.sum()), int((~right).sum())
    return float((_ranks(scores)[right].sum() - n * (n + 1) / 2) / (n * m))


def within(gold: NDArray[np.float64], scores: NDArray[np.float64], groups: Sequence[str]) -> float:
    """Spearman within each question, averaged with the rows as weights."""
    members = defaultdict(list)
    for i, group in enumerate(groups):
        members[group].append(i)
    parts = []
    for rows in members.values():
        g, s = _ranks(gold[rows]), _ranks(scores[rows])
        if len(rows) >= 5 and g.std() > 0 and s.std() > 0:
            parts.append((len(rows), float(np.corrcoef(g, s)[0, 1])))
    return sum(n * r for n, r in parts) / sum(n for n, _ in parts)


def figures(work: Path, kept: NDArray[np.int64], graded: NDArray[np.float32]) -> dict[str, Any]:
    """Judge beside token-F1, by set; `graded` holds five level probabilities and the mass of each kept row."""
    rows = json.loads((work / "eval.json").read_text())
    by_set = defaultdict(list)
    for i, index in enumerate(kept.tolist()):
        by_set[rows[index]["set"]].append((i, rows[index]))
    result = {}
    for name, members in by_set.items():
        at = [i for i, _ in members]
        gold = np.array([row["level"] for _, row in members])
        f1 = np.array([token_f1(row["expected"], row["output"]) for _, row in members])
        level = graded[at, :5].astype(np.float64) @ np.arange(5)
        groups = [row["group"] for _, row in members]
        measure = (lambda s, g=gold, q=groups: within(g, s, q)) if name in GRADED else (lambda s, g=gold: auc(g, s))
        result[name] = {
            "n": len(at),
            "measure": "Spearman" if name in GRADED else "AUC",
            "judge": round(measure(level), 3),
            "token_f1": round(measure(f1), 3),
            "mae": round(float(np.abs(level - gold).mean()), 3),
            "mass": round(float(graded[at, 5].mean()), 4),
        }
    return result
