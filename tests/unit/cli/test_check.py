"""isograde check and isograde plan, from files to exit codes."""

import csv
import json

import pytest

from servers.stub import StubServer, completion


def answer(offset):
    """A judge that reads the level off the answer, and adds something."""

    def said(request):
        level = int(request["messages"][1]["content"].split("<answer>\nlevel ")[1][0]) + offset
        chosen = str(max(0, min(4, level)))
        return completion({chosen: 0.96, **{other: 0.01 for other in "01234" if other != chosen}})

    return said


def rows(n, *, gold, prefix=""):
    return [
        {"id": f"{prefix}{i}", "input": "q", "output": f"level {i % 5}", "expected": "e", "group": f"{prefix}g{i // 2}"}
        | ({"gold": i % 5, "gold_scale": [0, 4]} if gold else {})
        for i in range(n)
    ]


def write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture
def server():
    with StubServer(answer(0)) as running:
        yield running


@pytest.fixture
def judged(server):
    return ["--base-url", server.base_url, "--model", "m"]


@pytest.fixture
def folder(tmp_path, isograde, judged):
    write(tmp_path / "gold.jsonl", rows(60, gold=True))
    done = isograde("calibrate", "gold.jsonl", "-o", "c.json", *judged, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "written: c.gold.jsonl" in done.stdout
    return tmp_path


def test_a_judge_that_stays_is_no_alarm(isograde, folder, judged):
    done = isograde("check", "--calibration", "c.json", *judged, "--report", "d.md", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No move of the judge is shown on 60 gold items" in " ".join(done.stdout.split())
    assert "# c.json: has anything moved?" in (folder / "d.md").read_text(encoding="utf-8")


def test_a_judge_that_moves_is_an_alarm(isograde, folder, server, judged):
    server.answer = answer(1)
    done = isograde("check", "--calibration", "c.json", *judged, "--report", "d.json", cwd=folder)
    assert done.returncode == 1
    # 48 of 60 answers go up by one level (level 4 cannot), at 0.95 a step: 0.8 × 0.95
    assert "The judge has moved: on the same 60 gold items mean level +0.76" in " ".join(done.stdout.split())
    report = json.loads((folder / "d.json").read_text(encoding="utf-8"))
    assert report["alarm"] is True
    assert report["share_changed"] == pytest.approx(0.8)


def test_gold_items_that_fail_now_are_an_alarm(isograde, folder, server, judged):
    stays, seen = answer(0), []

    def refuses(request):
        seen.append(request)
        return stays(request) if len(seen) < 40 else (400, {"error": {"message": "content_filter", "code": "content_filter"}})

    server.answer = refuses
    done = isograde("check", "--calibration", "c.json", *judged, "--concurrency", "1", cwd=folder)
    assert done.returncode == 1
    assert "can no longer be graded" in done.stdout


def test_new_grades_tell_about_the_data(isograde, folder, judged):
    write(folder / "new.jsonl", [{**row, "output": "level 4"} for row in rows(80, gold=False, prefix="n")])
    assert isograde("score", "new.jsonl", "-o", "g.jsonl", *judged, cwd=folder).returncode == 0
    done = isograde("check", "--calibration", "c.json", "--grades", "g.jsonl", "--report", "d.html", cwd=folder)
    assert done.returncode == 1
    assert "The data has moved" in done.stdout
    assert "Whether the judge has moved was not tested." in done.stdout
    assert "Has the data moved?" in (folder / "d.html").read_text(encoding="utf-8")


def test_another_judge_is_named(isograde, folder, server):
    done = isograde("check", "--calibration", "c.json", "--base-url", server.base_url, "--model", "other", cwd=folder)
    assert done.returncode == 1
    assert "It is another judge by name (model: 'm' and 'other')" in " ".join(done.stdout.split())


def test_mistakes_are_one_line(isograde, folder, judged):
    done = isograde("check", "--calibration", "no.json", *judged, cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    (folder / "c.gold.jsonl").write_text("{}\n", encoding="utf-8")
    done = isograde("check", "--calibration", "c.json", *judged, cwd=folder)
    assert done.returncode == 2
    assert "c.gold.jsonl, line 1: is no gold item (id: Field required)" in done.stderr
    (folder / "c.gold.jsonl").unlink()
    done = isograde("check", "--calibration", "c.json", *judged, cwd=folder)
    assert "isograde calibrate -o writes it" in done.stderr


def test_gold_items_can_be_left_out(isograde, tmp_path, judged):
    write(tmp_path / "gold.jsonl", rows(20, gold=True))
    assert isograde("calibrate", "gold.jsonl", "-o", "c.json", "--no-gold-items", *judged, cwd=tmp_path).returncode == 0
    assert not (tmp_path / "c.gold.jsonl").exists()


def test_a_plan_says_what_labels_buy_and_writes_a_blind_sheet(isograde, folder, judged):
    write(folder / "all.jsonl", rows(200, gold=False))
    assert isograde("score", "all.jsonl", "-o", "all_grades.jsonl", *judged, cwd=folder).returncode == 0
    done = isograde(
        "plan", "all.jsonl", "--grades", "all_grades.jsonl", "--pilot", "gold.jsonl", "-n", "20", "-o", "next.csv", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert "60 labels in 30 groups, of 200 rows; 140 can be drawn." in done.stdout
    with (folder / "next.csv").open(encoding="utf-8-sig", newline="") as file:
        sheet = list(csv.DictReader(file))
    assert len(sheet) == 20
    assert not {row["id"] for row in sheet} & {str(i) for i in range(60)}  # what is labelled is not drawn again
    # each of the 140 rows stands for itself: the inverse probabilities of the 20 sum to about 140
    assert sum(1 / float(row["inclusion_probability"]) for row in sheet) == pytest.approx(140, rel=1e-6)
    assert not {"score", "level", "expected_level", "probabilities"} & set(sheet[0])


def test_a_pilot_of_other_rows_is_refused(isograde, folder, judged):
    write(folder / "all.jsonl", rows(30, gold=False))
    assert isograde("score", "all.jsonl", "-o", "all_grades.jsonl", *judged, cwd=folder).returncode == 0
    done = isograde("plan", "all.jsonl", "--grades", "all_grades.jsonl", "--pilot", "gold.jsonl", cwd=folder)
    assert done.returncode == 2
    assert "is no row of all.jsonl" in done.stderr


def test_grades_by_another_rubric_are_refused(isograde, folder, judged):
    arguments = ("--rubric", "relevance", "--no-gold", *judged)
    assert isograde("score", "gold.jsonl", "-o", "other.jsonl", *arguments, cwd=folder).returncode == 0
    done = isograde("check", "--calibration", "c.json", "--grades", "other.jsonl", cwd=folder)
    assert done.returncode == 2
    assert "another rubric than the grades' relevance" in done.stderr


def test_too_few_gold_items_are_said_to_be(isograde, folder, judged):
    write(folder / "few.jsonl", rows(6, gold=False))
    assert isograde("score", "few.jsonl", "-o", "few_grades.jsonl", *judged, cwd=folder).returncode == 0
    done = isograde("check", "--calibration", "c.json", "--grades", "few_grades.jsonl", cwd=folder)
    said = " ".join(done.stdout.split())
    assert "54 gold items have no new grade" in said
    assert "Of 3 groups no check can tell a move from chance" in said
