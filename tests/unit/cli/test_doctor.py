"""``isograde doctor`` and the options that choose a method or a wire, as a user meets them."""

import json

import pytest
from jevcompat import mock

from isograde.methods import dirichlet
from isograde.runs.calibrate import read_grades
from servers.stub import LEVELS, StubServer, completion

ITEM = {"input": "q", "output": "a", "expected": "b"}


def said(texts):
    choices = [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"} for text in texts]
    return {"choices": choices}


def test_the_command_line_writes_and_reads_it_back(isograde, tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": "é🙂", **ITEM}) + "\n", encoding="utf-8")
    with StubServer(lambda r: said(["4", "Hm", "4", "3"][: r["n"]])) as server:
        done = isograde("score", "rows.jsonl", "-o", "g.jsonl", "--base-url", server.base_url, "--model", "stub-1", "--no-store",
                        "--method", "sampling", "--samples", "4", cwd=tmp_path)  # fmt: skip
        plan = isograde("score", "rows.jsonl", "--base-url", server.base_url, "--model", "stub-1", "--method", "sampling", "--dry-run",
                        cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    line = json.loads((tmp_path / "g.jsonl").read_text(encoding="utf-8"))
    assert (line["method"], line["n_samples"], line["n_invalid"]) == ("sampling", 4, 1)
    assert line["expected_level_sd"] == pytest.approx(dirichlet([0, 0, 0, 1, 2])[1])
    assert json.loads(plan.stdout)["n_calls"] == 10
    [kept] = read_grades(tmp_path / "g.jsonl").values()
    assert kept.n_samples == 4


def test_a_server_that_can_judge(isograde, tmp_path):
    with StubServer() as server:
        done = isograde("doctor", "--base-url", server.base_url, "--model", "stub-1", "--no-store", cwd=tmp_path)
        as_json = isograde("doctor", "--base-url", server.base_url, "--model", "stub-1", "--no-store", "--json", cwd=tmp_path)
        n_requests = len(server.requests) // 2
    assert done.returncode == 0, done.stderr
    assert f"stub-1 at {server.base_url}, rubric answer_correctness" in done.stdout
    assert "verdict: can judge" in done.stdout
    assert n_requests <= 10
    found = json.loads(as_json.stdout)
    assert found["usable"] is True
    by_name = {each["name"]: each for each in found["findings"]}
    assert by_name["mass on levels"]["value"] == pytest.approx(1)
    assert by_name["thinking"]["value"] == "none"
    assert found["attack"] is None


def test_what_was_learnt_is_kept_for_the_runs_to_come(isograde, tmp_path):
    def answer(request):
        return (400, {"error": {"message": "Unrecognized argument: top_k"}}) if "top_k" in request else completion(LEVELS)

    (tmp_path / "rows.jsonl").write_text(json.dumps(ITEM) + "\n", encoding="utf-8")
    with StubServer(answer) as server:
        where = ("--base-url", server.base_url, "--model", "stub-1", "--store", "kept.sqlite")
        assert isograde("doctor", *where, cwd=tmp_path).returncode == 0
        looked = len(server.requests)
        assert isograde("score", "rows.jsonl", *where, cwd=tmp_path).returncode == 0
        assert len(server.requests) == looked + 1  # nothing is rejected again


def test_a_server_without_logprobs(isograde, tmp_path):
    body = completion(LEVELS)
    body["choices"][0]["logprobs"] = None
    with StubServer(lambda _: body) as server:
        done = isograde("doctor", "--base-url", server.base_url, "--model", "stub-1", cwd=tmp_path)
    assert done.returncode == 4
    assert "verdict: cannot judge as it is: logprobs" in done.stdout
    for way_out in ("--method sampling", "--wire systemone", "no --model"):
        assert way_out in " ".join(done.stdout.split())


def test_nobody_there_is_one_line(isograde, tmp_path):
    with StubServer() as server:
        address = server.base_url
    done = isograde("doctor", "--base-url", address, "--model", "x", "--timeout", "5", cwd=tmp_path)
    assert done.returncode == 4
    assert done.stderr.startswith("isograde: nothing answers at")
    assert done.stderr.count("\n") == 1


def test_a_decision_model_and_its_attack(isograde, tmp_path):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"id": i, **ITEM}) + "\n" for i in "ab"), encoding="utf-8")
    with mock.Running() as server:
        where = ("--wire", "systemone", "--base-url", server.url)
        done = isograde("doctor", *where, "--attack", cwd=tmp_path)
        scored = isograde("score", "rows.jsonl", "-o", "g.jsonl", "--no-store", *where, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "injections lift wrong answers by" in done.stdout
    assert scored.returncode == 0, scored.stderr
    assert {line.method for line in read_grades(tmp_path / "g.jsonl").values()} == {"decision_model"}
    wrong = isograde("score", "rows.jsonl", *where, "--max-tokens", "5", cwd=tmp_path)
    assert (wrong.returncode, "generates nothing" in wrong.stderr) == (2, True)
    with mock.Running(mock.MockConfig(faults=frozenset({"score-sum"}))) as broken:
        done = isograde("doctor", "--wire", "systemone", "--base-url", broken.url, cwd=tmp_path)
    assert done.returncode == 4
    assert f"jevcompat test {broken.url} names" in " ".join(done.stdout.split())


def test_two_rubrics_are_one_too_many(isograde, tmp_path):
    done = isograde("doctor", "--rubric", "relevance", "--rubric", "factuality", cwd=tmp_path)
    assert (done.returncode, "give --rubric once" in done.stderr) == (2, True)
