"""Calibrators: input forms, edge cases, files."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from isograde.calibration import Calibrator, IsotonicCalibrator, JudgeFingerprint
from isograde.errors import CalibrationError, StatisticsError

RNG = np.random.default_rng(11)
NAN = float("nan")


def probabilities(n, n_levels=5):
    return RNG.dirichlet(np.ones(n_levels), size=n)


def check_sane(calibrator, x, n_levels):
    """Every prediction is defined, finite and inside the scale."""
    median, mean = calibrator.predict(x), calibrator.predict_mean(x)
    proba, distribution = calibrator.predict_proba(x), calibrator.predict_distribution(x)
    for values in (median, mean):
        assert values.shape == (len(x),)
        assert np.isfinite(values).all()
        assert (values >= 0).all()
        assert (values <= n_levels - 1).all()
    assert proba.shape == (len(x), n_levels)
    assert distribution.shape == (len(x), len(calibrator.support_))
    for table in (proba, distribution):
        assert (table >= 0).all()
        np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(proba @ np.arange(n_levels), mean, atol=1e-12)
    np.testing.assert_allclose(distribution @ calibrator.support_, mean, atol=1e-12)
    at_least = calibrator.predict_at_least(x, 0.75 * (n_levels - 1))
    np.testing.assert_allclose(at_least, distribution[:, calibrator.support_ >= 0.75 * (n_levels - 1)].sum(axis=1), atol=1e-12)
    # Lower median: half or more at or below it, less than half strictly below.
    for value, row in zip(median, distribution, strict=True):
        assert row[calibrator.support_ <= value].sum() >= 0.5 - 1e-6
        assert row[calibrator.support_ < value].sum() < 0.5 + 1e-6


@pytest.mark.parametrize("n", range(1, 10))
@pytest.mark.parametrize("constant", [False, True])
def test_few_labels(n, constant):
    x = np.full((n, 5), 0.2) if constant else probabilities(n)
    gold = RNG.integers(0, 5, n)
    for rng in range(3):
        check_sane(Calibrator().fit(x, gold, rng=rng), np.vstack([np.eye(5), x]), 5)


def test_constant_gold_is_predicted_everywhere():
    calibrator = Calibrator().fit(probabilities(30), np.full(30, 3))
    np.testing.assert_array_equal(calibrator.predict(np.eye(5)), np.full(5, 3.0))


def test_one_level_only():
    calibrator = Calibrator().fit(np.ones((4, 1)), np.zeros(4))
    check_sane(calibrator, np.ones((3, 1)), 1)
    again = Calibrator.from_json(calibrator.to_json())
    np.testing.assert_array_equal(again.predict_proba(np.ones((3, 1))), np.ones((3, 1)))


def test_one_group_only():
    check_sane(Calibrator().fit(probabilities(12), RNG.integers(0, 5, 12), groups=["q"] * 12), probabilities(4), 5)


@pytest.mark.parametrize("method", ["predict", "predict_mean", "predict_proba", "predict_distribution"])
def test_no_items_is_no_predictions(method):
    calibrator = Calibrator().fit(probabilities(12), RNG.integers(0, 5, 12))
    assert len(getattr(calibrator, method)(np.empty((0, 5)))) == 0


def test_fractional_gold_joins_the_support_and_keeps_the_mean():
    gold = np.repeat([0.0, 1.5, 4.0], 20)
    calibrator = Calibrator().fit(np.eye(5)[np.repeat([0, 2, 4], 20)], gold)
    np.testing.assert_array_equal(calibrator.support_, [0, 1, 1.5, 2, 3, 4])
    check_sane(calibrator, np.eye(5), 5)
    np.testing.assert_array_equal(calibrator.predict(np.eye(5)[[0, 2, 4]]), [0, 1.5, 4])


def test_gold_of_very_many_values_is_put_on_a_grid():
    gold = RNG.uniform(0, 4, 300)
    calibrator = Calibrator(score_range=(0, 4)).fit(gold, gold)
    assert len(calibrator.support_) <= 105
    # Grid steps are 0.04, and a half-sample knows about 150 neighbours.
    assert np.abs(calibrator.predict(gold) - gold).max() < 0.2


def test_inputs_are_not_changed_and_may_be_read_only():
    x, gold, weight = probabilities(20), RNG.integers(0, 5, 20).astype(float), RNG.uniform(0, 2, 20)
    copies = [array.copy() for array in (x, gold, weight)]
    for array in (x, gold, weight):
        array.setflags(write=False)
    for calibrator in (Calibrator(), IsotonicCalibrator()):
        calibrator.fit(x, gold, sample_weight=weight).predict(x)
    for array, copy in zip((x, gold, weight), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_weight_of_zero_is_a_row_left_out():
    x, gold = probabilities(30), RNG.integers(0, 5, 30)
    groups = np.arange(30) // 3
    weight = (np.arange(30) % 4 > 0).astype(float)
    kept = weight > 0
    new = probabilities(50)
    with_zeros = Calibrator().fit(x, gold, groups=groups, sample_weight=weight)
    without = Calibrator().fit(x[kept], gold[kept], groups=groups[kept])
    np.testing.assert_array_equal(with_zeros.predict_distribution(new), without.predict_distribution(new))


@pytest.mark.parametrize("spread", [0, 1])
def test_the_scale_of_the_weights_does_not_matter(spread):
    x, gold = probabilities(30), 3 - spread * RNG.integers(0, 3, 30)
    # Thirds are rounded in every sum; one is not.
    thirds = Calibrator().fit(x, gold, sample_weight=np.full(30, 1 / 3)).predict_distribution(x)
    np.testing.assert_allclose(thirds, Calibrator().fit(x, gold).predict_distribution(x), atol=1e-9)


def test_plain_scores_without_a_range_leave_the_raw_forecast_out():
    scores = RNG.uniform(-30, 70, 40)
    gold = np.clip(np.round(scores / 20 + 1), 0, 4)
    calibrator = Calibrator().fit(scores, gold)
    assert calibrator.weights_.raw == 0
    check_sane(calibrator, np.array([-1e9, 0, 1e9]), 5)


def test_plain_scores_with_a_range_equal_the_expected_level():
    x, gold = probabilities(40), RNG.integers(0, 5, 40)
    level = x @ np.arange(5)
    by_probability = Calibrator().fit(x, gold)
    by_score = Calibrator(score_range=(0, 1)).fit(level / 4, gold)
    np.testing.assert_allclose(by_score.predict_mean(level / 4), by_probability.predict_mean(x), atol=1e-12)


def test_predictions_beyond_the_range_are_those_at_its_ends():
    calibrator = Calibrator(score_range=(0, 1)).fit(np.linspace(0.2, 0.8, 30), np.repeat([0, 2, 4], 10))
    np.testing.assert_array_equal(calibrator.predict_mean([-5.0, 7.0]), calibrator.predict_mean([0.0, 1.0]))


def test_the_fixed_stream_and_the_explicit_one():
    x, gold = probabilities(40), RNG.integers(0, 5, 40)
    assert Calibrator().fit(x, gold).to_json() == Calibrator().fit(x, gold).to_json()
    assert Calibrator().fit(x, gold, rng=1).to_json() == Calibrator().fit(x, gold, rng=np.random.default_rng(1)).to_json()
    assert Calibrator().fit(x, gold, rng=1).to_json() != Calibrator().fit(x, gold, rng=2).to_json()


def test_groups_may_mix_types_and_none_stands_alone():
    x, gold = probabilities(8), RNG.integers(0, 5, 8)
    calibrator = Calibrator().fit(x, gold, groups=["a", "a", 1, None, NAN, "b", 1, (2, 3)])
    # Two share «a» and two share 1; None, NaN, «b» and the tuple stand alone.
    assert calibrator.provenance_.n_groups == 6
    assert Calibrator().fit(x, gold, groups=np.array([1.0, 1.0, NAN, NAN, 2.0, 2.0, 2.0, 2.0])).provenance_.n_groups == 4


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[0.5, 0.5], [NAN, 0.5]], [0, 1]), {}, "row 1: probabilities is not a finite number"),
        (([0.1, NAN], [0, 1]), {}, "row 1"),
        (([0.1, 0.2, 0.3], [0, 1, NAN]), {}, "row 2: gold"),
        (([0.1, 0.2], [0, 5]), {}, "row 1: gold 5 is off the scale 0 … 4"),
        (([0.1, 0.2], [-0.5, 1]), {}, "row 0: gold -0.5 is off the scale"),
        (([[0.5, 0.6], [0.5, 0.5]], [0, 1]), {}, "row 0: probabilities sum to 1.1"),
        (([[1.5, -0.5]], [0]), {}, "row 0: a probability is negative"),
        (([0.1, 0.2], [0]), {}, "gold has 1 rows and the scores have 2"),
        (([0.1, 0.2], [[0, 1]]), {}, "gold must have shape"),
        (([], []), {}, "no labelled rows"),
        ((0.5, [0]), {}, "not a single number"),
        (([[[1.0]]], [0]), {}, "must have shape"),
        ((["good"], [0]), {}, "must be numbers"),
        (([0.1, 0.2], [0, 1]), {"sample_weight": [0, 0]}, "every sample_weight is zero"),
        (([0.1, 0.2], [0, 1]), {"sample_weight": [1, -1]}, "row 1: sample_weight is negative"),
        (([0.1, 0.2], [0, 1]), {"sample_weight": [1]}, "sample_weight has 1 rows"),
        (([0.1, 0.2], [0, 1]), {"groups": ["a"]}, "groups has 1 rows"),
        (([0.1, 0.2], [0, 1]), {"groups": np.zeros((2, 1))}, "groups must have shape"),
    ],
)
@pytest.mark.parametrize("kind", [Calibrator, IsotonicCalibrator])
def test_what_does_not_fit_together_is_refused(kind, arguments, options, message):
    with pytest.raises(CalibrationError, match=message) as caught:
        kind().fit(*arguments, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "scores", "message"),
    [
        ({"n_levels": 4}, np.full((2, 5), 0.2), "5 columns and n_levels is 4"),
        ({"score_range": (0, 1)}, np.full((2, 5), 0.2), "score_range is for plain scores"),
        ({"score_range": (1, 0)}, [0.5, 0.5], "score_range must be"),
        ({"score_range": (0, 1)}, [0.5, 1.5], "row 1: score 1.5 is outside score_range"),
        ({"n_levels": 0}, [0.5, 0.5], "n_levels must be 1 or more"),
        ({"n_subsamples": -1}, [0.5, 0.5], "n_subsamples must be 0 or more"),
    ],
)
def test_parameters_that_contradict_the_scores_are_refused(parameters, scores, message):
    with pytest.raises(CalibrationError, match=message):
        Calibrator(**parameters).fit(scores, [0, 0])


@pytest.mark.parametrize("kind", [Calibrator, IsotonicCalibrator])
def test_predicting_in_another_form_is_refused(kind):
    by_probability = kind().fit(probabilities(6), RNG.integers(0, 5, 6))
    with pytest.raises(CalibrationError, match=r"takes level probabilities \(n_items, 5\)"):
        by_probability.predict([0.5])
    with pytest.raises(CalibrationError, match="takes level probabilities"):
        by_probability.predict(np.eye(4))
    with pytest.raises(CalibrationError, match="takes plain scores"):
        kind().fit([0.1, 0.2], [0, 1]).predict(np.eye(5))


@pytest.mark.parametrize("kind", [Calibrator, IsotonicCalibrator])
def test_unfitted_is_said(kind):
    with pytest.raises(StatisticsError, match="not fitted"):
        kind().predict([0.5])


def test_json_round_trip_predicts_the_same_bits():
    x, gold = probabilities(60), RNG.uniform(0, 4, 60).round(1)
    judge = JudgeFingerprint(model="m", adapter="a", rubric="r", prompt="p", labels=tuple("01234"), method="answer_token")
    calibrator = Calibrator(judge=judge, label_source="two experts").fit(x, gold, groups=np.arange(60) // 2)
    again = Calibrator.from_json(calibrator.to_json())
    new = probabilities(200)
    for method in ("predict", "predict_mean", "predict_proba", "predict_distribution"):
        np.testing.assert_array_equal(getattr(again, method)(new), getattr(calibrator, method)(new))
    np.testing.assert_array_equal(again.climatology_, calibrator.climatology_)
    assert again.to_json() == calibrator.to_json()
    made = again.provenance_
    assert (made.n, made.n_groups, made.label_source, made.judge) == (60, 30, "two experts", judge)
    assert len(made.data_hash) == 64


def test_the_data_hash_tells_other_labels_and_not_another_order():
    x, gold = probabilities(20), RNG.integers(0, 4, 20)
    first = Calibrator().fit(x, gold).provenance_.data_hash
    assert Calibrator().fit(x[::-1], gold[::-1]).provenance_.data_hash == first
    assert Calibrator().fit(x, gold + (np.arange(20) == 3)).provenance_.data_hash != first


def test_another_judge_is_refused_and_the_difference_named():
    judge = JudgeFingerprint(model="small", rubric="r1", labels=("0", "1"), method="answer_token")
    calibrator = Calibrator(judge=judge).fit([0.1, 0.2], [0, 1])
    calibrator.check_judge(judge)
    other = judge.model_copy(update={"model": "large", "method": "sampling"})
    with pytest.raises(CalibrationError, match=r"model: 'small' and 'large'; method: 'answer_token' and 'sampling'"):
        calibrator.check_judge(other)
    with pytest.raises(CalibrationError, match="does not say which judge"):
        Calibrator().fit([0.1, 0.2], [0, 1]).check_judge(judge)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file.update(extra=1), "extra"),
        (lambda file: file.update(kind="other"), "kind"),
        (lambda file: file.update(format=2), "format"),
        (lambda file: file["weights"].update(raw=0.9), "weights: .*do not sum to 1"),
        (lambda file: file.update(thresholds=file["thresholds"][::-1]), "must ascend"),
        (lambda file: file.update(climatology=file["climatology"][:-1]), "climatology"),
        (lambda file: file.update(support=[0, 2, 1, 3, 4]), "must ascend"),
        (lambda file: file.update(support=[0, 1, 2, 3, 5]), "support must run from 0 to 4"),
        (lambda file: file.update(cdf=[[1 - p for p in row] for row in file["cdf"]]), "cdf must fall"),
        (lambda file: file["cdf"][0].__setitem__(0, 2.0), "cdf"),
        (lambda file: file.update(score_range=[1, 0]), "score_range"),
        (lambda file: file.pop("provenance"), "provenance"),
    ],
)
def test_a_damaged_file_is_refused(change, message):
    file = json.loads(Calibrator(score_range=(0, 1)).fit(np.linspace(0.1, 0.9, 20), np.repeat([0, 1, 2, 4], 5)).to_json())
    change(file)
    with pytest.raises(CalibrationError, match=message):
        Calibrator.from_json(json.dumps(file))


@pytest.mark.parametrize("seed", range(10))
def test_weights_of_any_size_make_a_file(seed):
    # Sums of such weights differ in their last bits, and must not carry a probability past 1.
    rng = np.random.default_rng(seed)
    weight = rng.exponential(size=50) ** 3
    calibrator = Calibrator().fit(rng.dirichlet(np.ones(5), size=50), rng.integers(0, 3, 50), sample_weight=weight)
    assert Calibrator.from_json(calibrator.to_json()).climatology_.sum() == pytest.approx(1)


@pytest.mark.parametrize("n_subsamples", [0, 1, 2])
def test_few_half_samples_still_weigh_the_pool(n_subsamples):
    # A judge that is right and bent: the isotonic part must win, however few part-fits there are.
    score = np.tile([0.1, 0.15, 0.2, 0.25, 0.3], 20)
    calibrator = Calibrator(score_range=(0, 1), n_subsamples=n_subsamples).fit(score, np.tile(np.arange(5), 20))
    assert calibrator.weights_.isotonic > 0.9
    np.testing.assert_array_equal(calibrator.predict(score[:5]), np.arange(5))


def test_a_file_stays_small_and_nearly_the_same(monkeypatch):
    score = np.random.default_rng(0).uniform(0, 4, 3000)
    gold = np.clip(np.round(score + np.random.default_rng(1).normal(size=3000)), 0, 4)
    small = Calibrator(score_range=(0, 4)).fit(score, gold)
    assert len(json.loads(small.to_json())["thresholds"]) <= 1000
    monkeypatch.setattr("isograde.calibration.pool.MAX_SUBAGGED_KNOTS", 10_000)
    full = Calibrator(score_range=(0, 4)).fit(score, gold)
    assert len(json.loads(full.to_json())["thresholds"]) > 1000
    assert np.abs(small.predict_proba(score) - full.predict_proba(score)).mean() < 0.002


def test_text_that_is_no_json_is_refused():
    with pytest.raises(CalibrationError, match="no isograde calibrator"):
        Calibrator.from_json("level: 3")


def test_large_fits_use_one_isotonic_fit_and_agree_with_plain_idr():
    # Above 10,000 labels there is no subagging; an informative judge's pool is the isotonic fit.
    x = np.random.default_rng(3).uniform(0, 4, 12_000)
    gold = np.clip(np.round(x + np.random.default_rng(4).normal(size=12_000)), 0, 4)
    calibrator = Calibrator(score_range=(0, 4)).fit(x, gold)
    assert calibrator.weights_.isotonic > 0.99
    levels = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    # The true median is the score itself, rounded.
    np.testing.assert_array_equal(calibrator.predict(levels), levels)


def test_nothing_heavy_is_imported():
    heavy = ("sklearn", "scipy.stats", "pandas", "matplotlib")
    code = f"import isograde.calibration, sys; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
