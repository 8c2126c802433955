"""One run at a time writes a file, and a run that was killed stands in nobody's way."""

import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from isograde import GradeFailure, UserError
from isograde.cli.main import cli
from isograde.datasets import read_rows
from isograde.runs.lock import locked
from isograde.runs.results import line_of, line_text
from isograde.runs.resume import begun, mended

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="files are not locked there")

HOLD = """
import sys
from pathlib import Path
from isograde.runs.lock import locked

with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def other(tmp_path):
    """Another process that writes grades.jsonl."""
    arguments = [sys.executable, "-c", HOLD, str(tmp_path / "grades.jsonl")]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_second_of_two_processes_is_refused(other, tmp_path):
    out = tmp_path / "grades.jsonl"
    with pytest.raises(UserError) as caught, locked(out):
        pass
    assert str(caught.value) == f"another run is writing {out}; wait for it, or give another name"
    link = tmp_path / "link.jsonl"
    link.symlink_to(out)
    with pytest.raises(UserError, match="another run is writing"), locked(link):
        pass
    other.communicate("\n")
    assert not out.exists()  # nothing was written
    with locked(out):
        assert out.exists()
    assert not out.exists()


@pytest.mark.parametrize("options", [[], ["--force"], ["--metric", "claim_f1", "--weights", "1,0"]])
def test_score_says_so_before_it_asks(other, tmp_path, options):
    out, rows = tmp_path / "grades.jsonl", tmp_path / "rows.jsonl"
    rows.write_text('{"input": "q", "output": "a", "expected": "e"}\n', encoding="utf-8")
    server = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--no-store"]
    done = CliRunner().invoke(cli, ["score", str(rows), "-o", str(out), *server, *options])
    assert isinstance(done.exception, UserError)  # isograde makes exit code 2 of it
    assert f"another run is writing {out}" in str(done.exception)
    assert out.read_bytes() == b""


def test_a_killed_run_leaves_no_lock(other, tmp_path):
    other.send_signal(signal.SIGKILL)
    other.wait()
    with locked(tmp_path / "grades.jsonl") as lock:
        assert begun(tmp_path / "grades.jsonl", lock=lock) is None


def test_a_file_that_is_put_in_the_place_of_another_is_held_too(tmp_path):
    out = tmp_path / "grades.jsonl"
    (row,) = read_rows([{"id": "a", "output": "x"}])
    failure = GradeFailure(status="timeout", message="slow", rubric="r")
    out.write_text(line_text(line_of(row, failure)), encoding="utf-8")
    before = out.stat().st_ino
    with locked(out) as lock:
        mended(begun(out, lock=lock), {0: (row, failure)})
        assert out.stat().st_ino != before
        asked = subprocess.run(
            [sys.executable, "-c", HOLD, str(out)], input="\n", capture_output=True, text=True, check=False, timeout=60
        )
    assert "another run is writing" in asked.stderr
    with locked(out):
        assert out.stat().st_size


def test_what_is_no_file_is_not_locked(tmp_path):
    for path in (None, tmp_path, tmp_path / "nowhere" / "grades.jsonl"):
        with locked(path):
            pass
    assert list(tmp_path.iterdir()) == []
