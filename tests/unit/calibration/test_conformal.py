"""Prediction intervals: the definition by another way, edge cases, files."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from isograde.calibration import Calibrator, cross_intervals
from isograde.calibration.conformal import grown_before
from isograde.errors import CalibrationError, StatisticsError


def labelled(n, *, seed=0, noise=0.8):
    """Scores of a fair judge on 0–4, whole gold."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 5, n).astype(float)
    return np.clip(gold + noise * rng.normal(size=n), 0, 4), gold


def fitted(score, gold, **changes):
    return Calibrator(score_range=(0, 4), n_subsamples=6).fit(score, gold, **changes)


NEW = np.linspace(-1, 5, 61)


def test_an_interval_grows_by_the_likelier_neighbour():
    # From 3 (0.4) to 2 (0.3 beats 0.1), then to 4 (0.1 beats 0.05), then to 1 and 0.
    before = grown_before(np.array([[0.15, 0.05, 0.3, 0.4, 0.1]]), np.arange(5.0))
    np.testing.assert_allclose(before, [[0.85, 0.8, 0.4, 0.0, 0.7]])
    np.testing.assert_array_equal(grown_before(np.array([[1.0]]), np.zeros(1)), [[0.0]])


def test_values_between_levels_share_what_is_near():
    # Masses of 0 ½ 1 2, nearness 1, ½ at half a level, 0 at one: near 0 (0.3 + 0.05) ÷ 1.5 = 0.233, near ½ (0.15 + 0.1 + 0.1) ÷ 2
    # = 0.175, near 1 (0.05 + 0.2) ÷ 1.5 = 0.167, near 2 its own 0.4. So from 2 to its only neighbour 1, then ½, then 0.
    before = grown_before(np.array([[0.3, 0.1, 0.2, 0.4]]), np.array([0, 0.5, 1, 2]))
    np.testing.assert_allclose(before, [[0.7, 0.6, 0.4, 0.0]])
    # Near 0 and near 1 (0.3 + 0.1) ÷ 1.5 = 0.267, near ½ (0.15 + 0.2 + 0.15) ÷ 2 = 0.25, near 2 0.2: from 0 upwards.
    before = grown_before(np.array([[0.3, 0.2, 0.3, 0.2]]), np.array([0, 0.5, 1, 2]))
    np.testing.assert_allclose(before, [[0.0, 0.3, 0.5, 0.8]])


def by_definition(file, score, confidence_level):
    """The set of CV+ from what is stored, one comparison at a time (Barber et al. 2021; Romano et al. 2020, eq. 12)."""
    support, folds = file["support"], file["intervals"]["folds"]
    inside = []
    for j in range(len(support)):
        as_high = 0.0
        for fold in folds:
            cdf = [np.interp(score, fold["knots"], [row[k] / 1000 for row in fold["cdf"]]) for k in range(len(support) - 1)]
            mass = np.diff([0, *cdf, 1])
            low = high = int(np.argmax(mass))
            before = 0.0
            while not low <= j <= high:
                before = mass[low : high + 1].sum()
                left = mass[low - 1] if low > 0 else -1
                right = mass[high + 1] if high < len(support) - 1 else -1
                low, high = (low - 1, high) if left > right else (low, high + 1)
            own = round(500 * before)
            as_high += sum(weight for label, weight in zip(fold["score"], fold["weight"], strict=True) if label >= own)
        inside.append(as_high + 1 > (1 - confidence_level) * (file["intervals"]["n_groups"] + 1) + 1e-9)
    return support[inside.index(True)], support[len(support) - 1 - inside[::-1].index(True)]


