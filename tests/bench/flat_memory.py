"""Peak memory while a generator of a million rows flows through the judge and out to a file.

    python tests/bench/flat_memory.py [--rows 1000000]

The backend answers at once in process, so that only isograde's own bookkeeping is seen.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isograde import Judge
from isograde.backends import Reply
from isograde.datasets import read_rows
from isograde.records import Grade, GradeFailure
from isograde.runs.results import ResultWriter
from isograde.runs.score import score

TOP = [{"token": str(level), "logprob": -1.7 + 0.01 * level} for level in range(5)]
BODY = {"choices": [{"message": {"content": "4"}, "logprobs": {"content": [{**TOP[4], "top_logprobs": TOP}]}}]}


class Instant:
    """A backend that answers at once."""

    model, server, concurrency, prompt_fingerprint, methods = "instant", None, 64, "none", ("answer_token",)

    def adapter(self, _rubric: object) -> None:
        """None."""

    def caveat(self, _rubric: object) -> None:
        """None."""

    def request(self, prompt: Any, _labels: object) -> dict[str, Any]:
        """The messages."""
        return {"messages": prompt.messages()}

    async def ask(self, _prompt: object, _labels: object) -> Reply:
        """Answer."""
        return Reply(body=BODY, usage=None, latency_s=0.0)


def main() -> None:
    """Print rows, seconds and peak memory as the run goes on."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()

    def items() -> Iterator[dict[str, Any]]:
        for i in range(arguments.rows):
            yield {"input": f"question {i}", "output": "an answer of a few words", "expected": "a reference", "topic": i % 7}

    started = time.perf_counter()
    n = 0

    def on_grade(_row: object, _grade: Grade | GradeFailure) -> None:
        nonlocal n
        n += 1
        if n in {1000, 10_000, 100_000, arguments.rows}:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{n:>9,} rows  {time.perf_counter() - started:6.1f} s  peak {peak:.0f} MB", flush=True)

    judge = Judge(backend=Instant())
    with ResultWriter(Path(os.devnull), {}) as writer:
        score(read_rows(items()), [judge], writer=writer, on_grade=on_grade)


if __name__ == "__main__":
    main()
