"""``isograde score --metric claim_f1``, as a user meets it."""

import csv
import json

import pytest

from isograde.runs.correctness_lines import CorrectnessLine, recompute
from servers.scripted import ScriptedModel
from servers.stub import StubServer

REFERENCE = ["The balance is ₹10,000.", "The rate is 3.5%."]
RESPONSE = ["The balance is ₹10,000.", "The fee is ₹400."]
ROWS = [
    {"id": "half", "question": "Terms?", "answer": " ".join(RESPONSE), "ground_truth": " ".join(REFERENCE), "gold": 2},
    {"id": "equal", "question": "q", "answer": "Paris", "ground_truth": "Paris.", "gold": 4},
    {"id": "refused", "question": "q", "answer": "I don't know.", "ground_truth": "Paris.", "gold": 0},
    {"id": "missing", "question": "q", "answer": None, "ground_truth": "Paris.", "gold": 0},
    {"id": "=evil()", "question": "😀?", "answer": "=cmd|calc", "ground_truth": "naïve 😀", "gold": 0, "topic": "🙂"},
]
MODEL = ScriptedModel({" ".join(RESPONSE): RESPONSE, " ".join(REFERENCE): REFERENCE}, [REFERENCE[0]])


@pytest.fixture
def run(isograde, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    with StubServer(MODEL, models=["judge-1"]) as server:

        def call(*arguments, file="rows.jsonl"):
            options = ("--base-url", server.base_url, "--model", "judge-1", "--metric", "claim_f1", "--no-store")
            return isograde("score", file, *options, *arguments, cwd=tmp_path)

        call.server = server
        yield call


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_file(run, tmp_path):
    done = run("-o", "out.jsonl", "--weights", "1,0", "--max-failures", "20%")
    assert done.returncode == 0, done.stderr
    half, equal, refused, missing, evil = lines(tmp_path / "out.jsonl")
    assert (half["value"], half["precision"], half["recall"], half["tp_response"], half["fn"]) == (0.5, 0.5, 0.5, 1, 1)
    assert half["rubric"]["score"] == pytest.approx(0.855)
    assert half["response_claims"][1] == {"text": RESPONSE[1], "supported": False, "probability": pytest.approx(0.02)}
    assert set(half["usage_by_part"]) == {"rubric", "claims", "verdicts"}
    assert (equal["value"], equal["identical"], equal["rubric"]) == (1.0, True, None)
    assert (refused["value"], refused["refused"], refused["recall"]) == (0.0, True, 0.0)
    assert (missing["status"], "value" in missing) == ("invalid_item", False)
    assert evil["metadata"] == {"topic": "🙂"}
    for said in (
        "5: 4 scored, 1 failed (1 invalid_item)",
        "1 identical, 1 refusal",
        "0.375 (between 0.300 and 0.500",  # (.5 + 1 + 0 + 0) ÷ 4; with the failed row at 0 and at 1 ÷ 5
        "(3 rows; 1 equal to the reference was not asked)",
        "results are in out.jsonl",
    ):
        assert said in " ".join(done.stderr.split())


def test_embeddings_at_the_server(run, tmp_path):
    done = run("-o", "out.jsonl", "--limit", "1", "--embeddings-model", "embed-1")
    assert done.returncode == 0, done.stderr
    [half] = lines(tmp_path / "out.jsonl")
    assert (half["similarity"], half["value"]) == (pytest.approx(0.72), pytest.approx(0.555))
    assert half["usage_by_part"]["similarity"]["input_tokens"] == 20
    [asked] = [request for request in run.server.requests if "input" in request]
    assert (asked["model"], asked["input"]) == ("embed-1", [" ".join(RESPONSE), " ".join(REFERENCE)])
    assert recompute(half)["value"] == pytest.approx(0.555)


def test_every_line_can_be_computed_again(run, tmp_path):
    for name, options in (
        ("a", ["--weights", "1,0"]),
        ("b", ["--weights", "1,0", "--recall-over", "response", "--beta", "2"]),
        ("c", ["--weights", "1,0", "--verdicts", "generated"]),
    ):
        assert run("-o", f"{name}.jsonl", "--max-failures", "1", *options).returncode == 0
        scored = [line for line in lines(tmp_path / f"{name}.jsonl") if line["status"] == "scored"]
        assert len(scored) == 4
        for line in scored:
            again = recompute(line)
            assert again == {key: line[key] if line[key] is None else pytest.approx(line[key], abs=1e-12) for key in again}
            assert CorrectnessLine.model_validate(line).rule == line["rule"]


def test_csv(run, tmp_path):
    assert run("-o", "out.csv", "--weights", "1,0", "--max-failures", "1").returncode == 0
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        half, _, _, missing, evil = csv.DictReader(file)
    assert (float(half["value"]), half["rubric_label"]) == (0.5, "3.4 / 4")
    assert half["response_claims"] == f"✓ {RESPONSE[0]}\n✗ {RESPONSE[1]}"
    assert (missing["status"], missing["value"]) == ("invalid_item", "")
    assert evil["id"] == "'=evil()"


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 2, "name --embeddings-model, or --weights 1,0,"),
        (["--weights", "1"], 2, "two non-negative numbers"),
        (["--weights", "a,b"], 2, "write two numbers"),
        (["--weights", "1,0", "--report", "r.html"], 2, "--report is for --metric rubric"),
        (["--weights", "1,0", "--rubric", "relevance", "--rubric", "answer_correctness"], 2, "takes one --rubric"),
        (["--embeddings-base-url", "http://x/v1"], 2, "needs --embeddings-model"),
        (["--weights", "1,0", "--column", "output=answr"], 2, "answr"),
        (["--weights", "1,0", "--max-failures", "0"], 3, "1 of 5 rows failed"),
        (["--weights", "1,0", "--limit", "1", "--fail-under", "0.6"], 1, "mean score of claim_f1 is 0.5000"),
        (["--weights", "1,0", "--limit", "1", "--threshold", "0.5"], 0, "1 of 1 (100.0%)"),
    ],
)
def test_exit_codes(run, options, code, said):
    done = run(*options)
    assert done.returncode == code, done.stderr
    assert said in done.stderr


def test_an_empty_file_and_one_row(run, tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    done = run("--weights", "1,0", file="empty.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    done = run("--weights", "1,0", "--limit", "1")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["half"]


def test_an_output_that_is_there_is_kept(run, tmp_path):
    (tmp_path / "out.jsonl").write_text("work\n")
    done = run("-o", "out.jsonl", "--weights", "1,0")
    assert done.returncode == 2
    assert (tmp_path / "out.jsonl").read_text() == "work\n"


def test_dry_run(run):
    done = run("--weights", "1,0", "--dry-run")
    plan = json.loads(done.stdout)
    assert (plan["n_rows"], plan["n_references"]) == (5, 3)
    assert plan["request"]["response_format"]["type"] == "json_schema"
    assert run.server.requests == []
