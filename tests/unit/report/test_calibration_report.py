"""The calibration report's figures, in reports small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from browser.reports import grade, one_hot
from isograde.calibration import bootstrap_figure, bootstrap_mean, cross_fit, mae, quadratic_weighted_kappa
from isograde.errors import CalibrationError, DataError
from isograde.records import GradeFailure, Item
from isograde.report import CalibrationReport, calibration_report
from isograde.report.measures import group_interval


def judged(n=60, *, noise=0.8, seed=0, groups=None):
    """Grades of a judge that follows gold, and gold."""
    rng = np.random.default_rng(seed)
    gold = (np.arange(n) % 5).astype(float)
    seen = np.clip(gold + rng.normal(0, noise, n), 0, 4)
    weights = np.exp(-((np.arange(5) - seen[:, np.newaxis]) ** 2))
    table = weights / weights.sum(axis=1, keepdims=True)
    items = [Item(id=str(i), group=None if groups is None else groups[i]) for i in range(n)]
    return [grade(p, item) for p, item in zip(table, items, strict=True)], gold.tolist(), table


def by_name(report):
    return {figure.name: figure for figure in report.point_figures}


def test_raw_figures_by_hand():
    # One group: nothing can be held out, so only the raw judge has figures.
    # levels 0 2 4 3, gold 0 1 4 1: errors 0 1 0 2.
    report = calibration_report([one_hot(level, Item(group="q")) for level in (0, 2, 4, 3)], [0, 1, 4, 1])
    figures = by_name(report)
    assert figures["MAE"].expected_level.value == 0.75
    assert figures["RMSE"].most_probable.value == pytest.approx((5 / 4) ** 0.5)
    assert figures["bias"].expected_level.value == 0.75
    assert figures["exact agreement"].most_probable.value == 0.5
    assert figures["within one"].most_probable.value == 0.75
    # κ = 1 − mean (a−b)² ÷ (var a + var b + (mean a − mean b)²) = 1 − 1.25 ÷ (2.1875 + 2.25 + 0.5625)
    assert figures["quadratic-weighted κ"].most_probable.value == pytest.approx(0.75)
    # Of a point mass the RPS is the absolute error.
    assert report.spread_figures[0].raw.value == pytest.approx(0.75)
    # Gold is 1 or more in 3 of 4 rows; the forecasts 0 1 1 1 are right each time. 2 or more in 1; forecasts 0 1 1 1 miss two.
    assert [f.event_rate.value for f in report.threshold_figures] == [0.75, 0.25, 0.25, 0.25]
    assert [f.brier_raw.value for f in report.threshold_figures] == [0.0, 0.5, 0.25, 0.0]
    assert report.heatmaps[0].counts == ((1, 0, 0, 0, 0), (0, 0, 0, 0, 0), (0, 1, 0, 0, 0), (0, 1, 0, 0, 0), (0, 0, 0, 0, 1))
    assert [(counts.name, counts.counts) for counts in report.distributions] == [
        ("gold", (1, 2, 0, 0, 1)),
        ("judge", (1, 0, 1, 1, 1)),
    ]
    assert report.trust == "not known"
    assert figures["MAE"].calibrated.value is None
    assert "one group" in figures["MAE"].calibrated.reason
    assert figures["MAE"].expected_level.low is None
    assert "one group" in figures["MAE"].expected_level.reason
    assert report.learning is None
    assert report.reliability == ()
    # The worst first; rows that agree are no disagreement.
    assert [(case.id, case.direction) for case in report.worst] == [("3", "too high"), ("1", "too high")]
    assert report.n_disagreements == 2
    assert "without calibration, 1 of 4 rows (25.0 %) is off by 2 levels or more" in report.errors_answer.sentence


def test_calibrated_figures_are_those_of_a_cross_fit_by_group():
    groups = [f"g{i // 3}" for i in range(60)]
    grades, gold, table = judged(groups=groups)
    report = calibration_report(grades, gold, rng=3, n_resamples=50)
    # The same stream: the report draws one number for its bootstrap before it cross-fits.
    rng = np.random.default_rng(3)
    rng.integers(2**62)
    codes = np.arange(60) // 3
    cross = cross_fit(table, gold, groups=codes, rng=rng)
    figures = by_name(report)
    assert figures["MAE"].calibrated.value == pytest.approx(np.abs(cross.median - gold).mean())
    assert figures["MAE"].constant.value == pytest.approx(np.abs(cross.constant - gold).mean())
    assert figures["RMSE"].calibrated_mean.value == pytest.approx(np.sqrt(((cross.mean - gold) ** 2).mean()))
    assert report.n_groups == 20
    assert sum(map(sum, report.heatmaps[1].counts)) == 60


def test_intervals_are_the_bootstrap_over_groups():
    groups = np.arange(60) // 3
    grades, gold, table = judged(groups=[f"g{g}" for g in groups])
    report = calibration_report(grades, gold, rng=5, n_resamples=300)
    seed = int(np.random.default_rng(5).integers(2**62))
    expected = table @ np.arange(5)
    own = by_name(report)["MAE"].expected_level
    other = bootstrap_mean(np.abs(expected - gold), groups=groups, n_resamples=300, rng=seed)
    assert (own.low, own.high) == pytest.approx((other.low, other.high))
    assert own.value == pytest.approx(mae(expected, gold).value)
    own = by_name(report)["quadratic-weighted κ"].most_probable
    figure = bootstrap_figure(
        lambda a, b: quadratic_weighted_kappa(a, b, n_levels=5),
        table.argmax(axis=1),
        gold,
        groups=groups,
        n_resamples=300,
        rng=seed,
    )
    assert (own.value, own.low, own.high) == pytest.approx((figure.value, figure.interval.low, figure.interval.high))


def test_group_interval_by_hand():
    # Three groups of one: mean 2, s = 1, t(0.975, 2) = 4.3027: 2 ± 4.3027 ÷ √3.
    estimate = group_interval(np.array([1.0, 2.0, 3.0]), np.arange(3))
    assert (estimate.low, estimate.high) == pytest.approx((2 - 4.30265 / 3**0.5, 2 + 4.30265 / 3**0.5), abs=1e-4)


def test_rows_are_counted():
    rows = [
        *(one_hot(i % 5) for i in range(6)),
        GradeFailure(status="timeout", message="late", item=Item(id="x")),
        GradeFailure(status="timeout", message="late"),
        GradeFailure(status="low_mass", message="little"),
        one_hot(0, method="blank_output", model="whatever"),
    ]
    report = calibration_report(rows, [0, 1, 2, None, 4, 0, 3, None, float("nan"), 0])
    assert (report.n, report.n_graded, report.n_failed, report.n_by_rule) == (10, 6, 3, 1)
    assert (report.n_labelled, report.n_unlabelled, report.n_used) == (7, 3, 5)
    assert [(f.status, f.count) for f in report.failures] == [("timeout", 2), ("low_mass", 1)]
    assert report.failures[0].examples == (("x", "late"), ("7", "late"))
    assert ("model", "a-judge") in report.judge


def test_a_judge_with_signal_is_trusted_and_one_without_is_not():
    grades, gold, _ = judged(100)
    report = calibration_report(grades, gold, n_resamples=100)
    assert report.trust == "yes"
    assert report.trust_answer.sentence.startswith("Yes: the judge has signal on this task; calibrated, it is 0.")
    assert "(100 labels" in report.trust_answer.sentence
    shuffled = np.random.default_rng(1).permutation(gold).tolist()
    report = calibration_report(grades, shuffled, n_resamples=100)
    assert report.trust == "no"
    assert not any(test.claimed for test in report.signal)
    assert report.learning.more == "cannot be told"


@pytest.mark.parametrize("n", range(1, 10))
def test_few_labels(n):
    grades, gold, _ = judged(n)
    report = calibration_report(grades, gold, n_resamples=20)
    assert report.trust == "not known"
    assert report.learning is None
    assert report.n_used == n
    report.to_html()
    report.to_markdown()


@pytest.mark.parametrize(
    ("grades", "gold", "said"),
    [
        ([one_hot(1)] * 3, [None] * 3, "none of the 3 rows has a gold label"),
        ([GradeFailure(status="timeout", message="m")] * 3, [1] * 3, "the judge graded none of the 3 rows"),
        (
            [one_hot(1), GradeFailure(status="timeout", message="m")],
            [None, 1],
            "no row with a gold label was graded by the judge",
        ),
        ([one_hot(1)], [1], "1 label cannot be split into a part to fit and a part to test; label 50 or more"),
    ],
)
def test_a_report_that_can_measure_nothing_says_why(grades, gold, said):
    report = calibration_report(grades, gold)
    assert report.trust_answer.sentence == f"Not known: {said}."
    assert said in report.to_html()
    assert said in report.to_markdown()


def test_all_labels_the_same():
    grades, _, _ = judged(60)
    report = calibration_report(grades, [2.0] * 60, n_resamples=20)
    assert report.trust == "not known"
    assert "all 60 labels are the same level" in report.trust_answer.sentence


def test_a_constant_judge():
    report = calibration_report([grade([0.1, 0.2, 0.4, 0.2, 0.1])] * 60, [float(i % 5) for i in range(60)], n_resamples=20)
    assert report.trust == "no"
    figures = by_name(report)
    assert figures["Spearman ρ"].expected_level.value is None
    assert "all predictions are the same" in figures["Spearman ρ"].expected_level.reason
    assert figures["Spearman ρ"].constant.reason == "a constant ranks nothing"


def test_authored_labels_are_said_to_be_authored():
    grades, gold, _ = judged(60)
    report = calibration_report(grades, gold, label_source="authored", n_resamples=20)
    assert "60 authored labels" in report.trust_answer.sentence
    for shown in (report.to_html(), report.to_markdown()):
        assert "not given by independent raters" in shown


def test_plain_scores():
    _, gold, table = judged(60)
    scores = (table @ np.arange(5) / 4).tolist()
    items = [Item(id=f"row {i}", group=f"g{i // 2}") for i in range(61)]
    report = calibration_report([*scores, float("nan")], [*gold, 1.0], items=items, score_range=(0, 1), n_resamples=20)
    assert (report.n_used, report.n_groups, report.n_failed) == (60, 30, 1)
    assert report.failures[0].examples[0][0] == "row 60"
    assert by_name(report)["MAE"].expected_level.value == pytest.approx(np.abs(np.array(scores) * 4 - gold).mean())
    assert by_name(report)["MAE"].most_probable.reason == "plain scores have no level probabilities"
    assert report.curve.score_name == "the judge's score"
    without_range = calibration_report(scores, gold, n_resamples=20)
    assert by_name(without_range)["MAE"].expected_level.value is None
    assert "give score_range" in without_range.gain_answer.sentence


def test_raters_give_the_human_yardstick():
    grades, gold, _ = judged(60)
    raters = [(level, min(4.0, level + 1), None) for level in gold]
    human = calibration_report(grades, gold, raters=raters, n_resamples=20).human
    # Two ratings an item, apart by 1 but at the top, where they are the same: 4 of 5 items.
    assert human.human_mae.value == pytest.approx(0.8)
    assert (human.n_items, human.n_raters) == (60, 2)
    assert calibration_report(grades, gold, raters=[(level,) for level in gold], n_resamples=20).human is None


def test_slices():
    levels = [0, 1, 2, 3, 4, 4, 2, 0]
    gold = [0, 0, 2, 3, 4, 1, 2, 0]
    items = [Item(group="q", metadata={"system": "ab"[i % 2], "text": f"{i} is long " * 9, "always": 1}) for i in range(8)]
    report = calibration_report([one_hot(level, item) for level, item in zip(levels, items, strict=True)], gold)
    found = {(s.column, s.value): s for s in report.slices}
    assert set(found) == {("system", "a"), ("system", "b")}
    # b: levels 1 3 4 0, gold 0 3 1 0
    assert found["system", "b"].n == 4
    assert found["system", "b"].mean_gold == 1.0
    assert found["system", "b"].mean_judge == 2.0
    assert found["system", "b"].bias.value == 1.0
    assert found["system", "b"].mae_raw.value == 1.0
    assert found["system", "a"].mae_raw.value == 0.0
    assert report.worst[0].slices == (("system", "b"),)


def test_long_texts_are_cut_and_lists_are_kept():
    item = Item(group="q", output="x" * 2000, expected=("one", "two"), context="c")
    case = calibration_report([one_hot(4, item), one_hot(0, Item(group="q"))], [0, 0]).worst[0]
    texts = dict(case.texts)
    assert texts["Answer"] == "x" * 1500 + "… [cut: 500 more characters]"
    assert (texts["Reference 1 of 2"], texts["Reference 2 of 2"], texts["Context"]) == ("one", "two", "c")


def test_the_learning_curve_holds_groups_out():
    # The judge's score names the group, and gold is random by group: only a leak could make it useful.
    rng = np.random.default_rng(0)
    group = np.arange(200) // 4
    score = rng.permutation(50)[group] / 49
    gold = rng.integers(0, 5, 50)[group].astype(float)
    items = [Item(group=f"g{g}") for g in group]
    report = calibration_report(score.tolist(), gold.tolist(), items=items, score_range=(0, 1), n_resamples=20)
    assert [point.n for point in report.learning.points] == [10, 20, 40, 80, 160, 200]
    assert min(point.mae.value for point in report.learning.points) > 1.0


def test_same_input_same_report_and_json_holds_it_all():
    grades, gold, _ = judged(60)
    first, second = (calibration_report(grades, gold, n_resamples=50) for _ in range(2))
    assert first == second
    assert first.to_html() == second.to_html()
    again = CalibrationReport.from_json(first.to_json())
    assert again == first
    assert again.to_html() == first.to_html()
    assert again.to_markdown() == first.to_markdown()
    with pytest.raises(DataError, match="no CalibrationReport: title"):
        CalibrationReport.from_json("{}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([], []), "there are no rows to report on"),
        (([one_hot(1)], [1, 2]), "1 grades and 2 gold"),
        (([one_hot(1), one_hot(2)], [1, 7]), "row 1: gold 7 is off the scale 0 … 4"),
        (([one_hot(1), one_hot(2, model="other")], [1, 2]), r"row 1: graded by another judge \(model\)"),
        (([one_hot(1), grade([0.5, 0.5], labels=("a", "b"))], [1, 1]), "row 1: its levels are not those of the first grade"),
        (([one_hot(1), 0.3], [1, 1]), "row 1: float among grades"),
        (([grade([0.5, 0.5], labels=("a", "b"), score=None)], [1]), "a choice has no order of levels"),
        (([[0.5, 0.5]], [1]), "plain scores must have shape"),
        ((["good"], [1]), "one number a row"),
    ],
)
def test_mistakes_are_named(arguments, said):
    with pytest.raises(CalibrationError, match=said):
        calibration_report(*arguments)


def test_ratings_and_options_are_checked():
    with pytest.raises(CalibrationError, match="row 0: rating 9 is off the scale"):
        calibration_report([one_hot(1)], [1], raters=[(9, 1)])
    with pytest.raises(CalibrationError, match="grades carry their own scale"):
        calibration_report([one_hot(1)], [1], n_levels=5)
    with pytest.raises(CalibrationError, match="leave labels out"):
        calibration_report([one_hot(1)], [1], labels=list("abcde"))
    with pytest.raises(CalibrationError, match="3 labels and n_levels is 5"):
        calibration_report([0.1], [1], labels=list("abc"), n_levels=5)


def test_a_raw_level_that_is_as_near_is_named():
    # The most probable level is gold itself; the expected level, between two levels, is not.
    grades = [grade([0.7 if j == i % 5 else 0.3 if j == (i + 1) % 5 else 0.0 for j in range(5)]) for i in range(60)]
    report = calibration_report(grades, [float(i % 5) for i in range(60)], n_resamples=50)
    assert by_name(report)["MAE"].most_probable.value == 0.0
    assert any(
        "most probable level, uncalibrated, is as near to the humans (0.00)" in each for each in report.gain_answer.details
    )
