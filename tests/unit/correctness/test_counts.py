"""Counts → precision, recall, F-beta: the worked examples, the edges, and the expectation against brute force."""

import itertools
import math

import pytest

from isograde import UserError
from isograde.correctness import Counts, expected_f_beta, f_beta
from isograde.correctness.combine import Settings, combined
from isograde.correctness.counts import blend, checked_weights, scored

HALF = Counts(tp_response=2, fp=2, tp_reference=2, fn=2)


def test_two_of_four_on_each_side():
    assert scored(HALF) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("weights", "value"), [((0.75, 0.25), 0.555), ((1, 0), 0.5), ((0.5, 0.5), 0.61), ((0, 1), 0.72), ((3, 1), 0.555)]
)
def test_blends_of_one_half_and_0_72(weights, value):
    assert combined(HALF, 0.72, Settings(weights=weights)).value == pytest.approx(value, abs=1e-12)


def test_a_blend_of_0_6095_means_a_similarity_of_0_938():
    # (0.6095 − 0.75·0.5) ÷ 0.25 = 0.938
    assert blend(0.5, 0.938, (0.75, 0.25)) == pytest.approx(0.6095, abs=1e-12)


@pytest.mark.parametrize(
    ("precision", "recall", "beta", "value"),
    [
        (0.8, 0.4, 1.0, 8 / 15),  # 2·0.32 ÷ 1.2
        (0.8, 0.4, 2.0, 4 / 9),  # 5·0.32 ÷ (3.2 + 0.4)
        (0.8, 0.4, 0.5, 2 / 3),  # 1.25·0.32 ÷ (0.2 + 0.4)
        (0.8, 0.4, 0.0, 0.8),  # precision alone
        (0.0, 0.0, 1.0, 0.0),
        (0.0, 1.0, 1.0, 0.0),
    ],
)
def test_f_beta_by_hand(precision, recall, beta, value):
    assert f_beta(precision, recall, beta) == pytest.approx(value, abs=1e-12)


def test_f_beta_is_scikit_learns():
    from sklearn.metrics import fbeta_score

    # one list of claims, each in the answer or not and in the reference or not: tp 3, fp 2, fn 4
    said, true = [1] * 5 + [0] * 4, [1, 1, 1, 0, 0] + [1] * 4
    for beta in (0.25, 0.5, 1, 2, 4):
        counts = Counts(tp_response=3, fp=2, tp_reference=3, fn=4)
        for over in ("reference", "response"):
            assert scored(counts, beta=beta, recall_over=over)[2] == pytest.approx(fbeta_score(true, said, beta=beta), abs=1e-12)


def test_restating_one_fact_ten_times_does_not_lift_recall():
    restated = Counts(tp_response=10, fp=0, tp_reference=1, fn=4)
    assert scored(restated) == (1.0, 0.2, pytest.approx(1 / 3))  # 2·0.2 ÷ 1.2
    assert scored(restated, recall_over="response")[1] == pytest.approx(10 / 14)  # RAGAS's


def test_edges_of_the_counts():
    assert scored(Counts(tp_response=0, fp=0, tp_reference=0, fn=0)) == (None, None, None)
    assert scored(Counts(tp_response=0, fp=3, tp_reference=0, fn=0)) == (0.0, None, 0.0)
    assert scored(Counts(tp_response=0, fp=0, tp_reference=0, fn=3)) == (None, 0.0, 0.0)
    assert scored(Counts(tp_response=0, fp=2, tp_reference=3, fn=0), recall_over="response") == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("rule", "value", "f"),
    [
        ("identical", 1.0, 1.0),
        ("both_refuse", 1.0, 1.0),
        ("blank", 0.0, 0.0),
        ("refusal", 0.1, 0.0),  # (0.75·0 + 0.25·0.4)
        ("one_side", 0.1, 0.0),
        ("no_claims", None, None),
    ],
)
def test_rules(rule, value, f):
    none = Counts(tp_response=0, fp=0, tp_reference=0, fn=0)
    found = combined(none, 0.4, Settings(), rule=rule)
    assert found.value == (value if value is None else pytest.approx(value))
    assert found.f_beta == f
    assert found.reason


def brute(response, reference, beta, over):
    """Mean and deviation of F-beta over every outcome of every claim."""
    n = len(response)
    mean = square = 0.0
    for outcome in itertools.product((0, 1), repeat=n + len(reference)):
        p = math.prod(q if hit else 1 - q for hit, q in zip(outcome, (*response, *reference), strict=True))
        right, covered = sum(outcome[:n]), sum(outcome[n:])
        missed = len(reference) - covered
        if not response or not reference:
            continue  # claims on one side only: 0
        precision = right / n if n else 0
        if over == "reference":
            recall = covered / len(reference) if reference else 0
        else:
            recall = right / (right + missed) if right + missed else 0
        below = beta**2 * precision + recall
        value = (1 + beta**2) * precision * recall / below if below else 0.0
        mean, square = mean + p * value, square + p * value**2
    return mean, math.sqrt(max(0, square - mean**2))


@pytest.mark.parametrize("over", ["reference", "response"])
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ([0.5], [0.5]),
        ([0.9, 0.2, 0.6], [0.7, 0.1]),
        ([1.0, 0.0, 0.3, 0.8, 0.55], [0.25, 0.99, 0.4, 0.4]),
        ([], [0.5]),
        ([0.5], []),
    ],
)
def test_expectation_against_every_outcome(response, reference, beta, over):
    found = expected_f_beta(response, reference, beta=beta, recall_over=over)
    assert found == pytest.approx(brute(response, reference, beta, over), abs=1e-12)


def test_expectation_by_hand():
    # P ∈ {0, 1/2, 1} with ¼, ½, ¼; R = 1: F1 = 0, 2/3, 1; mean 7/12, E F² = 2/9 + 1/4 = 17/36
    mean, deviation = expected_f_beta([0.5, 0.5], [1.0])
    assert mean == pytest.approx(7 / 12)
    assert deviation == pytest.approx(math.sqrt(17 / 36 - 49 / 144))


def test_expectation_is_the_plain_value_where_all_is_certain():
    assert expected_f_beta([1, 1, 0, 0], [1, 1, 0, 0]) == (0.5, 0.0)
    assert expected_f_beta([], []) is None


def test_many_claims_are_exact_and_quick():
    mean, deviation = expected_f_beta([0.5] * 200, [0.5] * 200)
    assert 0.49 < mean < 0.5
    assert 0.015 < deviation < 0.035  # two shares of sd 0.035 each, averaged harmonically


@pytest.mark.parametrize(
    "weights", [(0, 0), (-1, 2), (1,), (1, 2, 3), "11", (math.nan, 1), (math.inf, 1), (True, 1), None, 0.75, ("1", 2)]
)
def test_weights_are_refused(weights):
    with pytest.raises(UserError, match=r"two non-negative numbers, not both 0, .*\[0.75, 0.25\]"):
        checked_weights(weights, 1.0)


@pytest.mark.parametrize("beta", [-1, math.nan, math.inf, "1", None])
def test_beta_is_refused(beta):
    with pytest.raises(UserError, match="beta"):
        checked_weights((1, 0), beta)
