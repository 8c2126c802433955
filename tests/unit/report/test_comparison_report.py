"""Reports of comparisons and of means, in all their forms."""

import numpy as np
import pytest

from isograde.calibration import compare_judged, compare_means, estimate_mean, estimate_pass_rate
from isograde.report.comparison import ChangedItem, ComparedSlice, ComparisonReport, Pairing, comparison_report
from isograde.report.mean import MeanReport, mean_report
from isograde.report.parts import Estimate

HOSTILE = "<script>alert(1)</script>|\u202e`*x*`"


def pairing(**counts):
    known = dict.fromkeys(["only_a", "only_b", "failed_a", "failed_b", "n_lost", "n_gold_a", "n_gold_b"], 0)
    return Pairing(name_a=HOSTILE, name_b="new", n_a=100, n_b=100, **(known | counts))


def compared(better=0.0):
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 4, 100).astype(float)
    return compare_means(gold / 4, (gold + better) / 4, gold, gold + better, score_range=(0, 1))


def report(found=None, **counts):
    few = Estimate(value=None, n=2, reason="fewer than 5 labelled pairs")
    part = ComparedSlice(column=HOSTILE, value="x", n_pairs=2, n_labelled=2, difference=few, p_adjusted=None, shown=False)
    item = ChangedItem(id=HOSTILE, score_a=0.1, score_b=0.9, gold_a=None, gold_b=1.0)
    return comparison_report(found or compared(), pairing(**counts), slices=(part,), changed=(item,))


def test_it_reads_back():
    made = report()
    assert ComparisonReport.from_json(made.to_json()) == made


@pytest.mark.parametrize("form", ["to_html", "to_markdown"])
def test_nothing_in_it_acts(form):
    text = getattr(report(), form)()
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert "not debiased" in text  # the judge's own difference is shown, and named


def test_sentences():
    assert report(compared(1.0)).answer.sentence.startswith("B is better than A: B − A is +0.250")
    assert report().answer.sentence.startswith("No difference between A and B is shown: B − A is 0.000")
    turned = compare_means([0.5] * 30, [0.2] * 30, [3.0] * 15 + [4.0] * 15, [1.0] * 30, score_range=(0, 1))
    assert report(turned).answer.sentence.startswith("B is worse than A")


def test_without_gold_the_title_says_so():
    found = compare_judged([0.2, 0.4, 0.5], [0.3, 0.6, 0.9], score_range=(0, 1))
    made = report(found, n_gold_a=3)
    assert made.title.startswith("Judge difference, not debiased")
    assert "3 pairs have a gold label on A's side, 0 on B's" in made.answer.details[0]
    assert made.label_only is None


def test_lost_pairs_bound_the_difference():
    # 100 pairs at +0.25 and 25 lost: (100 × 0.25 ∓ 25) ÷ 125
    made = report(compared(1.0), n_lost=25)
    assert made.bounds == pytest.approx((0.0, 0.4))
    assert "25 rows (20.0 %) are in no pair" in " ".join(made.answer.details)


def test_a_mean_reads_back_and_says_what_the_judge_misses():
    gold = [0.0, 1.0, 2.0, 3.0, 4.0] * 8
    score = [min(level / 4 + 0.3, 1.0) for level in gold] * 3
    labels = [*gold, *([None] * 80)]
    mean, rate = (estimate(score, labels, score_range=(0, 1)) for estimate in (estimate_mean, estimate_pass_rate))
    made = mean_report(mean, rate, n_levels=5, pass_at=0.75, n_failed=30, title=HOSTILE)
    assert MeanReport.from_json(made.to_json()) == made
    assert made.mean.value == pytest.approx(0.5, abs=0.01)
    assert "too lenient" in made.mean_answer.details[1]
    # 120 graded rows and 30 that may be 0 or 1: 120 × 0.5 ÷ 150 = 0.4 to 0.6
    assert made.mean_bounds == pytest.approx((0.4, 0.6), abs=0.01)
    for text in (made.to_html(), made.to_markdown()):
        assert "<script>alert" not in text
        assert "Rogan–Gladen" in text
