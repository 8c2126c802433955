import numpy as np
import pytest
from scipy import stats

from isograde.calibration import estimate_mean, estimate_pass_rate, mean_limit
from isograde.errors import CalibrationError, StatisticsError


def unlabelled_after(gold, n_rows):
    """Gold of the first rows, none after."""
    return [*map(float, gold), *([None] * (n_rows - len(gold)))]


def judged(n_rows=600, n=60, seed=0):
    """A good judge of n labelled rows among many."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 5, n_rows)
    score = np.clip(gold + 0.6 * rng.normal(size=n_rows), 0, 4) / 4
    return score, unlabelled_after(gold[:n], n_rows), gold


LEVELS = [0, 1, 1, 2, 3, 4, 2, 3, 0]


def test_few_labels_alone_are_students_t():
    # Nine groups are too few for a judge: the interval is that of scipy's one-sample t.
    score = np.linspace(0, 1, 50)
    found = estimate_mean(score, unlabelled_after(LEVELS, 50), score_range=(0, 1))
    low, high = stats.ttest_1samp(LEVELS, 0).confidence_interval(0.95)
    assert (found.low, found.mean, found.high) == pytest.approx((low, np.mean(LEVELS), high))
    assert (found.method, found.trust, found.effective_n) == ("label-only", 0.0, 9.0)
    assert found.judge_mean == pytest.approx(2.0)
    assert found.label_only.low == found.low


def test_groups_are_the_units():
    # Eight groups of three: beside mean_limit, the one-sided limit that the metrics use, at 0.975.
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 5, 24)
    groups = np.repeat(np.arange(8), 3)
    found = estimate_mean(np.full(24, 0.5), gold, groups=groups, score_range=(0, 1))
    limit = mean_limit(gold, groups=groups, confidence_level=0.975)
    assert (found.mean, found.high) == pytest.approx((limit.mean, limit.upper))
    assert found.n_groups == 8


def test_unequal_groups_have_fewer_degrees_of_freedom():
    # Weights 5, 1, 1, 1, 1, 1 of 10 give 100 ÷ 30 groups: t with 2.33 degrees of freedom, and the error of mean_limit's formula.
    gold = np.array([2, 2, 3, 1, 2, 0, 4, 1, 3, 2])
    groups = [0, 0, 0, 0, 0, 1, 2, 3, 4, 5]
    found = estimate_mean(np.full(10, 0.5), gold, groups=groups, score_range=(0, 1))
    totals = np.bincount(groups, gold - gold.mean())
    error = np.sqrt(6 / 5 * (totals**2).sum()) / 10
    assert found.standard_error == pytest.approx(error)
    assert found.high == pytest.approx(gold.mean() + stats.t.ppf(0.975, 100 / 30 - 1) * error)


def test_a_judge_that_says_the_same_of_everything_changes_nothing():
    gold = [0, 1, 2, 3, 4] * 8
    found = estimate_mean(np.full(1000, 0.7), unlabelled_after(gold, 1000), score_range=(0, 1))
    low, high = stats.ttest_1samp(gold, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.trust == 0.0


def test_a_good_judge_narrows_the_interval():
    score, gold, truth = judged()
    found = estimate_mean(score, gold, score_range=(0, 1))
    assert found.method == "prediction-powered"
    assert found.low < truth.mean() < found.high
    own, alone = found.high - found.low, found.label_only.high - found.label_only.low
    # ρ² is about 2 ÷ (2 + 0.36): the interval shrinks to about √(1 − ρ² 540 ÷ 600), the labels' worth grows by its inverse square
    assert 0.40 < own / alone < 0.58
    assert found.effective_n / 60 == pytest.approx((alone / own) ** 2)


def test_a_turned_round_judge_is_ignored():
    score, gold, _ = judged()
    found = estimate_mean(1 - score, gold, score_range=(0, 1))
    assert found.method == "label-only"
    assert found.mean == pytest.approx(np.mean([level for level in gold if level is not None]))


def test_where_nearly_all_labels_are_alike_the_interval_is_bounded():
    gold = [4] * 38 + [3, 1]
    found = estimate_mean(np.full(500, 0.9), unlabelled_after(gold, 500), score_range=(0, 1))
    assert found.method == "bounded"
    assert "too few labels differ" in found.reason
    assert found.low < 3.6 < found.high < 4.0
    wider = estimate_mean(np.full(500, 0.9), unlabelled_after(gold, 500), score_range=(0, 1), bounded="betting")
    assert wider.low < found.low


def test_labels_all_alike_are_no_certainty():
    # Clopper–Pearson: 0.025 to the power of 1 ÷ 40
    found = estimate_mean(np.full(500, 0.9), unlabelled_after([4] * 40, 500), score_range=(0, 1))
    assert found.low == pytest.approx(4 * 0.025 ** (1 / 40), abs=1e-5)
    assert found.high == 4.0


def test_the_mean_of_this_set_is_known_better():
    gold = [0, 1, 2, 3, 4] * 8
    whole = estimate_mean(np.full(50, 0.5), unlabelled_after(gold, 50), score_range=(0, 1))
    these = estimate_mean(np.full(50, 0.5), unlabelled_after(gold, 50), score_range=(0, 1), estimand="set")
    # 40 of 50 are labelled: finite-population correction √(1 − 40 ÷ 50)
    assert these.high - these.low == pytest.approx((whole.high - whole.low) * np.sqrt(0.2))
    all_of_them = estimate_mean(np.full(40, 0.5), gold, score_range=(0, 1), estimand="set")
    assert (all_of_them.low, all_of_them.mean, all_of_them.high, all_of_them.method) == (2.0, 2.0, 2.0, "census")


def test_known_rows_bound_the_mean_of_this_set():
    # 18 of 20 rows are known to be 4: whatever the two others are, the mean is at least 3.6
    found = estimate_mean(np.full(20, 0.5), unlabelled_after([4] * 18, 20), score_range=(0, 1), estimand="set")
    assert 3.6 <= found.low < found.high == 4.0


def test_unequal_inclusion_is_weighted():
    # Hájek: (0 × 2 + 4 × 4 + 1 × 2) ÷ (2 + 4 + 2)
    gold = [0.0, 4.0, 1.0, None]
    found = estimate_mean([0.1, 0.2, 0.3, 0.4], gold, score_range=(0, 1), inclusion_probabilities=[0.5, 0.25, 0.5, 1.0])
    assert found.mean == pytest.approx(18 / 8)


def test_the_same_input_gives_the_same_result():
    score, gold, _ = judged()
    assert estimate_mean(score, gold, score_range=(0, 1)) == estimate_mean(score, np.array(gold, dtype=float), score_range=(0, 1))


def test_the_pass_rate_of_few_failures_is_clopper_and_pearsons():
    gold = [4] * 36 + [2] * 4
    found = estimate_pass_rate(np.full(400, 0.8), unlabelled_after(gold, 400), score_range=(0, 1))
    exact = stats.binomtest(36, 40).proportion_ci(0.95, method="exact")
    assert (found.mean, found.low, found.high) == pytest.approx((0.9, exact.low, exact.high), abs=1e-5)


def test_rogan_gladen_by_hand():
    # The judge passes 120 of 400. Of 10 that people pass it passes 8, of 20 that they fail it passes 2: sensitivity 0.8, specificity
    # 0.9, so the rate is (0.3 + 0.9 − 1) ÷ 0.7 = 0.2857, with variance
    # (0.3 × 0.7 ÷ 400 + 0.2857² × 0.8 × 0.2 ÷ 10 + 0.7143² × 0.9 × 0.1 ÷ 20) ÷ 0.7² = 0.008422, an error of 0.09177.
    score = [0.9] * 8 + [0.1] * 2 + [0.9] * 2 + [0.1] * 18 + [0.9] * 110 + [0.1] * 260
    gold = unlabelled_after([4] * 10 + [0] * 20, 400)
    found = estimate_pass_rate(score, gold, score_range=(0, 1))
    assert found.judge_mean == pytest.approx(0.3)
    textbook = found.rogan_gladen
    assert (textbook.mean, textbook.high) == pytest.approx((0.2857, 0.2857 + 1.96 * 0.09177), abs=2e-4)


def test_a_useless_judge_has_no_rogan_gladen_rate():
    found = estimate_pass_rate(np.full(30, 0.9), unlabelled_after([0, 4] * 6, 30), score_range=(0, 1))
    assert found.rogan_gladen is None


def test_without_a_range_plain_scores_only_order():
    score, gold, truth = judged()
    found = estimate_mean(100 * score, gold)
    assert found.judge_mean is None
    assert found.low < truth.mean() < found.high


@pytest.mark.parametrize(
    ("gold", "more", "error", "said"),
    [
        ([None, None], {}, StatisticsError, "no row has a gold label"),
        ([1.0], {}, CalibrationError, "None where unlabelled"),
        ([1.0, 5.0], {}, CalibrationError, "row 1: gold 5 is off the scale 0 … 4"),
        (["a", None], {}, CalibrationError, "gold must be numbers"),
        (
            [1.0, None],
            {"inclusion_probabilities": [0.0, 1.0]},
            CalibrationError,
            r"row 0: inclusion probability 0 is not in \(0, 1\]",
        ),
        ([1.0, None], {"inclusion_probabilities": [0.5]}, CalibrationError, "inclusion_probabilities have shape"),
        ([1.0, None], {"inclusion_probabilities": [1.0, 1.0], "estimand": "set"}, CalibrationError, "correct the probabilities"),
    ],
)
def test_what_is_refused(gold, more, error, said):
    with pytest.raises(error, match=said):
        estimate_mean([0.1, 0.9], gold, score_range=(0, 1), **more)
