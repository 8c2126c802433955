"""The table of signals: figures that other routines give too, and sentences that follow from them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr, ttest_1samp

from isograde.calibration import Calibrator, SignalCalibrator, cross_fit, crps_values, grouped_folds
from isograde.errors import CalibrationError
from isograde.report import CalibrationReport, Cost, calibration_report, signal_table


def labelled(n=150, seed=0, **noise):
    """Signals that follow gold, each with noise of its own."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 5, n)
    return {name: np.clip(gold / 4 + rng.normal(0, spread, n), 0, 1) for name, spread in noise.items()}, gold


def by_name(table):
    return {row.name: row for row in table.rows}


def test_a_signal_alone_is_a_cross_fit_of_its_own():
    signals, gold = labelled(a=0.2, b=0.5)
    rows = by_name(signal_table(signals, gold))
    losses = {}
    for name, score in signals.items():
        # n_subsamples draw their halves from another stream here, so the figures are near and not the same.
        cross = cross_fit(score, gold, calibrator=Calibrator(score_range=(0, 1)), rng=0)
        losses[name] = crps_values(cross.distribution, cross.support, gold)
        assert rows[name].rps.value == pytest.approx(losses[name].mean(), abs=0.01)
        assert rows[name].mae.value == pytest.approx(np.abs(cross.median - gold).mean(), abs=0.03)
        assert rows[name].spearman.value == pytest.approx(spearmanr(score, gold).statistic)
    interval = ttest_1samp(losses["b"] - losses["a"], 0).confidence_interval()
    change = rows["b"].rps_difference
    assert (change.low, change.high) == pytest.approx((interval.low, interval.high), abs=0.02)
    assert change.value == pytest.approx(rows["b"].rps.value - rows["a"].rps.value)
    assert rows["b"].mae_difference.value == pytest.approx(rows["b"].mae.value - rows["a"].mae.value)
    assert rows["b"].spearman_difference.value == pytest.approx(rows["b"].spearman.value - rows["a"].spearman.value)
    assert rows["a"].rps_difference is None


def test_lines_and_the_blend():
    signals, gold = labelled(40, rubric=0.3, claim_f1=0.3, similarity=0.6)
    table = signal_table(signals, gold)
    assert [(row.name, row.kind) for row in table.rows] == [
        ("rubric", "signal"),
        ("claim_f1", "signal"),
        ("similarity", "signal"),
        ("0.75/0.25 blend", "blend"),
        ("index", "index"),
    ]
    mixed = 0.75 * signals["claim_f1"] + 0.25 * signals["similarity"]
    assert by_name(table)["0.75/0.25 blend"].spearman.value == pytest.approx(spearmanr(mixed, gold).statistic)
    assert sum(row.share or 0 for row in table.rows) == pytest.approx(1)


def test_the_index_is_measured_on_groups_that_its_weights_never_saw():
    signals, gold = labelled(60, a=0.4, b=0.4)
    groups = np.arange(60) // 2
    fold = grouped_folds(groups, rng=0)
    index = np.empty(60)
    for held_out in range(10):
        rows = fold == held_out
        others = {name: column[~rows] for name, column in signals.items()}
        fitted = SignalCalibrator().fit(others, gold[~rows], groups=groups[~rows])
        index[rows] = fitted.weights_["a"] * signals["a"][rows] + fitted.weights_["b"] * signals["b"][rows]
    table = signal_table(signals, gold, groups=groups)
    assert table.rows[-1].spearman.value == pytest.approx(spearmanr(index, gold).statistic, abs=1e-12)


def test_costs_count_a_shared_part_once():
    signals, gold = labelled(60, claim_f1=0.2, recall=0.3, rubric=0.3, similarity=0.4)
    claims = {"claims": Cost(tokens=300, seconds=1.0), "verdicts": Cost(tokens=500, seconds=0.5)}
    costs = {
        "claim_f1": claims,
        "recall": claims,
        "rubric": {"rubric": Cost(tokens=100, seconds=None)},
        "similarity": {"similarity": Cost(tokens=0, seconds=0.25)},
    }
    rows = by_name(signal_table(signals, gold, costs=costs))
    assert (rows["recall"].tokens, rows["recall"].seconds) == (800, 1.5)
    assert (rows["0.75/0.25 blend"].tokens, rows["0.75/0.25 blend"].seconds) == (800, 1.75)
    needed = [name for name in signals if rows[name].share]
    assert rows["index"].tokens == 800 * bool({"claim_f1", "recall"} & {*needed}) + 100 * ("rubric" in needed)
    assert rows["index"].seconds is None


def test_own_blend_and_no_costs():
    signals, gold = labelled(20, a=0.2, b=0.2)
    table = signal_table(signals, gold, blend={"a": 0.5, "b": 0.5})
    assert table.rows[2].name == "0.5/0.5 blend"
    assert all(row.tokens is None and row.seconds is None for row in table.rows)
    assert signal_table(signals, gold, blend={"a": 0.5, "b": 0.5}) == table


def test_rows_without_a_signal_are_left_out_of_every_line():
    signals, gold = labelled(60, a=0.2, b=0.3)
    gaps = {"a": [None if i < 3 else x for i, x in enumerate(signals["a"])], "b": signals["b"].copy()}
    gaps["b"][[2, 5]] = np.nan
    table = signal_table(gaps, gold)
    assert (table.n, table.n_left_out, table.missing) == (56, 4, (("a", 3), ("b", 2)))
    kept = [i for i in range(60) if i not in {0, 1, 2, 5}]
    assert table.rows == signal_table({name: column[kept] for name, column in signals.items()}, gold[kept]).rows


