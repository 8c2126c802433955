"""The run report's figures by hand."""

from __future__ import annotations

import pytest

from browser.reports import grade, one_hot
from isograde.datasets import Row
from isograde.records import Calibrated, GradeFailure, Item
from isograde.report import RunCollector, run_report
from isograde.report.columns import MAX_COLUMNS, Columns


def rows(grades, metadata=lambda _i: {}):
    return [(Row(item=Item(id=f"r{i}", metadata=metadata(i)), index=i), each) for i, each in enumerate(grades)]


def failed(rubric="answer_correctness"):
    return GradeFailure(status="timeout", message="late", rubric=rubric)


def test_figures_by_hand():
    # scores 0, 0.5, 1, 1 and a failure; passes from 0.75
    graded = rows([one_hot(0), one_hot(2), one_hot(4), failed(), one_hot(4)], lambda i: {"part": "ab"[i % 2]})
    (run,) = run_report(graded, threshold=0.5).rubrics
    assert (run.n, run.n_graded, run.n_failed) == (5, 4, 1)
    assert run.mean_score == 0.625
    assert run.mean_score_bounds == (0.5, 0.7)
    assert run.pass_rate == 0.5
    assert run.pass_rate_bounds == (0.4, 0.6)
    assert run.levels == (1, 0, 1, 0, 2)
    assert (run.score_histogram[0], run.score_histogram[10], run.score_histogram[19]) == (1, 1, 2)
    assert sum(run.score_histogram) == 4
    assert (run.threshold.n_pass, run.threshold.n_fail) == (3, 1)
    found = {s.value: s for s in run.slices}
    assert (found["a"].n, found["a"].n_failed, found["a"].mean_score) == (3, 0, pytest.approx(2 / 3))
    assert (found["b"].n, found["b"].n_failed, found["b"].pass_rate, found["b"].pass_rate_bounds) == (2, 1, 0.0, (0.0, 0.5))
    assert [case.id for case in run.lowest] == ["r0", "r1", "r2", "r4"]
    assert run.failures[0].examples == (("r3", "late"),)
    assert run.answer.sentence == (
        "50.0 % of the 4 graded rows pass, with a mean score of 0.62; 1 row failed, so the pass rate of all 5 rows is between 40.0 % "
        "and 60.0 %."
    )


def test_the_lowest_fifty_first_rows_first():
    (run,) = run_report(rows([one_hot(4 - i // 20) for i in range(100)])).rubrics
    assert [case.id for case in run.lowest] == [f"r{i}" for i in [*range(80, 100), *range(60, 80), *range(40, 50)]]


def test_a_calibrated_run_averages_the_calibrated():
    better = Calibrated(level=1.0, score=0.25, probabilities={}, p_pass=0.1)
    (run,) = run_report(rows([one_hot(4, calibrated=better)])).rubrics
    assert run.calibrated
    assert (run.mean_score, run.pass_rate, run.lowest[0].predicted) == (0.25, 0.1, 1.0)
    assert run.answer.sentence.startswith("10.0 % of the 1 graded row are expected to pass, with")


def test_rubrics_apart_and_failures_only():
    report = run_report(
        rows([one_hot(4, rubric="one"), failed("two"), grade([0.4, 0.6], labels=("x", "y"), rubric="three", score=None)])
    )
    one, two, three = report.rubrics
    assert (one.mean_score, two.mean_score, three.mean_score) == (1.0, None, None)
    assert two.answer.sentence == "There is no pass rate: every row failed."
    assert three.answer.sentence == "There is no pass rate: no row has a score."
    assert (three.n_graded, three.n_failed, three.levels) == (1, 0, (0, 1))
    report.to_html()
    report.to_markdown()


def test_no_rows():
    report = RunCollector(title="Empty").report()
    assert "There are no rows" in report.to_html()
    assert "There are no rows" in report.to_markdown()


def sliced(*values, groups=None):
    columns = Columns()
    for i, value in enumerate(values):
        columns.add({"c": value} if value is not ... else {}, None if groups is None else groups[i])
    return {(name, value): rows.tolist() for name, value, rows in columns.slices()}


def test_columns_cut_by_value():
    assert sliced("b", "a", "b") == {("c", "a"): [1], ("c", "b"): [0, 2]}
    assert sliced(10, 9, None, 10) == {("c", "9"): [1], ("c", "10"): [0, 3], ("c", "(none)"): [2]}
    yes, no = True, False
    assert sliced(yes, no, ...) == {("c", "False"): [1], ("c", "True"): [0], ("c", "(none)"): [2]}


def test_columns_of_no_use():
    assert sliced("same", "same") == {}
    assert sliced(*[f"id {i}" for i in range(30)]) == {}
    assert sliced("x" * 41, "y") == {}
    assert sliced([1], [2]) == {}
    assert sliced("a", [2]) == {}


def test_many_numbers_are_cut_at_their_quartiles():
    found = sliced(*range(100))
    assert [len(rows) for rows in found.values()] == [25, 25, 25, 25]
    assert next(iter(found)) == ("c", "0 to 24.75")
    # Quartiles of 60 zeros and 1 … 60 are 0, 0, 0.5, 30.25, 60: the first two are one.
    assert [len(rows) for rows in sliced(*([0] * 60 + list(range(1, 61)))).values()] == [60, 30, 30]
    assert sliced(*([0] * 93 + list(range(1, 28)))) == {}  # three quartiles at 0 leave one slice


def test_groups_are_a_column_while_few():
    assert sliced(..., ..., groups=["p", "q"]) == {("group", "p"): [0], ("group", "q"): [1]}


def test_columns_beyond_the_cap_are_counted():
    columns = Columns()
    for value in "ab":
        columns.add({f"c{i}": value for i in range(MAX_COLUMNS + 3)}, None)
    assert len(list(columns.slices())) == 2 * MAX_COLUMNS
    assert columns.n_left_out == 3
