"""What the shipped adapter costs the embedded model, and how long its first grade takes with the weights in place.

    python tests/bench/adapter_cost.py [--items 60] [--pairs 5] [--starts 5]

Cost: the same requests to llama.cpp with the adapter and without, chunk by chunk in turn, on two loaded models; the ratio of
their processor times, which other work on the machine moves less than the clock. Start: a new interpreter each, from the import
of isograde to the first grade.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from typing import Any

from embedded_speed import CHUNK, rows, timed

from isograde.backends.adapters import shipped_adapter
from isograde.backends.embedded import _N_PROBS, _completion, _Framer
from isograde.backends.llama import Llama
from isograde.backends.weights import FINGERPRINT, default_weights
from isograde.prompt import render
from isograde.records import Item
from isograde.rubric import load_rubric

START = """
import resource, time
start = time.perf_counter()
from isograde import Judge
imported = time.perf_counter()
Judge().score(input="What is the capital of France?", expected="Paris", output="It is Paris.")
graded = time.perf_counter()
used = resource.getrusage(resource.RUSAGE_SELF)
print(imported - start, graded - imported, used.ru_utime + used.ru_stime)
"""


def cost(n_items: int, n_pairs: int) -> list[float]:
    """Processor time with the adapter ÷ without, one ratio a pair."""
    adapter = shipped_adapter(FINGERPRINT)
    assert adapter is not None
    path, rubric = default_weights(), load_rubric("answer_correctness")
    bare, adapted = (Llama(path, n_slots=1, n_ctx=8192, lora=lora) for lora in (None, adapter.path))
    framer = _Framer(bare)
    prompts = [render(rubric, Item(input=row["input"], output=row["output"], expected=row["expected"])) for row in rows(n_items)]
    requests = [_completion(framer.framed(prompt, rubric.labels), _N_PROBS) for prompt in prompts]

    def ask(llama: Llama, chunk: list[dict[str, Any]]) -> list[Any]:
        return [llama.complete(request) for request in chunk]

    ratios = []
    for pair in range(n_pairs):
        seconds = {bare: [0.0, 0.0], adapted: [0.0, 0.0]}
        for start in range(0, len(requests), CHUNK):
            turn = [bare, adapted] if (pair + start // CHUNK) % 2 == 0 else [adapted, bare]
            for llama in turn:
                ask(llama, [{**requests[(start + 5 * CHUNK) % len(requests)], "n_probs": 1}])  # each finds the same in its cache
                wall, processor, _ = timed(lambda llama=llama, start=start: ask(llama, requests[start : start + CHUNK]))
                seconds[llama][0] += wall
                seconds[llama][1] += processor
        ratios.append(seconds[adapted][1] / seconds[bare][1])
        print(f"pair {pair + 1}: seconds (cpu) with {seconds[adapted][0]:.1f} ({seconds[adapted][1]:.1f}), ", end="")
        print(f"without {seconds[bare][0]:.1f} ({seconds[bare][1]:.1f})", flush=True)
    return ratios


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--starts", type=int, default=5)
    asked = parser.parse_args()
    starts = []
    for _ in range(asked.starts):
        shown = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True).stdout
        starts.append([float(value) for value in shown.split()])
        print("start: import {:.2f} s, Judge() to first grade {:.2f} s, cpu of all {:.2f} s".format(*starts[-1]), flush=True)
    if starts:
        to_grade = statistics.median(start[1] for start in starts)
        used = statistics.median(start[2] for start in starts)
        print(
            f"start, median: {to_grade:.2f} s from Judge() to the first grade (asked: below 2), cpu with the import {used:.2f} s"
        )
    ratios = cost(asked.items, asked.pairs)
    print(f"adapter: {statistics.median(ratios):.3f} of the base model's processor time, median of pairs (asked: at most 1.15)")


if __name__ == "__main__":
    main()
