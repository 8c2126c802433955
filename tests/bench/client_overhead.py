"""Items a second of the whole way (file in, graded file out) against a bare loop of AsyncOpenAI calls with the same payload.

    python tests/bench/client_overhead.py [--items 2000] [--concurrency 64] [--pairs 5]

Both ask the same local stub, which answers at once, in turn, in one run; the ratio is taken pair by pair.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import openai

from isograde import Item, Judge
from isograde.datasets import read_rows
from isograde.prompt import render
from isograde.runs.results import ResultWriter
from isograde.runs.score import score

PORT = 8799
BASE_URL = f"http://127.0.0.1:{PORT}/v1"


def item(i: int) -> dict[str, str]:
    """An item of ordinary length."""
    return {
        "id": str(i),
        "input": f"Question {i}: when does the key that was created on 2026-09-22 with a 90-day expiry expire?",
        "output": "The key expires on December 21, 2026, ninety days after it was created. " * 3,
        "expected": "2026-12-21",
    }


async def bare(items: list[dict[str, str]], concurrency: int) -> float:
    """Seconds of a plain loop over chat.completions.create."""
    client = openai.AsyncOpenAI(base_url=BASE_URL, api_key="none")
    judge = Judge(model="stub-1", base_url=BASE_URL)
    bodies = [judge.backend.request(render(judge.rubric, Item(**each)), judge.rubric.labels) for each in items]
    extra = ("top_k", "min_p", "repetition_penalty", "chat_template_kwargs")
    waiting = iter(bodies)

    async def worker() -> None:
        for body in waiting:
            own = {name: value for name, value in body.items() if name not in extra}
            answer = await client.chat.completions.create(**own, extra_body={name: body[name] for name in extra})
            assert answer.choices[0].logprobs is not None

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(concurrency)))
    seconds = time.perf_counter() - started
    await client.close()
    judge.close()
    return seconds


def whole(path: Path, out: Path, concurrency: int) -> float:
    """Seconds of reading the file, grading it and writing the grades."""
    started = time.perf_counter()
    with Judge(model="stub-1", base_url=BASE_URL, concurrency=concurrency) as judge:
        labels = {judge.rubric.name: judge.rubric.labels}
        with ResultWriter(out, labels, force=True) as writer:
            [summary] = score(read_rows(path), [judge], writer=writer)
    assert summary.n_failed == 0
    return time.perf_counter() - started


def main() -> None:
    """Print items a second of both and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    stub = subprocess.Popen([sys.executable, str(Path(__file__).parents[1] / "servers" / "stub.py"), "--port", str(PORT)])
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"{BASE_URL}/models", timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        items = [item(i) for i in range(arguments.items)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "items.jsonl")
            path.write_text("".join(json.dumps(each) + "\n" for each in items), encoding="utf-8")
            ratios = []
            for pair in range(arguments.pairs + 1):
                plain = asyncio.run(bare(items, arguments.concurrency))
                ours = whole(path, Path(folder, "grades.jsonl"), arguments.concurrency)
                if pair:  # the first warms both
                    ratios.append(plain / ours)
                    print(
                        f"bare {len(items) / plain:6.0f} items/s   isograde {len(items) / ours:6.0f} items/s   ratio {plain / ours:.2f}"
                    )
        print(f"ratio, median of {len(ratios)}: {statistics.median(ratios):.2f} (from {min(ratios):.2f} to {max(ratios):.2f})")
    finally:
        stub.terminate()


if __name__ == "__main__":
    main()
