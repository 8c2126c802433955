"""What each signal is worth on human-graded sets of ../shared/data, with the embedded judge: the table of a calibration report.

Run from the repository root; an hour or two on two cores, and it goes on where it was stopped:

    python tests/bench/signal_table.py --keep FOLDER [--rows 500] [--sets saf2_en,evouna_nq,scientsbank_3way] [--trained-on]

Rows are those that the embedded judge's adapter was not trained on (SAF: unseen questions; EVOUNA: the 400 questions kept apart;
SciEntsBank: unseen domains), a row a question in turn, in the order of a hash. ``--trained-on`` takes them from the whole set: it
favours the rubric, whose adapter has seen the answers' labels, and has many more questions of SAF. ``FOLDER`` keeps what was
graded, for this version of isograde alone.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import pickle
import sys
from collections import Counter
from pathlib import Path

from isograde import Item, Judge
from isograde.correctness import AnswerCorrectness, CorrectnessFailure
from isograde.datasets import read_rows
from isograde.records import GradeFailure
from isograde.report.markdown import signals_markdown
from isograde.runs.signals import measured, signals_of, table_of

SHARED = Path(os.environ.get("ISOGRADE_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data"
SIGNALS = ("rubric", "claim_f1", "precision", "recall", "similarity")
UNSEEN = {"saf2_en": "unseen_questions", "scientsbank_3way": "test-unseen-domains"}
CHUNK = 10  # rows between two writes


def place(group):
    """Where a question stands in an order that has nothing to do with it."""
    return hashlib.sha256(group.encode()).hexdigest()


def chosen(name, n, *, trained_on):
    """Rows of a set, those of one question next to each other so that they share what was read of it; how many there are."""
    with gzip.open(SHARED / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["input"] and row["output"] and row["expected"]]
    if not trained_on:
        rows = [row for row in rows if row.get("split") == UNSEEN.get(name)]
    if name == "evouna_nq" and not trained_on:
        kept = set(sorted({row["group"] for row in rows}, key=place)[:400])
        rows = [row for row in rows if row["group"] in kept]
    turns = Counter()
    ordered = []
    for row in rows:
        ordered.append((turns[row["group"]], place(row["group"]), row))
        turns[row["group"]] += 1
    ordered.sort(key=lambda each: each[:2])
    taken = sorted((row for *_, row in ordered[:n]), key=lambda row: row["group"])
    return list(read_rows(taken, gold="gold")), len(rows)


def stored(path):
    """What was graded before, by row."""
    found = {}
    if path.exists():
        with path.open("rb") as file:
            while True:
                try:
                    key, grade, result = pickle.load(file)  # noqa: S301 - this script's own file
                except EOFError:
                    break
                if not isinstance(result.item, Item) or result.item.id != key:
                    raise SystemExit(f"{path} was written by another version of isograde; take another --keep")
                found[key] = (grade, result)
    return found


def graded(metric, rows, path):
    """Grade what is not stored yet; all grades and results, in the order of the rows."""
    done = stored(path)
    waiting = [row for row in rows if row.key not in done]
    for start in range(0, len(waiting), CHUNK):
        own = waiting[start : start + CHUNK]
        grades, results = measured(metric, own)
        with path.open("ab") as file:
            for row, *pair in zip(own, grades, results, strict=True):
                pickle.dump((row.key, *pair), file)
                done[row.key] = pair
        print(f"{path.stem}: {start + len(own)} of {len(waiting)} graded", file=sys.stderr, flush=True)
    return zip(*(done[row.key] for row in rows), strict=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--sets", default="saf2_en,evouna_nq,scientsbank_3way")
    parser.add_argument("--trained-on", action="store_true")
    parser.add_argument("--keep", type=Path, required=True)
    given = parser.parse_args()
    given.keep.mkdir(parents=True, exist_ok=True)
    with AnswerCorrectness(Judge()) as metric:
        for name in given.sets.split(","):
            rows, n_there = chosen(name, given.rows, trained_on=given.trained_on)
            path = given.keep / f"{name}{'.trained_on' if given.trained_on else ''}.pickle"
            grades, results = graded(metric, rows, path)
            failed = Counter(f"{each.part}: {each.status}" for each in results if isinstance(each, CorrectnessFailure))
            failed.update(f"rubric: {each.status}" for each in grades if isinstance(each, GradeFailure))
            scored = [each for each in results if not isinstance(each, CorrectnessFailure)]
            claims = sum(len(each.response_claims) + len(each.reference_claims) for each in scored)
            rules = Counter(each.rule for each in scored if each.rule is not None)
            signals = signals_of(rows, SIGNALS, grades=grades, results=results, weights=metric.weights)
            print(f"\n# {name}\n\n{len(rows)} of {n_there:,} rows, {len({row.item.group for row in rows})} questions; ", end="")
            print(f"{claims / max(1, len(scored)):.1f} claims a row; failed: {dict(failed) or 'none'}; ", end="")
            print(f"by rule: {dict(rules) or 'none'}\n")
            print("\n\n".join(signals_markdown(table_of(rows, signals, n_levels=5))), flush=True)


if __name__ == "__main__":
    main()
