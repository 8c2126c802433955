"""isograde calibrate and the reports, from files to exit codes."""

import csv
import json

import pytest

from servers.stub import StubServer, completion


def by_level(request):
    """One level too high, and sure of it."""
    said = str(min(4, int(request["messages"][1]["content"].split("<answer>\nlevel ")[1][0]) + 1))
    return completion({said: 0.96, **{other: 0.01 for other in "01234" if other != said}})


@pytest.fixture
def server():
    with StubServer(by_level) as running:
        yield running


@pytest.fixture
def folder(tmp_path):
    rows = [
        {
            "id": str(i),
            "input": "q",
            "output": f"level {i % 5}",
            "expected": "e",
            "gold": i % 5,
            "group": f"g{i // 5}",
            "ragas": i % 5 / 4,
            "noise": 1,
        }
        for i in range(100)
    ]
    (tmp_path / "labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


@pytest.fixture
def judged(server):
    return ["--base-url", server.base_url, "--model", "m"]


def test_grade_fit_report_and_apply(isograde, folder, judged):
    done = isograde("calibrate", "labelled.jsonl", "-o", "c.json", "--report", "r.html", *judged, cwd=folder)
    assert done.returncode == 0, done.stderr
    # raw: levels 1 2 3 4 4 for gold 0 1 2 3 4, about 0.8 off; calibrated: the level tells the gold but for 3 and 4
    assert "100 labelled rows in 20 groups, 0 failed" in done.stdout
    assert "has signal" in done.stdout
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "has signal" in page
    done = isograde(
        "score", "labelled.jsonl", "-o", "g.jsonl", "--calibration", "c.json", "--gold-scale", "0:4", *judged, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert "calibrated mean" in done.stderr
    assert "calibrated pass rate" in done.stderr
    line = json.loads((folder / "g.jsonl").read_text(encoding="utf-8").splitlines()[1])
    assert (line["level"], line["calibrated"]["level"]) == (2, 1)


def test_grades_that_are_there_give_the_same_calibrator(isograde, folder, judged, server):
    assert isograde("calibrate", "labelled.jsonl", "-o", "live.json", *judged, cwd=folder).returncode == 0
    assert isograde("score", "labelled.jsonl", "-o", "g.jsonl", *judged, cwd=folder).returncode == 0
    n_requests = len(server.requests)
    done = isograde("calibrate", "labelled.jsonl", "--grades", "g.jsonl", "-o", "joined.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "joined.json").read_text(encoding="utf-8") == (folder / "live.json").read_text(encoding="utf-8")
    assert len(server.requests) == n_requests
    other = isograde(
        "score", "labelled.jsonl", "--calibration", "joined.json", "--base-url", server.base_url, "--model", "other", cwd=folder
    )
    assert (other.returncode, other.stderr.count("\n")) == (2, 1)
    assert "model: 'm' and 'other'" in other.stderr


def test_plain_scores_of_another_tool(isograde, folder):
    done = isograde(
        "calibrate", "labelled.jsonl", "--score-column", "ragas", "--score-range", "0:1", "--report", "r.md", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert "has signal" in (folder / "r.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--score-column", "ragas", "--max-mae", "0.5", "--require-signal"], 0, None),
        (["--score-column", "noise", "--max-mae", "0.5"], 1, "over --max-mae 0.5"),
        (["--score-column", "noise", "--require-signal"], 1, "shows no signal"),
        (["--score-column", "none"], 2, "line 1 (id '0'), column 'none': is missing"),
        (["--score-column", "ragas", "--grades", "g.jsonl"], 2, "one or the other"),
        (["--grades", "g.jsonl"], 2, "No such file"),
        (["--score-column", "ragas", "--gold", "nope"], 2, "nope"),
        (["--score-column", "ragas", "--report", "r.pdf"], 2, "end the name in .html, .md, .json"),
        (
            ["--score-column", "ragas", "--rubric", "relevance", "--rubric", "answer_correctness"],
            2,
            "one rubric is calibrated at a time",
        ),
        (["--score-column", "ragas", "--score-range", "1"], 2, "--score-range '1': write LO:HI"),
    ],
)
def test_exit_codes(isograde, folder, options, code, said):
    done = isograde("calibrate", "labelled.jsonl", "-o", "c.json", *options, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    if said is not None:
        assert said in done.stderr
    if code == 2:
        assert done.stderr.count("\n") == 1
        assert not (folder / "c.json").exists()


def test_no_labels(isograde, folder):
    (folder / "bare.jsonl").write_text('{"input": "q", "output": "a", "expected": "e"}\n', encoding="utf-8")
    done = isograde("calibrate", "bare.jsonl", "-o", "c.json", cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "no row has a gold label" in done.stderr


def test_files_that_are_there_are_kept(isograde, folder):
    (folder / "c.json").write_text("precious", encoding="utf-8")
    done = isograde("calibrate", "labelled.jsonl", "--score-column", "ragas", "-o", "c.json", cwd=folder)
    assert done.returncode == 2
    assert (folder / "c.json").read_text(encoding="utf-8") == "precious"


def test_the_sheet_goes_out_blind_and_comes_back(isograde, folder, judged):
    done = isograde("sample", "labelled.jsonl", "-n", "20", "-o", "sheet.csv", "--raters", "2", cwd=folder)
    assert done.returncode == 0, done.stderr
    with (folder / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    assert len({row["group"] for row in table}) == 20
    assert not {"gold", "score", "ragas"} & set(table[0])
    for row in table:
        row["rater_1"] = row["rater_2"] = row["output"].removeprefix("level ")
    with (folder / "sheet.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows(table)
    done = isograde("calibrate", "sheet.csv", "-o", "c.json", "--report", "r.json", *judged, cwd=folder)
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert (report["n_labelled"], report["human"]["n_raters"]) == (20, 2)


def test_the_run_report_needs_no_gold(isograde, folder, judged):
    done = isograde("score", "labelled.jsonl", "-o", "g.jsonl", "--report", "run.html", "--threshold", "0.5", *judged, cwd=folder)
    assert done.returncode == 0, done.stderr
    page = (folder / "run.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "answer_correctness" in page