@pytest.mark.parametrize("confidence_level", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_definition(confidence_level, grouped):
    score, gold = labelled(45)
    calibrator = fitted(score, gold, groups=np.arange(45) // 3 if grouped else None)
    file = json.loads(calibrator.to_json())
    found = calibrator.predict_interval(NEW, confidence_level)
    expected = [by_definition(file, each, confidence_level) for each in NEW]
    np.testing.assert_array_equal(np.column_stack([found.low, found.high]), expected)
    assert file["intervals"]["n_groups"] == (15 if grouped else 45)
    # Every group counts once, however its labels share it.
    assert sum(sum(fold["weight"]) for fold in file["intervals"]["folds"]) == pytest.approx(15 if grouped else 45, abs=1e-3)


def test_no_fold_scores_its_own_labels():
    score, gold = labelled(40, seed=1)
    groups = np.arange(40) // 2
    first = json.loads(fitted(score, gold, groups=groups).to_json())["intervals"]["folds"]
    changed = gold.copy()
    changed[:2] = (changed[:2] + 2) % 5
    second = json.loads(fitted(score, changed, groups=groups).to_json())["intervals"]["folds"]
    # The fold that holds the changed group has the same forecast and other scores; every other forecast has moved.
    same = [one["cdf"] == other["cdf"] and one["knots"] == other["knots"] for one, other in zip(first, second, strict=True)]
    assert sum(same) == 1
    k = same.index(True)
    assert first[k]["score"] != second[k]["score"]


def test_a_sure_judge_gives_single_levels_and_an_unsure_one_more():
    gold = np.tile(np.arange(5.0), 20)
    sure = fitted(gold, gold).predict_interval(np.arange(5))
    np.testing.assert_array_equal(sure.low, np.arange(5))
    np.testing.assert_array_equal(sure.levels, np.eye(5, dtype=bool))
    score, gold = labelled(200)
    unsure = fitted(score, gold).predict_interval(NEW)
    assert (unsure.high - unsure.low).mean() > 0.5
    np.testing.assert_array_equal(unsure.levels.sum(axis=1), unsure.high - unsure.low + 1)


def test_more_confidence_is_never_narrower():
    calibrator = fitted(*labelled(60, noise=1.5))
    found = [calibrator.predict_interval(NEW, level) for level in (0.5, 0.7, 0.9, 0.95, 0.99)]
    for less, more in pairwise(found):
        assert (more.low <= less.low).all()
        assert (more.high >= less.high).all()


@pytest.mark.parametrize(("n", "level", "needed"), [(8, 0.9, 9), (18, 0.95, 19), (60, 0.99, 99)])
def test_too_few_labels_give_the_whole_scale_and_say_so(n, level, needed):
    # α (n + 1) < 1: not even the highest of n scores may be left out.
    few = fitted(*labelled(n)).predict_interval(NEW, level)
    assert (few.low == 0).all()
    assert (few.high == 4).all()
    assert few.levels.all()
    assert few.reason.endswith(f"too few to bound gold at {100 * level:g} %, which takes {needed}")
    assert fitted(*labelled(needed)).predict_interval(NEW, level).reason is None


def test_one_group_is_too_few():
    score, gold = labelled(30)
    found = fitted(score, gold, groups=["q"] * 30).predict_interval([2.0])
    assert (found.low[0], found.high[0], found.n_groups) == (0, 4, 1)
    assert "1 group of labels is too few" in found.reason
    assert Calibrator.from_json(fitted(score, gold, groups=["q"] * 30).to_json()).predict_interval([2.0]).reason == found.reason


def test_levels_between_two_are_rounded_outwards_in_the_set():
    gold = np.repeat([0.0, 1.5, 4.0], 20)
    found = fitted(gold, gold).predict_interval([1.5, 4.0])
    np.testing.assert_array_equal([found.low, found.high], [[1.5, 4], [1.5, 4]])
    np.testing.assert_array_equal(found.levels, [[False, True, True, False, False], [False, False, False, False, True]])


def test_gold_of_very_many_values():
    rng = np.random.default_rng(3)
    gold = rng.uniform(0, 4, 150)
    score = np.clip(gold + 0.3 * rng.normal(size=150), 0, 4)
    found = fitted(score, gold).predict_interval(score)
    assert ((found.low <= gold) & (gold <= found.high)).mean() > 0.85
    # ± 1.645 × 0.3, clipped, if the spread were known.
    assert (found.high - found.low).mean() < 1.4


@pytest.mark.parametrize("n_levels", [1, 2, 7])
def test_scales_of_other_lengths(n_levels):
    rng = np.random.default_rng(4)
    p, gold = rng.dirichlet(np.ones(n_levels), 30), rng.integers(0, n_levels, 30)
    found = Calibrator(n_subsamples=6).fit(p, gold).predict_interval(p)
    assert found.levels.shape == (30, n_levels)
    assert ((found.low >= 0) & (found.high <= n_levels - 1) & (found.low <= found.high)).all()
    assert found.levels.any(axis=1).all()


def test_plain_scores_without_a_range_and_no_items():
    score, gold = labelled(30)
    calibrator = Calibrator(n_subsamples=6).fit(100 * score - 50, gold)
    assert (calibrator.predict_interval([1e9, 350.0]).low == calibrator.predict_interval([350.0, 1e9]).low).all()
    empty = calibrator.predict_interval([])
    assert (empty.low.shape, empty.levels.shape) == ((0,), (0, 5))


def test_randomized_sets_lie_in_the_others_and_are_reproducible():
    # A judge that is always right: in one draw of ten at 90 % its level is left out, and the set is empty.
    gold = np.tile(np.arange(5.0), 8)
    calibrator = fitted(gold, gold)
    whole = calibrator.predict_interval(NEW)
    found = [calibrator.predict_interval(NEW, randomized=True, rng=rng) for rng in range(40)]
    assert all((each.levels <= whole.levels).all() for each in found)
    assert any((each.levels < whole.levels).any() for each in found)
    assert (calibrator.predict_interval(NEW, randomized=True, rng=7).levels == found[7].levels).all()
    empty = next(each for each in found if not each.levels.any(axis=1).all())
    rows = ~empty.levels.any(axis=1)
    assert (empty.low[rows] == empty.high[rows]).all()


def test_a_file_predicts_the_same_and_stays_small():
    score, gold = labelled(10_000)
    calibrator = Calibrator(score_range=(0, 4)).fit(score, gold, groups=np.arange(10_000) // 3)
    text = calibrator.to_json()
    again = Calibrator.from_json(text)
    assert again.to_json() == text
    for randomized in (False, True):
        one, other = (each.predict_interval(NEW, 0.8, randomized=randomized, rng=1) for each in (calibrator, again))
        np.testing.assert_array_equal([one.low, one.high], [other.low, other.high])
        np.testing.assert_array_equal(one.levels, other.levels)
    assert len(json.dumps(json.loads(text)["intervals"], separators=(",", ":"))) < 50_000


def test_the_intervals_do_not_depend_on_when_they_are_asked_for():
    score, gold = labelled(40)
    first, second = fitted(score, gold, rng=5), fitted(score, gold, rng=5)
    second.predict_interval(NEW)
    assert first.to_json() == second.to_json()


def test_files_of_versions_without_intervals():
    score, gold = labelled(30)
    calibrator = fitted(score, gold)
    content = json.loads(calibrator.to_json())
    del content["intervals"]
    older = Calibrator.from_json(json.dumps(content))
    np.testing.assert_array_equal(older.predict(NEW), calibrator.predict(NEW))
    assert (calibrator.has_intervals, older.has_intervals) == (True, False)
    with pytest.raises(StatisticsError, match="carries no intervals; fit it again and save it"):
        older.predict_interval(NEW)
    assert json.loads(older.to_json())["intervals"] is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cdf": [[1, 2, 3, 4]]}, "a row a knot"),
        ({"weight": []}, "a value a score"),
        ({"score": [501]}, "intervals.folds.0.score"),
        ({"cdf": [[1, 2, 3]] * 2, "knots": [0, 1]}, "must have rows of 4"),
        ({"cdf": [[1, 2, 3, 4]] * 2, "knots": [1, 0]}, "knots must ascend"),
    ],
)
def test_files_that_are_wrong(change, said):
    content = json.loads(fitted(*labelled(30)).to_json())
    content["intervals"]["folds"][0] |= change
    with pytest.raises(CalibrationError, match=said):
        Calibrator.from_json(json.dumps(content))


def test_what_is_refused():
    calibrator = fitted(*labelled(30))
    for level in (0, 1, 90, float("nan")):
        with pytest.raises(CalibrationError, match="confidence_level must lie between 0 and 1"):
            calibrator.predict_interval([1.0], level)
    with pytest.raises(CalibrationError, match="takes plain scores"):
        calibrator.predict_interval(np.eye(5))
    with pytest.raises(StatisticsError, match="not fitted"):
        Calibrator().predict_interval([1.0])
    with pytest.raises(StatisticsError, match="on 2 group.s. of labels; three or more"):
        cross_intervals([0.1, 0.2, 0.3], [0, 1, 2], groups=["a", "a", "b"])


def test_intervals_out_of_fold_never_see_their_own_labels():
    score, gold = labelled(60, seed=2)
    groups = np.arange(60) // 3
    template = Calibrator(score_range=(0, 4), n_subsamples=6)
    first = cross_intervals(score, gold, calibrator=template, groups=groups, confidence_level=0.7)
    changed = gold.copy()
    changed[groups == 4] = (changed[groups == 4] + 2) % 5
    second = cross_intervals(score, changed, calibrator=template, groups=groups, confidence_level=0.7)
    own = groups == 4
    np.testing.assert_array_equal(first.low[own], second.low[own])
    np.testing.assert_array_equal(first.high[own], second.high[own])
    assert (first.high != second.high).any() or (first.low != second.low).any()
    np.testing.assert_array_equal(first.covered, (first.low <= gold) & (gold <= first.high))
    assert first.n_groups == 18  # two of twenty groups a fold
