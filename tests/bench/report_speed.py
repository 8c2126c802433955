"""Reports on 100,000 rows with texts, metadata and three raters: seconds and HTML size.

Run from the repository root; about a minute:

    python tests/bench/report_speed.py
"""

from __future__ import annotations

import resource
import time

import numpy as np

from isograde.datasets import Row
from isograde.records import Grade, Item, LevelDistribution
from isograde.report import calibration_report, run_report

N = 100_000
LABELS = tuple("01234")


def graded(n):
    """Grades of a noisy judge, and the gold behind them."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 5, n).astype(float)
    seen = np.clip(gold + rng.normal(0, 1, n), 0, 4)
    weights = np.exp(-((np.arange(5) - seen[:, np.newaxis]) ** 2))
    table = (weights / weights.sum(axis=1, keepdims=True)).tolist()
    raters = np.clip(gold[:, np.newaxis] + rng.integers(-1, 2, (n, 3)), 0, 4).tolist()
    grades = []
    for i, p in enumerate(table):
        item = Item(
            id=f"item-{i}",
            group=f"question-{i // 4}",
            input=f"Question {i // 4}? " * 20,
            output=f"Answer {i}. " * 40,
            expected="Reference. " * 40,
            metadata={"system": f"system {i % 7}", "language": "en" if i % 3 else "de", "length": i % 997},
        )
        level = max(range(5), key=p.__getitem__)
        score = sum(k * q for k, q in enumerate(p)) / 4
        grades.append(
            Grade(
                score=score,
                label=f"{4 * score:.1f} / 4",
                level=level,
                probabilities=dict(zip(LABELS, p, strict=True)),
                confidence=max(p),
                passed=score >= 0.75,
                distribution=LevelDistribution(labels=LABELS, probabilities=tuple(p), observed_mass=1.0),
                rubric="answer_correctness",
                rubric_fingerprint="0" * 16,
                prompt_fingerprint="1" * 16,
                model="a-judge",
                method="answer_token",
                item=item,
            )
        )
    return grades, gold.tolist(), raters


def main():
    """Print seconds and sizes."""
    grades, gold, raters = graded(N)
    start = time.perf_counter()
    report = calibration_report(grades, gold, raters=raters)
    made = time.perf_counter()
    html = report.to_html()
    done = time.perf_counter()
    print(f"calibration report on {N:,} rows: {made - start:.1f} s + HTML {done - made:.1f} s (limit 60 s in all)")
    print(f"HTML {len(html.encode()) / 1e6:.2f} MB (limit 5), JSON {len(report.to_json()) / 1e6:.2f} MB")
    rows = ((Row(item=grade.item, index=i), grade) for i, grade in enumerate(grades))
    start = time.perf_counter()
    html = run_report(rows, threshold=0.6).to_html()
    print(f"run report on {N:,} rows: {time.perf_counter() - start:.1f} s, HTML {len(html.encode()) / 1e6:.2f} MB")
    print(f"peak memory of the process, rows included: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


if __name__ == "__main__":
    main()
