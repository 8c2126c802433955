"""Agreement against published worked examples and other implementations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr, ttest_1samp
from sklearn.metrics import cohen_kappa_score

from isograde.calibration import (
    alternative_annotator_test,
    human_yardstick,
    kendall_tau_b,
    krippendorff_alpha,
    quadratic_weighted_kappa,
    spearman,
)
from isograde.errors import CalibrationError

NA = None
# Krippendorff (2011), section C: four observers, twelve units.
KRIPPENDORFF_2011 = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NA, NA, NA],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NA, 3],
    [NA, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NA],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NA],
]
# The example of Wikipedia, «Krippendorff's alpha»: three coders, fifteen units.
WIKIPEDIA = [
    [NA, NA, NA, NA, NA, 3, 4, 1, 2, 1, 1, 3, 3, NA, 3],
    [1, NA, 2, 1, 3, 3, 4, 3, NA, NA, NA, NA, NA, NA, NA],
    [NA, NA, 2, 1, 3, 4, 4, NA, 2, 1, 1, 3, 3, NA, 4],
]


@pytest.mark.parametrize(
    ("observers", "metric", "published"),
    [
        (KRIPPENDORFF_2011, "nominal", 0.743),
        (KRIPPENDORFF_2011, "ordinal", 0.815),
        (KRIPPENDORFF_2011, "interval", 0.849),
        (WIKIPEDIA, "nominal", 0.691),
        (WIKIPEDIA, "interval", 0.811),
    ],
)
def test_krippendorff_alpha_as_published(observers, metric, published):
    assert krippendorff_alpha(np.array(observers, dtype=object).T, metric=metric).value == pytest.approx(published, abs=5e-4)


def test_krippendorff_alpha_where_it_is_not_defined():
    assert krippendorff_alpha([[1, NA], [NA, 2]]).reason == "no item has two ratings"
    assert krippendorff_alpha([[1, 1], [1, NA]]).reason == "all ratings are the same"


@pytest.mark.parametrize("seed", range(8))
def test_quadratic_weighted_kappa_equals_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 5, 40)
    b = np.clip(a + rng.integers(-2, 3, 40), 0, 4)
    theirs = cohen_kappa_score(a, b, weights="quadratic", labels=range(5))
    assert quadratic_weighted_kappa(a, b, n_levels=5).value == pytest.approx(theirs, abs=1e-12)


def test_quadratic_weighted_kappa_of_a_table_by_hand():
    # 10 items at (0, 0), 5 at (1, 1), 5 at (0, 1). Observed Σ w p = 5/20. Chance: P(0)P(1) = 15/20 · 10/20 + 5/20 · 10/20 = ½.
    first = [0] * 10 + [1] * 5 + [0] * 5
    second = [0] * 10 + [1] * 5 + [1] * 5
    assert quadratic_weighted_kappa(first, second, n_levels=2).value == pytest.approx(1 - 0.25 / 0.5)
    assert quadratic_weighted_kappa([2, 2], [2, 2], n_levels=5).value is None
    assert quadratic_weighted_kappa([], [], n_levels=5).reason == "no rows"
    with pytest.raises(CalibrationError, match="off the scale"):
        quadratic_weighted_kappa([5], [0], n_levels=5)


def test_rank_correlations_equal_scipy():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 5, 50), rng.integers(0, 5, 50)
    assert spearman(a, b).value == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)
    assert kendall_tau_b(a, b).value == pytest.approx(kendalltau(a, b, variant="b").statistic, abs=1e-12)


def test_human_yardstick_by_hand():
    # Item 1, ratings 2, 2, 4, judge 3. Held out 2: the median of 2 and 4 is 3, off by 1; judge off by 1 (twice). Held out 4: the
    # median is 2, off by 2; judge off by 1.
    # Item 2, ratings 0 and 1, judge 1. Held out 0: 1, judge 1. Held out 1: 1, judge 0. Item 3 has one rating and is left out.
    yardstick = human_yardstick([[2, 2, 4], [0, 1, NA], [NA, NA, 3]], [3, 1, 0])
    assert yardstick.human_mae.value == pytest.approx((1 + 1 + 2 + 1 + 1) / 5)
    assert yardstick.judge_mae.value == pytest.approx((1 + 1 + 1 + 1 + 0) / 5)
    # Ties: three; nearer: two.
    assert yardstick.judge_nearer.value == pytest.approx((0.5 * 3 + 2) / 5)
    assert (yardstick.n_items, yardstick.n_raters, yardstick.judge_mae.n) == (2, 3, 5)


def test_human_yardstick_without_a_second_rater():
    assert human_yardstick([[1, NA], [2, NA]], [1, 2]).human_mae.reason == "no rows"


def follow_the_published_procedure(ratings, judge, epsilon):
    """The steps of Calderon, Reichart & Dror (2025), section 3, one rater and one item at a time, with SciPy's t-test."""
    p_values, advantages = [], []
    for rater in range(ratings.shape[1]):
        ahead, behind = [], []
        for row, said in zip(ratings, judge, strict=True):
            others = [r for j, r in enumerate(row) if j != rater and np.isfinite(r)]
            if not np.isfinite(row[rater]) or not others:
                continue
            human = -np.sqrt(np.mean([(row[rater] - r) ** 2 for r in others]))
            machine = -np.sqrt(np.mean([(said - r) ** 2 for r in others]))
            ahead.append(machine >= human)
            behind.append(int(human >= machine) - int(machine >= human))
        p_values.append(ttest_1samp(behind, epsilon, alternative="less").pvalue)
        advantages.append(np.mean(ahead))
    order = np.argsort(p_values)
    m = len(p_values)
    harmonic = sum(1 / i for i in range(1, m + 1))
    passing = [i for i, p in enumerate(np.array(p_values)[order], start=1) if p <= i / m * 0.05 / harmonic]
    return p_values, max(passing, default=0) / m, np.mean(advantages)


@pytest.mark.parametrize(("seed", "noise"), [(0, 0.3), (1, 0.8), (2, 1.5)])
def test_alternative_annotator_test_follows_the_paper(seed, noise):
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0, 4, 70)
    ratings = np.clip(np.round(truth[:, None] + rng.normal(size=(70, 4)) * [0.5, 0.7, 0.9, 1.2]), 0, 4)
    ratings[rng.uniform(size=ratings.shape) < 0.15] = np.nan
    judge = np.clip(np.round(truth + noise * rng.normal(size=70)), 0, 4)
    result = alternative_annotator_test(ratings, judge, epsilon=0.1)
    p_values, winning_rate, advantage = follow_the_published_procedure(ratings, judge, 0.1)
    np.testing.assert_allclose([rater.p_value for rater in result.raters], p_values, rtol=1e-9)
    assert result.winning_rate.value == pytest.approx(winning_rate)
    assert result.advantage.value == pytest.approx(advantage)


def test_alternative_annotator_test_without_enough_items():
    result = alternative_annotator_test([[1, 2]] * 29, [1] * 29)
    assert result.winning_rate.value is None
    assert "30 items" in result.winning_rate.reason


@pytest.mark.parametrize(
    ("ratings", "message"),
    [
        ([1, 2], "must have shape"),
        ([["good"]], "must be numbers"),
        ([[1, np.inf]], "row 0: a rating is infinite"),
    ],
)
def test_ratings_that_are_none_are_refused(ratings, message):
    with pytest.raises(CalibrationError, match=message):
        krippendorff_alpha(ratings)
