"""What answer correctness says of an item: a value, the parts that it was made from, and failures as another type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from isograde.correctness.asking import CorrectnessStatus, PartName
from isograde.correctness.combine import Rule
from isograde.correctness.counts import Counts, RecallOver
from isograde.records import Calibrated, Grade, GradeFailure, Item, Usage

__all__ = ["Claim", "ClaimVerdicts", "Correctness", "CorrectnessFailure"]

ClaimVerdicts: TypeAlias = Literal["logprobs", "generated"]
"""How claims are judged: each by the probability of a two-level question, or all in one call whose reply is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim and whether the other text supports it.

    Attributes
    ----------
    text : str
    supported : bool
        Whether the probability is at least 0.5; with generated verdicts, what the model said.
    probability : float or None
        That the other text supports it; None with generated verdicts, which have none.
    """

    text: str
    supported: bool
    probability: float | None = None


class _Number:
    """Arithmetic and order by :meth:`__float__`, so that a result stands wherever its value would."""

    __slots__ = ()

    def __float__(self) -> float:
        raise NotImplementedError

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self), digits)

    def __format__(self, form: str) -> str:
        return format(float(self), form) if form else str(self)

    def __lt__(self, other: Any) -> bool:
        return float(self) < float(other)

    def __le__(self, other: Any) -> bool:
        return float(self) <= float(other)

    def __gt__(self, other: Any) -> bool:
        return float(self) > float(other)

    def __ge__(self, other: Any) -> bool:
        return float(self) >= float(other)

    def __add__(self, other: Any) -> float:
        return float(self) + float(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> float:
        return float(self) - float(other)

    def __rsub__(self, other: Any) -> float:
        return float(other) - float(self)

    def __mul__(self, other: Any) -> float:
        return float(self) * float(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> float:
        return float(self) / float(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correctness(_Number):
    """Answer correctness of one item.

    Acts as the number ``value`` in arithmetic and comparisons; two results are equal (``==``) if all their parts are.

    Attributes
    ----------
    value : float or None
        F-beta and similarity, blended by the weights, in [0, 1]; None where it is not defined, ``reason`` saying why.
    reason : str or None
        Why there is no value, or which rule gave it.
    f_beta, precision, recall : float or None
        From the counts, a claim counting as supported from a probability of 0.5 on. None where the text on that side has no
        claims; F-beta is then 0, or None where neither side has any.
    expected_f_beta, f_beta_spread : float or None
        Mean and standard deviation of F-beta if each claim holds with its own probability, independently: how unsure the
        verdicts are. No confidence interval. None with generated verdicts.
    similarity : float or None
        Of the two texts' embeddings, in [0, 1]; None without embeddings.
    counts : Counts
        ``tp_response``, ``fp``, ``tp_reference``, ``fn``.
    response_claims, reference_claims : tuple of Claim
    rubric : Grade, GradeFailure or None
        What the judge says of the same item by its own rubric; None where nothing was asked (``identical``).
    method : dict of str to str
        ``claims`` (generated, sentences), ``verdicts`` (logprobs, generated), ``recall_over``, and the judge's ``model``.
    rule : str or None
        What decided where no claim was judged.
    weights, beta, recall_over
        As asked for.
    refused : bool
        Whether the response does nothing but refuse to answer.
    identical : bool
        Whether it equals the reference but for blanks, outer quotation marks and a final full stop.
    usage : Usage or None
        Tokens of all parts.
    usage_by_part : dict of str to Usage
        By ``claims``, ``verdicts``, ``similarity``, ``rubric``; absent where nothing was asked, or no tokens were counted.
    seconds_by_part : dict of str to float
        Seconds of their requests, added up.
    failures : tuple of CorrectnessFailure
        Parts that the value does not need and that could not be had.
    caveat : str or None
        What is known to speak against the verdicts.
    calibrated : Calibrated or None
        What a human would say by the gold labels that a calibrator of several signals was fitted to; None without one, and
        where one of its signals is missing.
    reference_index : int or None
        Which of several references it is measured against: the one with the highest value.
    item, index
        The item and its position.

    Examples
    --------
    >>> result = Correctness(value=0.555, f_beta=0.5, similarity=0.72, counts=Counts(tp_response=2, fp=2, tp_reference=2, fn=2))
    >>> float(result), result > 0.5, f"{result:.2f}"
    (0.555, True, '0.56')
    """

    value: float | None
    reason: str | None = None
    f_beta: float | None = None
    precision: float | None = None
    recall: float | None = None
    expected_f_beta: float | None = None
    f_beta_spread: float | None = None
    similarity: float | None = None
    counts: Counts
    response_claims: tuple[Claim, ...] = ()
    reference_claims: tuple[Claim, ...] = ()
    rubric: Grade | GradeFailure | None = None
    method: dict[str, str] = field(default_factory=dict)
    rule: Rule | None = None
    weights: tuple[float, float] = (0.75, 0.25)
    beta: float = 1.0
    recall_over: RecallOver = "reference"
    refused: bool = False
    identical: bool = False
    usage: Usage | None = None
    usage_by_part: dict[str, Usage] = field(default_factory=dict)
    seconds_by_part: dict[str, float] = field(default_factory=dict)
    failures: tuple[CorrectnessFailure, ...] = ()
    caveat: str | None = None
    calibrated: Calibrated | None = None
    reference_index: int | None = None
    item: Item | None = None
    index: int | None = None

    def __float__(self) -> float:
        if self.value is None:
            raise ValueError(f"there is no value: {self.reason}")
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectnessFailure:
    """An item, or a part of it, that could not be had; another type than :class:`Correctness`, so that it is never averaged in.

    Attributes
    ----------
    status : str
        One of the closed list ``CorrectnessStatus``.
    message : str
        One line: what happened.
    part : str or None
        ``claims``, ``verdicts``, ``similarity`` or ``rubric``; None where the item itself is at fault.
    raw : str or None
        What the model wrote, where it could not be used.
    rubric : Grade, GradeFailure or None
        What the judge says of the same item by its own rubric, which the failure does not touch.
    usage : Usage or None
        Tokens that were spent.
    usage_by_part, seconds_by_part
        As on :class:`Correctness`.
    item, index
        The item and its position.
    """

    status: CorrectnessStatus
    message: str
    part: PartName | None = None
    raw: str | None = None
    rubric: Grade | GradeFailure | None = None
    usage: Usage | None = None
    usage_by_part: dict[str, Usage] = field(default_factory=dict)
    seconds_by_part: dict[str, float] = field(default_factory=dict)
    item: Item | None = None
    index: int | None = None