def test_groups_are_what_varies():
    signals, gold = labelled(60, a=0.2, b=0.5)
    # Each row three times, as one group: no more is known than from the sixty.
    tripled = {name: np.repeat(column, 3) for name, column in signals.items()}
    table = signal_table(tripled, np.repeat(gold, 3), groups=[f"g{i // 3}" for i in range(180)])
    alone = signal_table(signals, gold)
    assert (table.n, table.n_groups) == (180, 60)
    width, single = (by_name(each)["b"].rps_difference for each in (table, alone))
    assert width.high - width.low == pytest.approx(single.high - single.low, rel=0.25)


@pytest.mark.parametrize(
    ("noise", "said", "shown"),
    [
        ({"a": 0.3, "b": 0.3}, "Use the index: it is nearer to the humans than a by 0.", "nearer"),
        ({"a": 0.1, "b": 0.9}, "Use a: nothing is shown to be nearer to the humans on these 200 rows.", None),
        ({"a": 0.9, "b": 0.1}, "Use ", "nearer"),
    ],
)
def test_which_to_use(noise, said, shown):
    signals, gold = labelled(200, **noise)
    table = signal_table(signals, gold)
    assert table.answer.sentence.startswith(said)
    assert table.rows[-1].shown == shown


def test_no_difference():
    rng = np.random.default_rng(3)
    table = signal_table({"a": rng.random(60), "b": rng.random(60)}, rng.integers(0, 5, 60))
    assert table.answer.sentence == "No difference is shown on these 60 rows; stay with a."
    signals, gold = labelled(100, a=0.1)
    costs = {"a": {"a": Cost(tokens=10, seconds=0.5)}, "b": {"b": Cost(tokens=5, seconds=0.1)}}
    table = signal_table({"a": signals["a"], "b": signals["a"]}, gold, costs=costs)
    assert table.answer.sentence == (
        "No difference is shown on these 100 rows; stay with a, at 10 tokens and 0.50 s a row, or take b, the cheapest not shown to be "
        "further, at 5 tokens and 0.10 s."
    )
    assert table.answer.details[0] == "Fewer tokens and not shown to be further, which is no proof of being as good: b."


@pytest.mark.parametrize(
    ("n", "groups", "said"),
    [
        (0, None, "Not known: 0 rows with every signal in 0 groups cannot be split to fit and to measure."),
        (1, None, "Not known: 1 row with every signal in 1 group cannot be split to fit and to measure."),
        (9, None, "Not known yet: 9 labels are too few to compare signals; label 50 or more."),
        (30, ["q"] * 30, "Not known: 30 rows with every signal in 1 group cannot be split to fit and to measure."),
    ],
)
def test_too_few(n, groups, said):
    signals, gold = labelled(n, a=0.2, b=0.3)
    assert signal_table(signals, gold, groups=groups).answer.sentence == said


def test_one_signal():
    signals, gold = labelled(30, a=0.2)
    table = signal_table(signals, gold)
    assert table.answer.sentence == "There is one signal only, a; name others to compare it with."
    assert len(table.rows) == 1


def test_few_groups_are_named():
    signals, gold = labelled(60, a=0.2, b=0.5)
    table = signal_table(signals, gold, groups=[i % 6 for i in range(60)])
    assert table.answer.details[-1] == "The labels are in 6 groups only, so every interval here is rough."


@pytest.mark.parametrize(
    ("signals", "said"),
    [
        ({}, "there is no signal"),
        ({"a": [0.1]}, r"signal a has shape \(1,\) and there are 2"),
        ({"a": [None, 2]}, "row 1: signal a is 2; signals lie in 0 … 1, so rescale it"),
    ],
)
def test_what_does_not_fit(signals, said):
    with pytest.raises(CalibrationError, match=said):
        signal_table(signals, [0, 1])


def test_every_form_of_the_report_shows_it():
    signals, gold = labelled(60, rubric=0.2, claim_f1=0.3)
    costs = {"rubric": {"rubric": Cost(tokens=120, seconds=0.25)}, "claim_f1": {"claims": Cost(tokens=1000, seconds=None)}}
    gaps = {"rubric": signals["rubric"], "claim_f1": [None, *signals["claim_f1"][1:]], "<b>x": signals["rubric"]}
    table = signal_table(gaps, gold, costs=costs)
    report = calibration_report(signals["rubric"], gold.tolist(), score_range=(0, 1), signals=table, n_resamples=50)
    assert CalibrationReport.from_json(report.to_json()) == report
    markdown, page = report.to_markdown(), report.to_html()
    assert "## What is each signal worth?" in markdown
    assert "| 120 | 0.250 |" in markdown
    assert "1 row left out of every line for want of a signal: claim\\_f1 (1)." in markdown
    assert "What is each signal worth?" in page
    assert "<b>x" not in page + markdown
    plain = calibration_report(signals["rubric"], gold.tolist(), score_range=(0, 1), n_resamples=50)
    assert plain.signal_table is None
    assert "What is each signal worth?" not in plain.to_markdown() + plain.to_html()
    # A report that an older isograde wrote has no such field.
    older = {name: value for name, value in plain.model_dump().items() if name != "signal_table"}
    assert CalibrationReport.model_validate(older) == plain
