"""Every snippet of the README runs, against a stub in place of the servers that it names."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from isograde import load_rubric
from servers.stub import StubServer, completion

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def highest_level(request):
    labels = (
        re.search(r"Reply with one of (.*) and nothing else", request["messages"][0]["content"])[1]
        .replace(" or ", ", ")
        .split(", ")
    )
    return completion({label: 0.9 if label == labels[-1] else 0.01 for label in labels})


@pytest.fixture
def environment(tmp_path):
    (tmp_path / "answers.jsonl").write_text(json.dumps({"input": "q", "output": "a", "expected": "b"}) + "\n", encoding="utf-8")
    labelled = [{"id": str(i), "input": "q", "output": "a", "expected": "b", "gold": i % 5} for i in range(20)]
    (tmp_path / "labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labelled), encoding="utf-8")
    (tmp_path / "politeness.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    with StubServer(highest_level) as server:
        yield {
            **os.environ,
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "sk-none",
            "STUB": server.base_url,
            "PYTHONUTF8": "1",
        }


@pytest.mark.parametrize("code", blocks("python"))
def test_python(code, tmp_path, environment):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr


ISOGRADE = [line.split("  #")[0] for block in blocks("bash") for line in block.splitlines() if line.startswith("isograde ")]


@pytest.mark.parametrize(
    "line",
    [line for line in ISOGRADE if "--calibration" not in line and ("--model" in line or " check " in line or " sample " in line)],
)
def test_command(line, tmp_path, environment):
    line = line.replace("http://localhost:8000/v1", environment["STUB"])
    arguments = shlex.split(line)[1:]
    done = subprocess.run(
        [sys.executable, "-m", "isograde", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_rubric(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(blocks("yaml")[0], encoding="utf-8")
    assert load_rubric(path).labels == ("1", "2", "3")


def test_there_are_snippets():
    assert len(blocks("python")) >= 3
    assert len(ISOGRADE) >= 4
