"""Grade the parts kept apart with the embedded judge, through isograde, and print a Markdown table with intervals by question.

    python evaluate.py --out grades.jsonl [--cosine cosines.npz]

What was graded stands in the file: the same command goes on after a cut, and on a finished file it prints the table alone. The
judge stands beside the F1 of words and, with `--cosine`, beside the cosine of isograde's embeddings (multilingual-e5-small).
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from comparing import validation_rows
from evaluation import GRADED, auc, gold_levels, token_f1, within
from examples import Row, evaluation_rows
from numpy.typing import NDArray

from isograde import Grade, Judge
from isograde.backends.embeddings_local import LocalEmbeddings
from isograde.backends.weights import default_weights
from isograde.calibration import Calibrator, Interval, bootstrap, cross_fit, signal
from isograde.correctness.similarity import Similarity

Floats = NDArray[np.float64]
Statistic = Callable[[NDArray[np.int64]], float | None]
Grader = Callable[[Sequence[Row]], list[tuple[float, float] | None]]
POOLED = "SAF, English unseen questions and German, pooled"
POOLED_FROM = ("saf2_en unseen questions", "saf1_de")
CHUNK = 100
SEED = 0  # of the questions drawn by --rows


@dataclass(frozen=True, kw_only=True)
class Part:
    """A set's graded rows: gold and the judge's expected level on 0 … 4, the observed mass, and what stands beside the judge."""

    name: str
    gold: Floats
    groups: list[str]
    level: Floats
    mass: Floats
    beside: dict[str, Floats]
    failed: int

    @property
    def graded(self) -> bool:
        return self.name in GRADED or self.name == POOLED

    def statistic(self, scores: Floats) -> Statistic:
        """The set's measure on some rows; None where it is not defined on them."""

        def of(rows: NDArray[np.int64]) -> float | None:
            if self.graded:
                return within(self.gold[rows], scores[rows], [self.groups[row] for row in rows])
            return auc(self.gold[rows], scores[rows]) if 0 < (self.gold[rows] > 2).sum() < len(rows) else None

        return of


def drawn(rows: list[Row], at_least: int | None) -> list[Row]:
    """Whole questions, drawn with a fixed seed, until there are so many rows; a question's rows stand together."""
    by_question = defaultdict(list)
    for row in rows:
        by_question[row["group"]].append(row)
    questions = sorted(by_question)
    random.Random(SEED).shuffle(questions)
    picked: list[Row] = []
    for question in questions:
        if at_least is not None and len(picked) >= at_least:
            break
        # The embedded judge computes what neighbours have in common once
        picked += sorted(by_question[question], key=lambda row: (row["input"], row["expected"]))
    return picked


def through_isograde(judge: Judge) -> Grader:
    def grader(rows: Sequence[Row]) -> list[tuple[float, float] | None]:
        graded = judge.score_batch([{key: row[key] for key in ("input", "output", "expected")} for row in rows])
        return [(g.expected_level, g.distribution.observed_mass) if isinstance(g, Grade) else None for g in graded]

    return grader


def grade(grader: Grader, name: str, rows: Sequence[Row], out: Path) -> list[tuple[float, float] | None]:
    """Expected level and observed mass of each row, None where it failed; what the file holds is not graded again."""
    done = [entry for entry in map(json.loads, out.read_text().splitlines()) if entry["set"] == name] if out.exists() else []
    graded = [(entry["level"], entry["mass"]) if entry["level"] is not None else None for entry in done][: len(rows)]
    with out.open("a") as file:
        for start in range(len(graded), len(rows), CHUNK):
            found = grader(rows[start : start + CHUNK])
            graded += found
            for level, mass in (each or (None, None) for each in found):
                file.write(json.dumps({"set": name, "level": level, "mass": mass}) + "\n")
            file.flush()
    return graded


def cosines(name: str, rows: Sequence[Row], path: Path) -> Floats:
    """Cosine of reference and answer by isograde's own embeddings; kept in a file, since no adapter changes it."""
    kept = dict(np.load(path)) if path.exists() else {}
    if len(kept.get(name, ())) < len(rows):
        similarity = Similarity(LocalEmbeddings())
        pairs = ((row["expected"], row["output"]) for row in rows)
        kept[name] = np.array([similarity.of(*pair) if all(map(str.strip, pair)) else 0.0 for pair in pairs])
        np.savez_compressed(path, **kept)
    return kept[name][: len(rows)]


