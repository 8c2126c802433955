"""The command line as a user meets it: output, files, exit codes, and one line for each mistake."""

import asyncio
import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from servers.stub import LEVELS, StubServer, completion

ROWS = [
    {"id": "a", "input": "q1", "output": "Paris", "expected": "Paris", "gold": 4, "topic": "geo"},
    {"id": "b", "input": "q2", "output": "Rome", "expected": "Paris", "gold": 0, "topic": "geo"},
    {"id": "c", "input": "q3", "output": "", "expected": "Paris", "gold": 0, "topic": "geo"},
    {"id": "d", "input": "q4", "output": None, "expected": "Paris", "gold": 1, "topic": "geo"},
]


def answer(request):
    output = request["messages"][-1]["content"].split("<answer>\n")[1].split("\n</answer>")[0]
    if output == "boom":
        return 500, {"error": {"message": "boom"}}
    return completion(LEVELS if output == "Paris" else dict(zip("01234", LEVELS.values(), strict=True)))


@pytest.fixture
def server():
    with StubServer(answer, models=["judge-1"]) as running:
        yield running


@pytest.fixture
def run(isograde, tmp_path, server):
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")

    def call(*arguments, **options):
        return isograde(*arguments, "--base-url", server.base_url, "--model", "judge-1", cwd=tmp_path, **options)

    return call


def lines(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_score_a_file(run, tmp_path):
    done = run("score", "answers.jsonl", "-o", "grades.jsonl", "--max-failures", "50%")
    assert done.returncode == 0, done.stderr
    a, b, c, d = lines(tmp_path / "grades.jsonl")
    assert [line["id"] for line in (a, b, c, d)] == ["a", "b", "c", "d"]
    assert (a["status"], a["score"], a["label"], a["level"], a["gold"]) == ("graded", pytest.approx(0.855), "3.4 / 4", 4, 4.0)
    assert a["probabilities"] == pytest.approx({"0": 0.02, "1": 0.03, "2": 0.08, "3": 0.25, "4": 0.62})
    assert b["score"] == pytest.approx(0.145)
    assert (c["method"], c["score"]) == ("blank_output", 0)
    assert d["status"] == "invalid_item"
    assert "score" not in d
    assert a["metadata"] == {"topic": "geo"}
    # (3.42 + 0.58 + 0) ÷ 12 over three graded rows; with d at 0 and at 1: 1 ÷ 4 and 2 ÷ 4
    for said in ("4: 3 graded, 1 failed (1 invalid_item)", "0.333  (between 0.250 and 0.500", "33.3%  (between 25.0% and 50.0%"):
        assert said in done.stderr
    # |3.42 − 4| + |0.58 − 0| + 0 over three
    assert "MAE 0.39 levels" in done.stderr
    assert "n = 3" in done.stderr


def test_without_output_file_the_lines_go_to_standard_output(run):
    done = run("score", "answers.jsonl", "--limit", "2")
    assert done.returncode == 0
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["a", "b"]


def test_several_rubrics_on_one_file(run, tmp_path):
    done = run(
        "score", "answers.jsonl", "-o", "grades.jsonl", "--rubric", "relevance", "--rubric", "answer_correctness", "--limit", "3"
    )
    assert done.returncode == 0, done.stderr
    found = [(line["id"], line["rubric"]) for line in lines(tmp_path / "grades.jsonl")]
    assert found == [(i, r) for i in "abc" for r in ("relevance", "answer_correctness")]


def test_csv_cells_are_no_formulas(run, tmp_path):
    rows = [{"id": "=cmd|' /C calc'!A0", "input": "q", "output": "Paris", "expected": "Paris", "group": "+1"}]
    (tmp_path / "evil.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = run("score", "evil.jsonl", "-o", "grades.csv")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "grades.csv").open(encoding="utf-8", newline="") as file:
        [row] = csv.DictReader(file)
    assert (row["id"], row["group"]) == ("'=cmd|' /C calc'!A0", "'+1")
    assert float(row["p_4"]) == pytest.approx(0.62)
    assert float(row["score"]) == pytest.approx(0.855)


def test_terminal_escapes_in_graded_text_do_not_reach_the_terminal(run, tmp_path):
    row = {"id": "\x1b[2Jx", "input": "q", "output": None, "expected": "\u202eParis"}
    (tmp_path / "evil.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    done = run("score", "evil.jsonl")
    assert "\x1b" not in done.stdout + done.stderr
    assert json.loads(done.stdout)["id"] == "\x1b[2Jx"


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--fail-under", "0.3", "--max-failures", "1"], 0, None),
        (["--fail-under", "0.4", "--max-failures", "1"], 1, "mean score of answer_correctness is 0.3333, under --fail-under 0.4"),
        ([], 3, "1 of 4 rows failed, more than --max-failures allows"),
        (["--max-failures", "0"], 3, "1 of 4 rows failed"),
        (["--max-failures", "-1"], 2, "cannot be negative"),
        (["--max-failures", "few"], 2, "write a count (10) or a share (5%)"),
        (["--rubric", "nope"], 2, "no rubric named 'nope'"),
        (["--rubric", "faithfulness"], 2, "needs 'context' and no column feeds it; columns found: id, input, output, expected"),
        (["--column", "output"], 2, "write FIELD=COLUMN"),
        (["--column", "output=answr"], 2, "answr"),
        (["--column", "ouput=output"], 2, "no field is named 'ouput'"),
        (["--gold-scale", "0-1"], 2, "write LO:HI"),
        (["--api-key-env", "NOT_SET"], 2, "this environment variable is not set"),
        (["--rubric", "relevance", "--rubric", "relevance"], 2, "two rubrics of one name"),
    ],
)
def test_exit_codes(run, tmp_path, options, code, said):
    done = run("score", "answers.jsonl", "-o", "grades.jsonl", *options)
    assert done.returncode == code, done.stderr
    if said is not None:
        assert said in done.stderr
    if code == 2:
        assert len(done.stderr.strip().splitlines()) == 1
        assert not (tmp_path / "grades.jsonl").exists()


def test_an_output_file_is_not_written_over(run, tmp_path):
    (tmp_path / "grades.jsonl").write_text("precious", encoding="utf-8")
    done = run("score", "answers.jsonl", "-o", "grades.jsonl")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "--force" in done.stderr
    assert (tmp_path / "grades.jsonl").read_text(encoding="utf-8") == "precious"
    assert run("score", "answers.jsonl", "-o", "grades.jsonl", "--force", "--max-failures", "1").returncode == 0
    assert len(lines(tmp_path / "grades.jsonl")) == 4


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        ("\n\n", "nothing but blanks"),
        ('{"input": "q"}\n{broken\n', "line 2"),
        (
            '{"id": "1", "input": "q", "output": "a", "expected": "b"}\n{"id": "1", "input": "q", "output": "a", "expected": "b"}\n',
            "lines 1 and 2",
        ),
        ('{"input": "q", "output": "a", "answer": "b", "expected": "c"}\n', "answer"),
        ('{"input": "q", "output": {"a": 1}, "expected": "c"}\n', "line 1"),
    ],
)
def test_a_broken_file_is_one_line_and_costs_no_call(run, tmp_path, server, content, said):
    (tmp_path / "broken.jsonl").write_text(content, encoding="utf-8")
    done = run("score", "broken.jsonl", "-o", "grades.jsonl")
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert server.requests == []
    assert not (tmp_path / "grades.jsonl").exists()


