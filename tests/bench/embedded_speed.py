"""The embedded backend against the same requests sent straight to the same llama.cpp.

    python tests/bench/embedded_speed.py [--items 300] [--pairs 3]

Two ratios. Tokens: what llama.cpp evaluated ÷ the items' own tokens (prompt less the rubric's prefix); the rubric itself, which
is computed once a slot, stands apart. Speed: items a second through ``EmbeddedBackend.ask`` and ``read_response`` ÷ those of the
same token ids through ``xllamacpp.Server.handle_completions`` from as many threads; chunk by chunk in turn on one loaded model,
so that whatever else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from isograde.backends.base import Reply
from isograde.backends.embedded import _N_PROBS, EmbeddedBackend, _alternate, _completion
from isograde.logprobs import read_response
from isograde.prompt import Prompt, is_blank, render
from isograde.records import Item
from isograde.rubric import load_rubric, shipped_path

ROOT = Path(__file__).resolve().parents[2]
SAF = Path(os.environ.get("ISOGRADE_SHARED", ROOT.parent / "shared")) / "data" / "saf2_en.jsonl.gz"
CHUNK = 10


def rows(n: int) -> list[dict[str, Any]]:
    """Human-graded answers, or the demo's where those are missing."""
    if SAF.is_file():
        text = gzip.decompress(SAF.read_bytes()).decode()
    else:
        text = shipped_path("calibration", "demo.jsonl").read_text(encoding="utf-8")
    return [row for row in map(json.loads, text.split("\n")[:-1]) if not is_blank(row["output"])][:n]


def cpu() -> float:
    """Seconds of processor time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def timed(work: Callable[[], list[Any]]) -> tuple[float, float, list[Any]]:
    """Seconds on the wall, seconds of processor, results."""
    wall, processor = time.perf_counter(), cpu()
    results = work()
    return time.perf_counter() - wall, cpu() - processor, results


def main() -> None:
    """Print both ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=300)
    parser.add_argument("--pairs", type=int, default=3, help="times that the items are run each way")
    parser.add_argument("--slots", type=int, default=1)
    asked = parser.parse_args()
    rubric = load_rubric("answer_correctness")
    prompts = [
        render(rubric, Item(input=row["input"], output=row["output"], expected=row["expected"])) for row in rows(asked.items)
    ]
    backend = EmbeddedBackend(n_slots=asked.slots)
    framer = backend._framer
    with ThreadPoolExecutor(backend.concurrency) as pool, asyncio.Runner() as runner:

        def through(chunk: list[Prompt]) -> list[Any]:
            async def whole() -> list[Any]:
                replies = await asyncio.gather(*(backend.ask(prompt, rubric.labels) for prompt in chunk))
                return [(reply, read_response(reply.body, rubric.labels)) for reply in replies if isinstance(reply, Reply)]

            return runner.run(whole())

        def straight(requests: list[dict[str, Any]]) -> list[Any]:
            return list(pool.map(framer.llama.complete, requests))

        framed = [framer.framed(prompt, rubric.labels) for prompt in prompts]
        requests = [_completion(each, _N_PROBS) for each in framed]
        prefix = len(framer._frame(prompts[0].system, _alternate(prompts[0])[0], rubric.labels).runs[0])
        through(prompts[:1])  # computes the rubric
        walls, processors, evaluated = [], [], 0
        for pair in range(asked.pairs):
            seconds = {"through": [0.0, 0.0], "straight": [0.0, 0.0]}
            for start in range(0, len(prompts), CHUNK):
                ways: list[tuple[str, Callable[[], list[Any]]]] = [
                    ("through", lambda start=start: through(prompts[start : start + CHUNK])),
                    ("straight", lambda start=start: straight(requests[start : start + CHUNK])),
                ]
                ways = ways if (pair + start // CHUNK) % 2 == 0 else ways[::-1]
                # Each way finds the same prompt in the cache
                for name, work in ways:
                    straight([{**requests[(start + 5 * CHUNK) % len(requests)], "n_probs": 1}])
                    wall, processor, results = timed(work)
                    seconds[name][0] += wall
                    seconds[name][1] += processor
                    if name == "through":
                        evaluated += sum(reply.usage.input_tokens - reply.usage.cached_tokens for reply, _ in results)
            walls.append(seconds["straight"][0] / seconds["through"][0])
            processors.append(seconds["straight"][1] / seconds["through"][1])
            (wall, processor), (bare_wall, bare_processor) = seconds["through"], seconds["straight"]
            print(f"run {pair + 1}: {len(prompts)} items, seconds (cpu): through {wall:.1f} ({processor:.1f}), ", end="")
            print(f"straight {bare_wall:.1f} ({bare_processor:.1f})", flush=True)
    own = sum(len(each.ids) - prefix for each in framed)
    print(f"tokens: {prefix} of the rubric once a slot, {own / len(framed):.0f} of its own an item")
    print(f"evaluated ÷ own: {evaluated / own / asked.pairs:.3f} (at most 1.1; below 1 where neighbours share a question)")
    speed, work = statistics.median(walls), statistics.median(processors)
    print(f"items a second, through ÷ straight: {speed:.3f} (wall; at least 0.9), {work:.3f} (cpu)")
    asyncio.run(backend.aclose())


if __name__ == "__main__":
    main()
