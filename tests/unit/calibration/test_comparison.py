import numpy as np
import pytest
from scipy import stats

from isograde.calibration import compare_judged, compare_means
from isograde.errors import CalibrationError, StatisticsError


def pairs(n_rows=800, n=80, better=0.0, favour=0.0, seed=0):
    """Two systems' answers to the same questions, a judge of both, and gold of the first n pairs."""
    rng = np.random.default_rng(seed)
    quality = rng.uniform(0, 4, n_rows)
    gold_a = np.clip(np.round(quality + 0.5 * rng.normal(size=n_rows)), 0, 4)
    gold_b = np.clip(np.round(quality + better + 0.5 * rng.normal(size=n_rows)), 0, 4)
    a = np.clip(gold_a + 0.5 * rng.normal(size=n_rows), 0, 4) / 4
    b = np.clip(gold_b + favour + 0.5 * rng.normal(size=n_rows), 0, 4) / 4
    known = np.arange(n_rows) < n
    return a, b, np.where(known, gold_a, np.nan), np.where(known, gold_b, np.nan)


def test_labels_alone_are_the_paired_t_test():
    _, _, gold_a, gold_b = pairs(80, 80, better=0.3)
    found = compare_means(np.full(80, 0.5), np.full(80, 0.5), gold_a, gold_b, score_range=(0, 1))
    test = stats.ttest_rel(gold_b, gold_a)
    low, high = test.confidence_interval(0.95)
    assert (found.difference, found.low, found.high) == pytest.approx(((gold_b - gold_a).mean() / 4, low / 4, high / 4))
    assert found.p_value == pytest.approx(test.pvalue)
    assert (found.method, found.n_labelled, found.debiased) == ("label-only", 80, True)


def test_few_pairs_are_tested_by_sign_flips():
    gold_a = np.array([0, 1, 2, 0, 1, 2, 0, 3], dtype=float)
    gold_b = np.array([2, 2, 4, 3, 1, 3, 1, 2], dtype=float)
    found = compare_means(np.full(8, 0.5), np.full(8, 0.5), gold_a, gold_b, score_range=(0, 1))
    exact = stats.permutation_test(
        (gold_b, gold_a), lambda b, a: np.mean(b - a), permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert found.p_value == pytest.approx(exact.pvalue)


def test_whole_groups_are_flipped():
    # Three groups, all the other way round at once: 2 of 2³ patterns are as extreme
    gold_b = np.array([1, 2, 1, 1, 2, 2, 1, 1, 2], dtype=float)
    found = compare_means(
        np.full(9, 0.5), np.full(9, 0.5), np.zeros(9), gold_b, groups=np.repeat([0, 1, 2], 3), score_range=(0, 1)
    )
    assert found.p_value == pytest.approx(2 / 8)
    assert found.n_groups == 3


def test_a_judge_that_favours_b_does_not_make_it_better():
    found = compare_means(*pairs(favour=1.0), score_range=(0, 1))
    assert found.judge_only.low > 0.1
    assert found.low < 0 < found.high
    assert found.method == "prediction-powered"
    assert found.effective_n > 100


def test_the_judge_adds_to_the_labels():
    found = compare_means(*pairs(better=0.5), score_range=(0, 1))
    assert found.high - found.low < 0.85 * (found.label_only.high - found.label_only.low)
    assert found.low > 0
    assert found.p_value < 0.001


def test_only_pairs_with_both_labels_count():
    a, b, gold_a, gold_b = pairs()
    gold_a[:30], gold_b[50:80] = np.nan, np.nan
    assert compare_means(a, b, gold_a, gold_b, score_range=(0, 1)).n_labelled == 20


def test_what_could_have_been_shown():
    # Student's t: half the interval × (1 + t₀.₈ ÷ t₀.₉₇₅)
    a, b, gold_a, gold_b = pairs()
    found = compare_means(a, b, gold_a, gold_b, score_range=(0, 1))
    at_error, at_power = stats.t.ppf([0.975, 0.8], 79)
    assert found.detectable == pytest.approx((found.high - found.low) / 2 * (1 + at_power / at_error))


def test_without_labels_it_is_the_judges_difference():
    a, b, _, _ = pairs(favour=0.4)
    found = compare_judged(a, b, score_range=(0, 1))
    test = stats.ttest_rel(b, a)
    low, high = test.confidence_interval(0.95)
    assert (found.difference, found.low, found.high) == pytest.approx(((b - a).mean(), low, high))
    assert (found.debiased, found.label_only) == (False, None)


def test_systems_that_say_the_same():
    same = np.linspace(0, 1, 30)
    found = compare_judged(same, same, score_range=(0, 1))
    assert (found.difference, found.p_value) == (0.0, 1.0)


def test_probabilities_and_scores_are_the_same():
    rng = np.random.default_rng(3)
    a, b = rng.dirichlet(np.ones(5), 200), rng.dirichlet(np.ones(5), 200)
    gold = rng.integers(0, 5, 200).astype(float)
    gold[60:140] = np.nan
    levels = np.arange(5)
    from_scores = compare_means(a @ levels, b @ levels, gold, gold[::-1], score_range=(0, 4))
    found = compare_means(a, b, gold, gold[::-1])
    assert (found.low, found.high) == pytest.approx((from_scores.low, from_scores.high))
    assert found.judge_only.mean == pytest.approx(from_scores.judge_only.mean)


def test_what_is_refused():
    a, b, gold_a, gold_b = pairs()
    with pytest.raises(StatisticsError, match="gold labels on both sides"):
        compare_means(a, b, gold_a, np.roll(gold_b, 100), score_range=(0, 1))
    with pytest.raises(CalibrationError, match="differ in form"):
        compare_means(a, b[:-1], gold_a, gold_b, score_range=(0, 1))
    with pytest.raises(CalibrationError, match="no unit without score_range"):
        compare_judged(a, b)
    with pytest.raises(StatisticsError, match="no pairs"):
        compare_judged([], [], score_range=(0, 1))
