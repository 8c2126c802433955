"""isograde calibrate --signals, from files to exit codes."""

import json

import numpy as np
import pytest

from servers.scripted import ScriptedModel, fenced
from servers.stub import StubServer, completion


def by_level(request):
    """Sure of the level that the answer names."""
    said = request["messages"][1]["content"].split("<answer>\nlevel ")[1][0]
    return completion({said: 0.96, **{other: 0.01 for other in "01234" if other != said}})


@pytest.fixture
def server():
    with StubServer(by_level) as running:
        yield running


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for i in range(150):
        gold = i % 5
        seen = int(np.clip(gold + rng.integers(-1, 2), 0, 4))
        other = float(np.clip(gold / 4 + rng.normal(0, 0.2), 0, 1))
        rows.append(
            {"id": str(i), "input": "q 🎈", "output": f"level {seen}", "expected": "e", "gold": gold, "group": f"g{i // 3}"}
            | {"ragas": None if i == 7 else other, "percent": 100 * other}
            | {"b": float(rng.random())}
        )
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (tmp_path / "labelled.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_judge_and_a_column(isograde, folder, server):
    judged = ["--base-url", server.base_url, "--model", "m"]
    done = isograde(
        "calibrate", "labelled.jsonl", "--signals", "rubric,ragas", "-o", "c.json", "--report", "r.md", *judged, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    # what is written is the index, so its sentence opens the screen; then comes the first signal
    assert " ".join(done.stdout.split()).startswith("Use the index: it is nearer to the humans than rubric")
    assert "\nrubric alone:" in done.stdout
    assert "1 row left out for want of a signal" in " ".join(done.stdout.split())
    assert "## What is each signal worth?" in (folder / "r.md").read_text(encoding="utf-8")
    written = json.loads((folder / "c.json").read_text(encoding="utf-8"))
    assert written["kind"] == "isograde.signal_calibrator"
    assert set(written["weights"]) == {"rubric", "ragas"}
    assert written["calibrator"]["provenance"]["judge"]["model"] == "m"
    # Gold items are kept for a calibrator of the judge alone.
    assert not (folder / "c.gold.jsonl").exists()
    # A run that has the grade alone is refused, in one line.
    done = isograde("score", "labelled.jsonl", "-o", "g.jsonl", "--calibration", "c.json", *judged, cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "c.json: this calibrator is of several signals" in done.stderr
    # Grades that are there give the same index.
    assert isograde("score", "labelled.jsonl", "-o", "g.jsonl", *judged, cwd=folder).returncode == 0
    again = ["--signals", "rubric,ragas", "--grades", "g.jsonl", "-o", "joined.json"]
    assert isograde("calibrate", "labelled.jsonl", *again, cwd=folder).returncode == 0
    assert (folder / "joined.json").read_text(encoding="utf-8") == (folder / "c.json").read_text(encoding="utf-8")


def test_one_row(isograde, folder):
    (folder / "one.csv").write_text("input,output,expected,gold,a,b\nq,🙂,e,3,0.5,0.25\n", encoding="utf-8")
    done = isograde("calibrate", "one.csv", "--signals", "a,b", "-o", "c.json", "--report", "r.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Not known: 1 row with every signal in 1 group" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--signals", "ragas"], 2, "name two signals or more"),
        (["--signals", "ragas,ragas"], 2, "'ragas' stands twice"),
        (["--signals", "ragas,nope"], 2, "'nope' is neither one of rubric, claim_f1"),
        (["--signals", "ragas,percent"], 2, "column 'percent': holds"),
        (["--signals", "ragas,percent", "--score-column", "ragas"], 2, "--signals takes columns too"),
        (["--signals", "rubric,claim_f1", "--grades", "g.jsonl"], 2, "leave --grades out"),
    ],
)
def test_exit_codes(isograde, folder, options, code, said):
    done = isograde("calibrate", "labelled.jsonl", "-o", "c.json", *options, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "c.json").exists()


@pytest.mark.parametrize(("most", "code"), [("1", 0), ("0.01", 1)])
def test_the_gate_is_on_the_index(isograde, folder, most, code):
    done = isograde("calibrate", "labelled.jsonl", "--signals", "ragas,b", "--max-mae", most, cwd=folder)
    assert done.returncode == code, done.stderr


class Grader(ScriptedModel):
    """Judges an answer by the level that it names, and its one claim by whether that level is 2 or more."""

    def _rubric(self, request):
        said = fenced(request, "answer").removeprefix("level ")
        return completion({said: 0.96, **{other: 0.01 for other in "01234" if other != said}})

    def _support(self, request):
        p = 0.9 if any(f"level {good}" in str(request) for good in "234") else 0.1
        return completion({"1": p, "0": 1 - p})


def test_claims_and_similarity_at_a_server(isograde, folder):
    with StubServer(Grader()) as server:
        judged = ["--base-url", server.base_url, "--model", "m", "--no-store"]
        embedded = [*judged, "--embeddings-model", "e"]
        signals = ["--signals", "rubric,claim_f1,similarity"]
        done = isograde("calibrate", "labelled.jsonl", *signals, "-o", "c.json", *judged, cwd=folder)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "similarity" in done.stderr
        assert "--embeddings-model" in done.stderr
        done = isograde("calibrate", "labelled.jsonl", *signals, "-o", "c.json", "--report", "r.json", *embedded, cwd=folder)
        assert done.returncode == 0, done.stderr
        table = json.loads((folder / "r.json").read_text(encoding="utf-8"))["signal_table"]
        assert [row["name"] for row in table["rows"]] == ["rubric", "claim_f1", "similarity", "0.75/0.25 blend", "index"]
        assert all(row["tokens"] is not None and row["seconds"] is not None for row in table["rows"])
        written = json.loads((folder / "c.json").read_text(encoding="utf-8"))
        assert written["settings"] == {"verdicts": "logprobs", "recall_over": "reference", "beta": "1", "embeddings": "e"}
        # The run that has the signals takes it.
        claims = ["labelled.jsonl", "--metric", "claim_f1", "--calibration", "c.json", "-o"]
        done = isograde("score", *claims, "f.jsonl", *embedded, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert "calibrated" in done.stderr
        lines = [json.loads(line) for line in (folder / "f.jsonl").read_text(encoding="utf-8").splitlines()]
        assert sum(line["calibrated"] is not None for line in lines) == len(lines)
        assert isograde("score", *claims, "f.csv", *embedded, cwd=folder).returncode == 0
        # A run that makes them otherwise is refused, and so is one that lacks one of weight.
        done = isograde("score", *claims, "g.jsonl", "--beta", "2", *embedded, cwd=folder)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "beta: '1' and '2'" in done.stderr
