"""Fixtures that several parts of the suite share."""

import os
import signal
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job; commands that are interrupted would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, str(ROOT / "tests"))  # tests/servers is imported as servers, by tests and by benchmarks


@pytest.fixture(autouse=True)
def _own_store(tmp_path, monkeypatch):
    """No test looks answers up that another one, or the developer, has paid for."""
    monkeypatch.setenv("ISOGRADE_STORE", str(tmp_path / "answers.sqlite"))


@pytest.fixture
def shared_data():
    """The folder of human-graded sets, which is no part of the project."""
    folder = Path(os.environ.get("ISOGRADE_SHARED", ROOT.parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip(f"human-graded sets are not at {folder}; set ISOGRADE_SHARED")
    return folder
