"""A run against a server that misbehaves: the quick form of tests/bench/under_fire.py."""

import json
import signal
import subprocess
import time

import pytest

from isograde import Judge
from isograde.backends import wire
from isograde.datasets import read_rows
from isograde.runs.results import ResultWriter
from isograde.runs.score import score
from servers.fault import FaultServer
from servers.under_fire import command, grades_of, items, killed_run, verified

FAST = (
    "too_fast",
    "too_fast_bare",
    "internal",
    "overloaded",
    "bad_gateway",
    "html",
    "reset",
    "half",
    "half_json",
    "no_choices",
    "error_200",
)


def test_every_row_ends_as_its_grade_or_a_truthful_status(tmp_path, monkeypatch):
    monkeypatch.setattr(wire, "_BACKOFF_S", 0.02)
    rows = items(250)
    out = tmp_path / "grades.jsonl"
    with FaultServer(seed=1, rate=0.3, faults=(*FAST, "hang", "drip"), permanent=0.05, latency=(0, 0.01)) as server:
        with Judge(model="fault-1", base_url=server.base_url, timeout=1, max_retries=6) as judge:
            with ResultWriter(out, {judge.rubric.name: judge.rubric.labels}) as writer:
                [summary] = score(read_rows(rows), [judge], writer=writer)
        found = verified(rows, grades_of(out), server)
        assert sum(server.played.values()) > 60
    assert found["truthful"] > 5
    assert found["gave_up"] <= 1
    assert (summary.n_graded, summary.n_failed) == (found["graded"], found["truthful"] + found["gave_up"])
    # the mean is that of the graded rows alone
    graded = [line["score"] for line in grades_of(out) if line["status"] == "graded"]
    assert summary.mean_score == pytest.approx(sum(graded) / len(graded))


@pytest.fixture
def rows_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in items(100)), encoding="utf-8")
    return path


def test_killed_at_random_it_ends_as_if_undisturbed(tmp_path, rows_file):
    behaviour = {"seed": 2, "rate": 0.2, "faults": FAST, "most": 3, "latency": (0.0, 0.03)}
    with FaultServer(**behaviour) as server:
        out, store = tmp_path / "grades.jsonl", tmp_path / "store.sqlite"
        call = command(rows_file, out, server, store, "--concurrency", "8")
        killed_run(call, out, store, server, kills=2, seed=2, concurrency=8)
        killed = out.read_bytes()
        verified(items(100), grades_of(out), server)
        # what an undisturbed run writes, to the last byte: seconds and tokens are those of the answers on file
        whole = tmp_path / "whole.jsonl"
        asked = sum(server.asked.values())
        subprocess.run(command(rows_file, whole, server, store), check=True, capture_output=True)
        assert whole.read_bytes() == killed
        assert sum(server.asked.values()) == asked
        # and, but for the seconds, what one without any store writes
        subprocess.run(command(rows_file, tmp_path / "anew.jsonl", server, store, "--no-store"), check=True, capture_output=True)
        anew, lines = grades_of(tmp_path / "anew.jsonl"), grades_of(out)
        assert [{**line, "latency_s": None} for line in anew] == [{**line, "latency_s": None} for line in lines]


@pytest.mark.parametrize("what", ["score", "calibrate"])
def test_an_interrupt_drains_what_is_under_way(tmp_path, rows_file, what):
    rows_file.write_text("".join(json.dumps({**row, "gold": i % 5}) + "\n" for i, row in enumerate(items(60))), encoding="utf-8")
    with FaultServer(latency=(0.08, 0.1)) as server:
        store = tmp_path / "store.sqlite"
        call = command(
            rows_file, tmp_path / ("out.jsonl" if what == "score" else "out.json"), server, store, "--concurrency", "4"
        )
        call[3] = what
        with subprocess.Popen(call, stderr=subprocess.PIPE, text=True) as process:
            while len(server.answered) < 10:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[1]
        assert process.returncode == 130, said
        assert "finishing what is under way" in said
        assert "graded, 0 failed" in said  # the summary
        assert said.endswith("isograde: interrupted\n")
        # everything that the server answered is on file, and nothing was begun that was not answered
        n = len(server.answered)
        assert sum(server.asked.values()) == n < 60
        if what == "score":
            assert [line["id"] for line in grades_of(tmp_path / "out.jsonl")] == [f"row {i}" for i in range(n)]
            assert f"{n} finished rows are in" in said
        else:
            assert f"{n} of 60 labelled rows are graded, nothing is fitted yet; their answers are in {store}" in said
            assert not (tmp_path / "out.json").exists()
        subprocess.run(call, check=False, capture_output=True, timeout=120)
        assert all(count == 1 for count in server.asked.values())
        assert len(server.answered) == 60
