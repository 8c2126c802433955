"""Counts of claims → precision, recall, F-beta and its expectation. Pure; the edges are defined here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from isograde.errors import UserError

__all__ = ["Counts", "RecallOver", "blend", "checked_weights", "expected_f_beta", "f_beta", "scored"]

RecallOver: TypeAlias = Literal["reference", "response"]
"""Which supported claims recall counts: those of the reference, or (as RAGAS does) those of the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many claims of either text the other one supports.

    Attributes
    ----------
    tp_response, fp : int
        Claims of the response that the reference supports, and that it does not.
    tp_reference, fn : int
        Claims of the reference that the response covers, and that it does not.
    """

    tp_response: int
    fp: int
    tp_reference: int
    fn: int


def f_beta(precision: float, recall: float, beta: float = 1.0) -> float:
    """F-beta = (1 + β²)·P·R ÷ (β²·P + R); 0 where both are 0.

    Parameters
    ----------
    precision, recall : float
        In [0, 1].
    beta : float
        Over 1 recall weighs more, under 1 precision.

    Returns
    -------
    float

    References
    ----------
    van Rijsbergen, C. J. (1979). Information Retrieval, 2nd edition, chapter 7. Butterworths.

    Examples
    --------
    >>> f_beta(0.5, 0.5), f_beta(1.0, 0.2, beta=2.0)
    (0.5, 0.23809523809523808)
    """
    below = beta**2 * precision + recall
    return (1 + beta**2) * precision * recall / below if below > 0 else 0.0


def scored(
    counts: Counts, *, beta: float = 1.0, recall_over: RecallOver = "reference"
) -> tuple[float | None, float | None, float | None]:
    """Precision, recall and F-beta of counted claims.

    Parameters
    ----------
    counts : Counts
    beta : float
    recall_over : {"reference", "response"}
        ``"reference"``: tp_reference ÷ (tp_reference + fn), the share of the reference that is covered, so that ten restatements
        of one of five facts have recall 1/5. ``"response"`` is RAGAS's: tp_response ÷ (tp_response + fn).

    Returns
    -------
    tuple of float or None
        Precision is None where the response has no claims, recall where the reference has none, F-beta where both have none;
        with claims on one side only F-beta is 0.

    Notes
    -----
    Over the response's claims 0 ÷ 0 can come up though both sides have claims (no response claim is right, and each reference
    claim is covered all the same); that recall is 0, as in RAGAS.

    Examples
    --------
    >>> scored(Counts(tp_response=2, fp=2, tp_reference=2, fn=2))
    (0.5, 0.5, 0.5)
    >>> scored(Counts(tp_response=10, fp=0, tp_reference=1, fn=4))[:2]
    (1.0, 0.2)
    >>> scored(Counts(tp_response=0, fp=0, tp_reference=0, fn=3))
    (None, 0.0, 0.0)
    """
    n_response, n_reference = counts.tp_response + counts.fp, counts.tp_reference + counts.fn
    precision = counts.tp_response / n_response if n_response else None
    recall = _recall(counts.tp_response, counts.tp_reference, counts.fn, recall_over) if n_reference else None
    if precision is None and recall is None:
        return None, None, None
    if precision is None or recall is None:
        return precision, recall, 0.0
    return precision, recall, f_beta(precision, recall, beta)


def _recall(tp_response: int, tp_reference: int, fn: int, over: RecallOver) -> float:
    tp = tp_reference if over == "reference" else tp_response
    return tp / (tp + fn) if tp + fn else 0.0


def expected_f_beta(
    response: Sequence[float], reference: Sequence[float], *, beta: float = 1.0, recall_over: RecallOver = "reference"
) -> tuple[float, float] | None:
    """Mean and standard deviation of F-beta if each claim holds with its own probability, independently of the others.

    Parameters
    ----------
    response : sequence of float
        For each response claim the probability that the reference supports it.
    reference : sequence of float
        For each reference claim the probability that the response covers it.
    beta, recall_over
        As for :func:`scored`.

    Returns
    -------
    tuple of float, or None
        Expectation and standard deviation, exact: the two numbers of supported claims are Poisson-binomial, and F-beta is summed
        over every pair of them. None where neither side has claims. The deviation says how unsure the verdicts are, nothing
        else: it is no confidence interval of the score.

    References
    ----------
    Hong, Y. (2013). On computing the distribution function for the Poisson binomial distribution. Computational Statistics &
    Data Analysis 59, 41–51. doi:10.1016/j.csda.2012.10.006

    Examples
    --------
    >>> expected_f_beta([1.0, 0.0], [1.0, 0.0])
    (0.5, 0.0)
    >>> mean, deviation = expected_f_beta([0.5], [1.0])  # F1 is 1 or 0, each half of the time
    >>> mean, deviation
    (0.5, 0.5)
    """
    if not response and not reference:
        return None
    n, m = len(response), len(reference)
    outer, inner = _poisson_binomial(response), _poisson_binomial(reference)
    mean = square = 0.0
    for i, p in enumerate(outer):
        for j, q in enumerate(inner):
            counts = Counts(tp_response=i, fp=n - i, tp_reference=j, fn=m - j)
            value = scored(counts, beta=beta, recall_over=recall_over)[2] or 0.0
            mean += p * q * value
            square += p * q * value * value
    return mean, math.sqrt(max(0.0, square - mean * mean))


def _poisson_binomial(probabilities: Sequence[float]) -> list[float]:
    """Distribution of the number of successes, by convolution."""
    mass = [1.0]
    for p in probabilities:
        mass = [a * (1 - p) + b * p for a, b in zip([*mass, 0.0], [0.0, *mass], strict=True)]
    return mass


def checked_weights(weights: Sequence[float], beta: float) -> tuple[tuple[float, float], float]:
    """Check weights and beta as users of RAGAS know them.

    Raises
    ------
    UserError
        If the weights are not two non-negative numbers of which one is positive, or beta is no non-negative number.

    Examples
    --------
    >>> checked_weights([3, 1], 1)
    ((3.0, 1.0), 1.0)
    """
    pair = tuple(weights) if isinstance(weights, Iterable) and not isinstance(weights, str) else ()
    if len(pair) != 2 or not all(_is_amount(weight) for weight in pair) or not any(pair):
        raise UserError(
            f"weights {weights!r}: two non-negative numbers, not both 0, for claims and similarity; for instance [0.75, 0.25]"
        )
    if not _is_amount(beta):
        raise UserError(f"beta {beta!r}: a non-negative number; over 1 recall weighs more, under 1 precision")
    return (float(pair[0]), float(pair[1])), float(beta)


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def blend(factuality: float | None, similarity: float | None, weights: tuple[float, float]) -> float | None:
    """Weighted mean of F-beta and similarity; None where a part with weight is not there.

    Examples
    --------
    >>> round(blend(0.5, 0.72, (0.75, 0.25)), 12), blend(0.5, None, (1.0, 0.0)), blend(None, 0.72, (0.75, 0.25))
    (0.555, 0.5, None)
    """
    parts = [(weight, part) for weight, part in zip(weights, (factuality, similarity), strict=True) if weight]
    if any(part is None for _, part in parts):
        return None
    return math.fsum(weight * (part or 0.0) for weight, part in parts) / math.fsum(weights)
