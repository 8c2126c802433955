"""A run against the fault server, and what is asked of it: used by the quick tests and by the full benchmark."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from isograde import Item, load_rubric
from isograde.prompt import render
from servers.fault import PERMANENT, FaultServer, right

__all__ = ["STATUS", "content_of", "grades_of", "items", "killed_run", "verified"]

# what the judge calls each permanent fault
STATUS = {
    "filtered": "filtered",
    "too_long": "too_long",
    "rejected": "server_error",
    "no_answer": "no_answer",
    "low_mass": "low_mass",
}
GAVE_UP = {"server_error", "timeout"}  # what a transient fault may end in, once all tries have met with one


def items(n: int) -> list[dict[str, str]]:
    """Rows that are all different."""
    return [{"id": f"row {i}", "input": f"Question {i}?", "output": f"Answer {i} – ✓ 💡", "expected": f"{i}"} for i in range(n)]


def content_of(item: dict[str, str]) -> str:
    """What the server sees of a row."""
    texts = {name: item[name] for name in ("input", "output", "expected")}
    return render(load_rubric("answer_correctness"), Item(**texts)).user


def verified(rows: list[dict[str, str]], lines: list[dict[str, Any]], server: FaultServer) -> dict[str, int]:
    """Check every line against what the server must have meant; count what the run came to."""
    assert [line["id"] for line in lines] == [row["id"] for row in rows], "a row was lost, doubled or moved"
    found = {"graded": 0, "truthful": 0, "gave_up": 0}
    for row, line in zip(rows, lines, strict=True):
        content = content_of(row)
        fault = server.fault(content, 0)
        if line["status"] == "graded":
            assert fault not in PERMANENT, (row, line)
            expected = right(content)
            whole = sum(expected.values())
            for level, p in expected.items():
                assert abs(line["probabilities"][level] - p / whole) < 1e-6, "a grade on the wrong row"
            found["graded"] += 1
            continue
        assert "score" not in line
        assert line["message"]
        if fault in PERMANENT:
            assert line["status"] == STATUS[fault], (fault, line)
            found["truthful"] += 1
        else:
            assert line["status"] in GAVE_UP, line
            found["gave_up"] += 1
    return found


def grades_of(path: Path) -> list[dict[str, Any]]:
    """Read the lines of an output."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def command(rows: Path, out: Path, server: FaultServer, store: Path, *more: str) -> list[str]:
    """The same command each time."""
    options = ["-o", str(out), "--base-url", server.base_url, "--model", "fault-1", "--store", str(store), *more]
    return [sys.executable, "-m", "isograde", "score", str(rows), *options]


def killed_run(call: list[str], out: Path, store: Path, server: FaultServer, *, kills: int, seed: int, concurrency: int) -> int:
    """Run a command, kill it at random moments, run it again until it is done; return how many answers were asked twice.

    After each kill, what is in the store and in the output is noted: none of it may be asked again.
    """
    drawn = random.Random(seed)
    n_rows = Path(call[4]).read_bytes().count(b"\n")
    for kill in range(kills):
        aim = int(n_rows * (kill + drawn.random()) / kills)  # somewhere in this part of the run
        process = subprocess.Popen(call, stderr=subprocess.DEVNULL)
        while process.poll() is None and len(server.answered) < aim:
            time.sleep(0.002)
        time.sleep(drawn.random() * 0.02)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
        written = out.read_bytes().count(b"\n") if out.exists() else 0
        n_kept = _n_kept(store)
        assert written <= n_kept, "a line was written before its answer was on file"
        # what was answered and is not on file was under way
        assert len(server.answered) - n_kept <= concurrency, (len(server.answered), n_kept)
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    twice = sum(count - 1 for count in server.answered.values())
    assert twice <= kills * concurrency
    return twice


def _n_kept(store: Path) -> int:
    """Answers on file; looked at from outside, as another process would."""
    if not store.exists():
        return 0
    connection = sqlite3.connect(store)
    try:
        return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])
    except sqlite3.OperationalError:  # it was killed before the tables were made
        return 0
    finally:
        connection.close()
