"""The interval on every grade of a calibrated run, in its files and its summary."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from browser.reports import grade
from isograde.applied import Calibration, judge_of
from isograde.calibration import Calibrator
from isograde.datasets import read_rows
from isograde.records import Calibrated, LevelInterval
from isograde.rubric import load_rubric
from isograde.runs.calibrate import grade_of, read_grades
from isograde.runs.results import ResultWriter
from isograde.runs.show import console, summary_view
from isograde.runs.summary import Tally


def sharp(level):
    return np.where(np.arange(5) == level, 0.96, 0.01)


@pytest.fixture
def calibration():
    """A calibrator of a judge that is right in nine of ten and else one level too high."""
    gold = np.tile(np.arange(4), 25)
    said = np.where(np.arange(100) % 10 == 0, gold + 1, gold)
    given = np.array([sharp(level) for level in said])
    judge = judge_of(grade(sharp(0)))
    return Calibration(Calibrator(judge=judge).fit(given, gold), load_rubric("answer_correctness"))


def test_a_grade_carries_its_interval(calibration):
    found = calibration.applied(grade(sharp(2))).calibrated.interval
    assert found.confidence_level == 0.9
    assert found.low <= 2 <= found.high
    assert found.levels == tuple("01234"[int(found.low) : int(found.high) + 1])
    assert found.reason is None
    blank = calibration.applied(grade(sharp(0), method="blank_output")).calibrated.interval
    assert (blank.low, blank.high, blank.levels) == (0, 0, ("0",))


def test_too_few_labels_say_so_on_the_grade():
    gold = np.arange(6) % 5
    given = np.array([sharp(level) for level in gold])
    few = Calibration(Calibrator(judge=judge_of(grade(sharp(0)))).fit(given, gold), load_rubric("answer_correctness"))
    found = few.applied(grade(sharp(2))).calibrated.interval
    assert (found.low, found.high, found.levels) == (0, 4, tuple("01234"))
    assert "6 groups of labels are too few to bound gold at 90 %" in found.reason


def run_of(calibration, path):
    """Write three calibrated rows; the summary as text."""
    rubric = load_rubric("answer_correctness")
    rows = list(read_rows([{"id": str(i), "input": "q", "output": "a", "expected": "e"} for i in range(3)]))
    tally = Tally(rubric)
    with ResultWriter(path, {rubric.name: rubric.labels}) as writer:
        for i, row in enumerate(rows):
            made = calibration.applied(grade(sharp(i), row.item))
            writer.write(row, made)
            tally.add(row, made)
    screen = console()
    with screen.capture() as capture:
        screen.print(summary_view(tally.summary(1.0)))
    return capture.get()


def test_written_and_read_back(calibration, tmp_path):
    path = tmp_path / "grades.jsonl"
    text = run_of(calibration, path)
    assert "levels apart on average" in text
    line = json.loads(path.read_text(encoding="utf-8").splitlines()[2])
    assert set(line["calibrated"]["interval"]) == {"low", "high", "levels", "confidence_level", "reason"}
    back = grade_of(read_grades(path)["2", "answer_correctness"], next(iter(read_rows([{"output": "a"}]))).item)
    assert back.calibrated == calibration.applied(grade(sharp(2))).calibrated
    assert isinstance(back.calibrated.interval, LevelInterval)


def test_csv_has_the_ends(calibration, tmp_path):
    path = tmp_path / "grades.csv"
    run_of(calibration, path)
    with path.open(encoding="utf-8") as file:
        row = list(csv.DictReader(file))[1]
    assert float(row["calibrated_low"]) <= 1 <= float(row["calibrated_high"])


def test_calibrators_and_lines_of_versions_without_intervals(calibration, tmp_path):
    content = json.loads(calibration._calibrator.to_json())
    del content["intervals"]
    older = Calibration(Calibrator.from_json(json.dumps(content)), load_rubric("answer_correctness"))
    path = tmp_path / "grades.jsonl"
    text = " ".join(run_of(older, path).split())
    assert "none: this calibration carries no intervals" in text
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        assert line["calibrated"].pop("interval") is None
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    back = grade_of(read_grades(path)["0", "answer_correctness"], next(iter(read_rows([{"output": "a"}]))).item)
    assert isinstance(back.calibrated, Calibrated)
    assert back.calibrated.interval is None