def pooled(one: Part, two: Part) -> Part:
    return Part(
        name=POOLED,
        gold=np.concatenate([one.gold, two.gold]),
        groups=[f"{part.name} {group}" for part in (one, two) for group in part.groups],
        level=np.concatenate([one.level, two.level]),
        mass=np.concatenate([one.mass, two.mass]),
        beside={name: np.concatenate([one.beside[name], two.beside[name]]) for name in one.beside},
        failed=one.failed + two.failed,
    )


def _shown(value: float | None, interval: Interval) -> str:
    ends = "–" if interval.low is None else f"{interval.low:.3f}, {interval.high:.3f}"
    return "–" if value is None else f"{value:.3f} [{ends}]"


def table_row(part: Part, n_resamples: int) -> list[str]:
    """Judge, what stands beside it and the differences, with intervals by question; calibrated MAE out of fold where graded."""
    everything = np.arange(len(part.gold))
    judge = part.statistic(part.level)
    shown = [_shown(judge(everything), bootstrap(judge, part.groups, n_resamples=n_resamples, rng=0))]
    for scores in part.beside.values():
        other = part.statistic(scores)

        def difference(rows: NDArray[np.int64], other: Statistic = other) -> float | None:
            one, two = judge(rows), other(rows)
            return None if one is None or two is None else one - two

        shown += [
            _shown(statistic(everything), bootstrap(statistic, part.groups, n_resamples=n_resamples, rng=0))
            for statistic in (other, difference)
        ]
    error = "–"
    if part.graded:
        cross = cross_fit(part.level / 4, part.gold, calibrator=Calibrator(score_range=(0, 1)), groups=part.groups, rng=0)
        ours, blind = (np.abs(guess - part.gold).mean() for guess in (cross.median, cross.constant))
        error = f"{ours:.3f} / {blind:.3f} / {'yes' if signal(cross, groups=part.groups).has_signal else 'no'}"
    size = f"{len(part.gold)} ({len(set(part.groups))})" + (f", {part.failed} failed" if part.failed else "")
    return [part.name, "Spearman" if part.graded else "AUC", size, *shown, error, f"{part.mass.mean():.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="the base model's GGUF file; fetched where not given")
    parser.add_argument("--rows", type=int, help="of each set so many rows, in whole questions drawn at random; all if not given")
    parser.add_argument("--only", nargs="+", metavar="SET", help="these sets alone")
    parser.add_argument("--torch", type=Path, metavar="ADAPTER", help="grade with torch and this adapter, not through isograde")
    parser.add_argument(
        "--cosine", type=Path, metavar="NPZ", help="beside the judge, an embedding model's cosine, kept in this file"
    )
    parser.add_argument(
        "--validation", action="store_true", help="the second run's validation rows instead of the parts kept apart"
    )
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--out", type=Path, required=True, help="JSONL file of the grades; goes on where it ends")
    args = parser.parse_args()
    parts = {}
    with ExitStack() as stack:
        if args.torch is None:
            grader = through_isograde(stack.enter_context(Judge(args.model, rubric="answer_correctness")))
        else:
            from by_torch import TorchGrader

            grader = TorchGrader(args.model or default_weights(), args.torch)
        for name, whole in (validation_rows() if args.validation else evaluation_rows()).items():
            if args.only and name not in args.only:
                continue
            rows = drawn(whole, args.rows)
            graded = grade(grader, name, rows, args.out)
            at = [i for i, found in enumerate(graded) if found is not None]
            answered = [rows[i] for i in at]
            level, mass = np.array([graded[i] for i in at], dtype=np.float64).T
            beside = {"token-F1": np.array([token_f1(row["expected"], row["output"]) for row in answered])}
            if args.cosine is not None:
                beside["cosine"] = cosines(name, rows, args.cosine)[at]
            parts[name] = Part(
                name=name,
                gold=gold_levels(answered),
                groups=[row["group"] for row in answered],
                level=level,
                mass=mass,
                beside=beside,
                failed=len(rows) - len(at),
            )
    if parts.keys() >= set(POOLED_FROM):
        parts[POOLED] = pooled(*(parts[name] for name in POOLED_FROM))
    beside = [column for name in next(iter(parts.values())).beside for column in (name, f"judge − {name}")]
    header = ["set", "measure", "rows (questions)", "judge", *beside, "MAE calibrated / constant / signal", "mass"]
    print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}", flush=True)
    for part in parts.values():
        print(f"| {' | '.join(table_row(part, args.resamples))} |", flush=True)


if __name__ == "__main__":
    main()
