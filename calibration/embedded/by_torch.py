"""Grade with torch instead of llama.cpp: several times as fast on a processor with bf16, and the same but for rounding.

How close the two are `parity.py` tells. Answers to one question are packed behind the question, so that it is computed once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from examples import Row
from model import Judge
from targets import Example
from tokens import Tokenizer, common_prefix
from train import grade

SHARED_FROM = 6  # answers to one question from which on they are packed behind it
BUDGET = 1500


class TorchGrader:
    """The base model with an adapter."""

    def __init__(self, model: Path, adapter: Path) -> None:
        torch.set_num_threads(1)
        self._tokenizer = Tokenizer(model)
        self._labels = torch.tensor(self._tokenizer.labels())
        self._judge = Judge(model, seed=0)
        self._judge.load(adapter)

    def __call__(self, rows: Sequence[Row]) -> list[tuple[float, float] | None]:
        """Expected level and observed mass of each row."""
        system = self._tokenizer.system
        asked = defaultdict(list)
        for i, row in enumerate(rows):
            asked[row["input"], row["expected"]].append(i)
        packs = [own for own in asked.values() if len(own) >= SHARED_FROM]
        packs.append([i for own in asked.values() if len(own) < SHARED_FROM for i in own])
        result = np.zeros((len(rows), 2))
        for pack in filter(None, packs):
            items = [[*system, *self._tokenizer.item(_example(rows[i]))] for i in pack]
            shared = min(common_prefix(items), min(map(len, items)) - 1)
            rest = [np.array(item[shared:]) for item in items]
            graded = grade(self._judge, np.array(items[0][:shared]), rest, self._labels, BUDGET).numpy().astype(np.float64)
            result[pack] = np.stack([graded[:, :5] @ np.arange(5), graded[:, 5]], axis=1)
        return [(float(level), float(mass)) for level, mass in result]


def _example(row: Row) -> Example:
    texts = {field: row[field] for field in ("input", "expected", "output")}
    return Example(source="", target=(0, 0, 0, 0, 0), **texts)