def test_server_trouble_is_exit_code_4_and_one_line(isograde, tmp_path, server):
    row = json.dumps(ROWS[0]) + "\n"
    (tmp_path / "one.jsonl").write_text(row, encoding="utf-8")
    (tmp_path / "boom.jsonl").write_text(json.dumps({**ROWS[0], "output": "boom"}) + "\n", encoding="utf-8")
    done = isograde("score", "one.jsonl", "--base-url", "http://127.0.0.1:9/v1", "--model", "x", cwd=tmp_path)
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (4, 1)
    assert "nothing answers at http://127.0.0.1:9/v1" in done.stderr
    done = isograde("score", "one.jsonl", "--model", "gpt-4.1-mini", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "OPENAI_API_KEY" in done.stderr


def test_what_was_finished_is_written_when_the_server_goes_away(isograde, tmp_path):
    def dying(request):
        content = request["messages"][-1]["content"]
        return completion(LEVELS) if "early" in content else (401, {"error": {"message": "key expired"}})

    rows = [{**ROWS[0], "id": str(i), "output": "early" if i < 30 else "late"} for i in range(60)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with StubServer(dying) as server:
        done = isograde("score", "rows.jsonl", "-o", "g.jsonl", "--base-url", server.base_url, "--model", "x", cwd=tmp_path)
    assert done.returncode == 4
    assert "refuses the key" in done.stderr
    assert [line["id"] for line in lines(tmp_path / "g.jsonl")] == [str(i) for i in range(30)]


def test_a_second_interrupt_keeps_what_was_finished(tmp_path):
    async def slow(request):
        if "late" in request["messages"][-1]["content"]:
            await asyncio.sleep(30)
        return completion(LEVELS)

    rows = [{**ROWS[0], "id": str(i), "output": "early" if i < 20 else "late"} for i in range(60)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with StubServer(slow) as server:
        command = [
            sys.executable,
            "-m",
            "isograde",
            "score",
            "rows.jsonl",
            "-o",
            "g.jsonl",
            "--base-url",
            server.base_url,
            "--model",
            "x",
        ]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            for _ in range(600):
                if (tmp_path / "g.jsonl").exists() and len(lines(tmp_path / "g.jsonl")) == 20:
                    break
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            assert process.stderr.readline() == "isograde: finishing what is under way; Ctrl-C again stops at once\n"
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert [line for line in said.splitlines() if line] == ["20 finished rows are in g.jsonl", "isograde: interrupted"]
    assert [line["id"] for line in lines(tmp_path / "g.jsonl")] == [str(i) for i in range(20)]


def test_no_file_that_is_read_is_written_over(run, tmp_path):
    before = (tmp_path / "answers.jsonl").read_text(encoding="utf-8")
    (tmp_path / "link.jsonl").symlink_to("answers.jsonl")
    for options in (
        ["-o", "answers.jsonl"],
        ["-o", "link.jsonl"],
        ["-o", "g.jsonl", "--report", "g.jsonl"],
        ["-o", "g.parquet"],
        ["-o", "none/g.jsonl"],
    ):
        done = run("score", "answers.jsonl", "--force", *options)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert (tmp_path / "answers.jsonl").read_text(encoding="utf-8") == before
    assert not (tmp_path / "g.jsonl").exists()


def test_a_server_that_only_fails_keeps_every_row_that_was_tried(isograde, tmp_path):
    rows = [{**ROWS[0], "id": str(i)} for i in range(9)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with StubServer(lambda _: (200, "<html>login</html>")) as server:
        done = isograde("score", "rows.jsonl", "-o", "g.jsonl", "--base-url", server.base_url, "--model", "x", cwd=tmp_path)
    assert done.returncode == 4
    assert "5 finished rows are in g.jsonl" in done.stderr
    assert [line["status"] for line in lines(tmp_path / "g.jsonl")] == ["server_error"] * 5


@pytest.mark.parametrize("metric", [[], ["--metric", "claim_f1", "--weights", "1,0"]])
def test_why_rows_failed_is_shown(isograde, tmp_path, metric):
    rows = [{**ROWS[1], "id": str(i)} for i in range(3)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with StubServer(lambda _: (400, {"error": {"message": "no\x1b room " + "word " * 100}})) as server:
        done = isograde("score", "rows.jsonl", "-o", "g.jsonl", *metric, "--base-url", server.base_url, "--model", "x",
                        "--no-store", "--no-gold", "--max-failures", "100%", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 4, done.stderr
    said = " ".join(done.stderr.split())
    assert "most fail with HTTP 400: no\ufffd room word word" in said
    assert "\x1b" not in done.stderr
    assert 30 < done.stderr.count("word") <= 200 // 5
    assert "no row was graded: the server failed at every one" in said


def test_rows_on_standard_input(isograde, tmp_path, server):
    command = [sys.executable, "-m", "isograde", "score", "-", "--base-url", server.base_url, "--model", "judge-1"]
    row = json.dumps(ROWS[0]) + "\n"
    done = subprocess.run(command, input=row, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["id"] == "a"


def test_gold_of_another_rubric_can_be_left_unread(run, tmp_path):
    (tmp_path / "three.yaml").write_text(
        "name: three\ndescription: d\nfields: {output: answer}\ninstructions: i\nitem: '{output}'\nblank_output: fail\n"
        "levels: [{label: 1, description: a}, {label: 2, description: b}, {label: 3, description: c}]\n",
        encoding="utf-8",
    )
    options = ["--rubric", "three.yaml", "--min-mass", "0.1", "--max-failures", "50%"]
    assert "off the scale" in run("score", "answers.jsonl", *options).stderr
    done = run("score", "answers.jsonl", "--no-gold", *options)
    assert done.returncode == 0, done.stderr
    assert "gold" not in done.stderr


def test_dry_run_sends_nothing_and_shows_the_request(run, server):
    done = run("score", "answers.jsonl", "--dry-run")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["n_rows"] == shown["n_calls"] == 4
    assert "Paris" in shown["request"]["messages"][1]["content"]
    assert server.requests == []


def test_a_key_is_nowhere(run, tmp_path, server):
    done = run(
        "score", "answers.jsonl", "-o", "grades.jsonl", "--api-key-env", "MY_KEY", "--max-failures", "1", MY_KEY="sk-very-secret"
    )
    assert done.returncode == 0
    assert server.headers[0]["Authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in done.stdout + done.stderr + (tmp_path / "grades.jsonl").read_text(encoding="utf-8")


def test_rubrics_commands(isograde, tmp_path):
    assert "answer_correctness" in isograde("rubrics", "list", cwd=tmp_path).stdout
    shown = isograde("rubrics", "show", "faithfulness", cwd=tmp_path).stdout
    assert "── system ──" in shown
    assert "<context>\n(the item's context)\n</context>" in shown
    (tmp_path / "bad.yaml").write_text("name: x\n", encoding="utf-8")
    done = isograde("rubrics", "check", "bad.yaml", cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "Field required" in done.stderr


HELP = Path(__file__).parent / "help"


@pytest.mark.parametrize(
    "command",
    [
        "",
        "demo",
        "score",
        "doctor",
        "rubrics",
        "rubrics list",
        "rubrics show",
        "rubrics check",
        "sample",
        "calibrate",
        "compare",
        "estimate",
    ],
)
def test_help_is_the_golden_file(isograde, command, tmp_path):
    shown = isograde(*command.split(), "--help", cwd=tmp_path).stdout
    golden = HELP / f"{command.replace(' ', '-') or 'isograde'}.txt"
    if os.environ.get("ISOGRADE_WRITE_HELP"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")


def test_import_loads_nothing_heavy(tmp_path):
    heavy = ("pandas", "matplotlib", "sklearn", "scipy.stats", "xllamacpp", "openai", "pyarrow", "datasets")
    code = f"import sys, isograde; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]"
