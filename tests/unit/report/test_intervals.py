"""How sure a single grade is, in the calibration report."""

from __future__ import annotations

import json

import numpy as np
import pytest

from browser.reports import grade
from isograde.calibration import Calibrator, cross_intervals
from isograde.records import Item
from isograde.report import CalibrationReport, calibration_report


def judged(n=90, *, groups=None, hard=()):
    """Grades of a fair judge, worse on the rows in ``hard``, and gold."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 5, n).astype(float)
    spread = np.where(np.isin(np.arange(n), hard), 4.0, 0.4)
    seen = np.clip(gold + spread * rng.normal(size=n), 0, 4)
    weights = np.exp(-((np.arange(5) - seen[:, np.newaxis]) ** 2))
    table = weights / weights.sum(axis=1, keepdims=True)
    kinds = ["hard" if i in hard else "easy" for i in range(n)]
    items = [Item(id=str(i), group=None if groups is None else groups[i], metadata={"kind": kinds[i]}) for i in range(n)]
    return [grade(p, item) for p, item in zip(table, items, strict=True)], gold, table


def test_figures_are_those_of_the_intervals_out_of_fold():
    grades, gold, table = judged(hard=range(12))
    intervals = calibration_report(grades, gold.tolist(), n_resamples=50).intervals
    assert intervals.confidence_level == 0.9
    assert intervals.coverage.n == 90
    assert 0.8 <= intervals.coverage.value <= 1
    by_value = {each.value: each for each in intervals.slices}
    whole = sum(each.n * each.coverage.value for each in by_value.values()) / 90
    assert whole == pytest.approx(intervals.coverage.value)
    # What is hard by its kind is not told by the level, so there the promise for all is not kept.
    assert by_value["hard"].coverage.value < by_value["easy"].coverage.value
    assert f"{100 * intervals.coverage.value:.1f} %" in intervals.answer.sentence
    assert "nine items in ten" in intervals.answer.sentence
    # The same method on the same rows, with other folds: a like share and width.
    other = cross_intervals(table, gold, calibrator=Calibrator(n_levels=5), rng=1)
    assert intervals.coverage.value == pytest.approx(other.covered.mean(), abs=0.08)
    assert intervals.width.value == pytest.approx((other.high - other.low).mean(), abs=0.5)


def test_all_held_has_an_interval_of_its_own():
    # Clopper–Pearson where all of 60 are held: 0.025 to the power of 1 ÷ 60.
    gold = (np.arange(60) % 5).astype(float)
    report = calibration_report(gold.tolist(), gold.tolist(), score_range=(0, 4), n_resamples=50)
    coverage = report.intervals.coverage
    assert (coverage.value, coverage.low, coverage.high) == (1, pytest.approx(0.025 ** (1 / 60)), 1)
    assert (report.intervals.single, report.intervals.whole) == (1, 0)
    assert report.intervals.width.value == 0


def test_few_groups_are_told_what_to_do():
    grades, gold, _ = judged(40, groups=[f"q{i % 8}" for i in range(40)])
    intervals = calibration_report(grades, gold.tolist(), n_resamples=50).intervals
    assert intervals.width.value == 4
    assert "Not known yet: labels of 8 groups are too few" in intervals.answer.sentence
    assert "label items of 20 groups or more" in intervals.answer.sentence
    # One of the eight is held out.
    assert "7 groups of labels are too few to bound gold at 90 %, which takes 9 (measured" in intervals.answer.details[0]


@pytest.mark.parametrize("groups", [1, 2])
def test_what_cannot_be_measured_says_why(groups):
    grades, gold, _ = judged(20, groups=[f"q{i % groups}" for i in range(20)])
    report = calibration_report(grades, gold.tolist(), n_resamples=50)
    assert report.intervals.coverage.value is None
    assert "cannot be split to fit, to score and to measure" in report.intervals.answer.sentence
    assert "How sure is a single grade?" in report.to_markdown()
    assert "How sure is a single grade?" in report.to_html()


def test_no_labels():
    grades, _, _ = judged(3)
    report = calibration_report(grades, [None] * 3)
    assert report.intervals.answer.sentence == "Not known: none of the 3 rows has a gold label."
    assert report.habits.answer.sentence == "Not known: none of the 3 rows has a gold label."
    assert report.to_html()


def test_reports_of_versions_without():
    grades, gold, _ = judged()
    report = calibration_report(grades, gold.tolist(), n_resamples=50)
    content = json.loads(report.to_json())
    del content["intervals"], content["habits"]
    older = CalibrationReport.from_json(json.dumps(content))
    for text in (older.to_markdown(), older.to_html()):
        assert "How sure is a single grade?" not in text
        assert "favour something beside quality" not in text
    again = CalibrationReport.from_json(report.to_json())
    assert again == report
    for text in (again.to_markdown(), again.to_html()):
        assert report.intervals.answer.sentence in text
        assert "How sure is a single grade?" in text
