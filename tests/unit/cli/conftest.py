"""The command line, run as a user runs it."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def isograde():
    """Run ``isograde`` in a process of its own, with no key for OpenAI around."""

    def call(*arguments, cwd, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI")}
        return subprocess.run(
            [sys.executable, "-m", "isograde", *map(str, arguments)],
            cwd=cwd,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
            env={**clean, "COLUMNS": "110", "PYTHONUTF8": "1", **environment},
        )

    return call
