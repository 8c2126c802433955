"""What issue «Under fire» promises, in full: faults, kills, and what the store and the pace cost.

    python tests/bench/under_fire.py faults [--items 2000] [--seeds 3] [--rate 0.3]
    python tests/bench/under_fire.py kills [--items 2000] [--kills 5] [--seed 0]
    python tests/bench/under_fire.py cost [--items 2000] [--concurrency 64] [--pairs 10]

``faults``: every row must end as the right grade or as a truthful status. ``kills``: five times kill -9 at random moments, then the
same command; the output must be that of an undisturbed run, and nothing that was on file asked again. ``cost``: items a second with
the store and the pace, against the same run without them, in turn; on a machine that does other work too, processor time is the
steadier of the two.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "bench")]

from client_overhead import BASE_URL, PORT, item  # noqa: E402 - found by the path above

from isograde import Judge  # noqa: E402
from isograde.backends import wire  # noqa: E402
from isograde.datasets import read_rows  # noqa: E402
from isograde.runs.results import ResultWriter  # noqa: E402
from isograde.runs.score import score  # noqa: E402
from servers.fault import TRANSIENT, FaultServer  # noqa: E402
from servers.under_fire import command, grades_of, items, killed_run, verified  # noqa: E402

CONCURRENCY = 32


def faults(folder: Path, given: argparse.Namespace) -> None:
    """Grade many rows at a high fault rate, by several seeds; once with faults that pass, once with some that stay."""
    rows = items(given.items)
    for seed in range(given.seeds):
        for permanent in (0.0, 0.05):
            out = folder / f"{seed}-{permanent}.jsonl"
            behaviour: dict[str, Any] = {"seed": seed, "rate": given.rate, "permanent": permanent, "latency": (0.0, 0.02)}
            with FaultServer(**behaviour) as server:
                began = time.perf_counter()
                with Judge(model="fault-1", base_url=server.base_url, timeout=2, concurrency=CONCURRENCY) as judge:
                    with ResultWriter(out, {judge.rubric.name: judge.rubric.labels}) as writer:
                        score(read_rows(rows), [judge], writer=writer)
                seconds = time.perf_counter() - began
                found = verified(rows, grades_of(out), server)
                n_faults, n_asked = sum(server.played.values()), sum(server.asked.values())
            possible = given.items - found["truthful"]
            print(
                f"seed {seed}, {permanent:.0%} that stay: {n_asked} requests, {n_faults} faults ({n_faults / n_asked:.1%}, "
                f"{len(TRANSIENT)} kinds that pass); right grade {found['graded']}, truthful status {found['truthful']}, given up after "
                f"all tries {found['gave_up']}; graded of those that could be {found['graded'] / possible:.2%}; lost, doubled, "
                f"wrong row, zeros: 0; {seconds:.0f} s",
                flush=True,
            )


def kills(folder: Path, given: argparse.Namespace) -> None:
    """Kill a run again and again, and compare."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in items(given.items)), encoding="utf-8")
    quick = [name for name in TRANSIENT if name not in {"hang", "drip", "too_fast_dated"}]
    with FaultServer(seed=given.seed, rate=given.rate, faults=quick, most=4, latency=(0.0, 0.02)) as server:
        out, store = folder / "grades.jsonl", folder / "store.sqlite"
        call = command(path, out, server, store, "--concurrency", str(CONCURRENCY))
        twice = killed_run(call, out, store, server, kills=given.kills, seed=given.seed, concurrency=CONCURRENCY)
        verified(items(given.items), grades_of(out), server)
        asked = sum(server.asked.values())
        whole = folder / "whole.jsonl"
        subprocess.run(command(path, whole, server, store), check=True, capture_output=True)
        assert whole.read_bytes() == out.read_bytes(), "not what an undisturbed run writes"
        assert sum(server.asked.values()) == asked, "something on file was asked again"
        anew = folder / "anew.jsonl"
        subprocess.run(command(path, anew, server, store, "--no-store"), check=True, capture_output=True)
        timeless = [[{**line, "latency_s": None} for line in grades_of(each)] for each in (anew, out)]
        assert timeless[0] == timeless[1], "not what a run without a store writes"
    print(
        f"{given.kills} kills in {given.items} rows: output byte-identical to an undisturbed run's; nothing on file was asked again; "
        f"{twice} answers that were under way at a kill were asked twice (at most {given.kills} × {CONCURRENCY})"
    )


class NoPace:
    """Lets everything through."""

    async def enter(self) -> int:
        return 0

    def leave(self, turn: int, *, faster: bool = False, slower: bool = False) -> None:
        pass


def run_once(path: Path, out: Path, concurrency: int, store: Path | None) -> tuple[float, float]:
    """Seconds and processor seconds of a whole run."""
    began, used = time.perf_counter(), time.process_time()
    with Judge(model="stub-1", base_url=BASE_URL, concurrency=concurrency, store=store) as judge:
        with ResultWriter(out, {judge.rubric.name: judge.rubric.labels}, force=True) as writer:
            [summary] = score(read_rows(path), [judge], writer=writer)
    assert (summary.n_failed, summary.n_stored) == (0, 0)
    return time.perf_counter() - began, time.process_time() - used


def cost(folder: Path, given: argparse.Namespace) -> None:
    """Compare runs with and without store and pace."""
    pace = wire.Pace
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(item(i)) + "\n" for i in range(given.items)), encoding="utf-8")
    stub = subprocess.Popen([sys.executable, str(TESTS / "servers" / "stub.py"), "--port", str(PORT)])
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{BASE_URL}/models", timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        ratios: list[tuple[float, float]] = []
        for pair in range(given.pairs + 1):
            wire.Pace = NoPace
            plain = run_once(path, folder / "plain.jsonl", given.concurrency, None)
            wire.Pace = pace
            full = run_once(path, folder / "full.jsonl", given.concurrency, folder / f"{pair}.sqlite")
            if pair:  # the first warms both
                ratios.append((plain[0] / full[0], plain[1] / full[1]))
                print(
                    f"without {given.items / plain[0]:5.0f} items/s   with store and pace {given.items / full[0]:5.0f} items/s   "
                    f"throughput kept: {ratios[-1][0]:.3f} by the clock, {ratios[-1][1]:.3f} by processor time",
                    flush=True,
                )
        clock, processor = (statistics.median(each) for each in zip(*ratios, strict=True))
        print(f"median of {len(ratios)}: cost {1 - clock:.1%} by the clock, {1 - processor:.1%} by processor time")
    finally:
        stub.terminate()


def main() -> None:
    """Run one of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["faults", "kills", "cost"])
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        {"faults": faults, "kills": kills, "cost": cost}[given.what](Path(folder), given)


if __name__ == "__main__":
    main()
