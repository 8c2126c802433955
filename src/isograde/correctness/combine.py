"""Parts → value, and the rules that stand where no claim was judged. Pure: a saved result can be recomputed from its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from isograde.correctness.counts import Counts, RecallOver, blend, scored

__all__ = ["BLENDED", "Combined", "Rule", "Settings", "combined"]

Rule: TypeAlias = Literal["identical", "both_refuse", "refusal", "blank", "one_side", "no_claims"]
"""What decided where no claim was judged."""

_REASONS: dict[Rule, str] = {
    "identical": "the response equals the reference",
    "both_refuse": "response and reference both refuse to answer",
    "refusal": "the response refuses to answer",
    "blank": "the response is blank",
    "one_side": "only one of the two texts makes claims",
    "no_claims": "neither text makes a claim",
}
_F_BETA: dict[Rule, float] = {"identical": 1.0, "both_refuse": 1.0, "refusal": 0.0, "blank": 0.0, "one_side": 0.0}
_VALUE: dict[Rule, float] = {"identical": 1.0, "both_refuse": 1.0, "blank": 0.0}

BLENDED: tuple[Rule, ...] = ("refusal", "one_side")
"""Rules that give F-beta alone; the value is blended with the similarity as usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How parts become a value."""

    weights: tuple[float, float] = (0.75, 0.25)
    beta: float = 1.0
    recall_over: RecallOver = "reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """What parts come to."""

    value: float | None
    reason: str | None
    f_beta: float | None
    precision: float | None
    recall: float | None


def combined(counts: Counts, similarity: float | None, settings: Settings, *, rule: Rule | None = None) -> Combined:
    """Combine the parts of an item.

    Parameters
    ----------
    counts : Counts
    similarity : float or None
    settings : Settings
    rule : str or None
        What decided in place of the claims: «identical» and «both_refuse» give 1, «blank» 0; «refusal» and «one_side» have F-beta
        0, which is blended with the similarity; «no_claims» has no value.

    Returns
    -------
    Combined

    Examples
    --------
    >>> found = combined(Counts(tp_response=2, fp=2, tp_reference=2, fn=2), 0.938, Settings())
    >>> found.f_beta, round(found.value, 4)
    (0.5, 0.6095)
    >>> combined(Counts(tp_response=0, fp=0, tp_reference=0, fn=0), None, Settings(), rule="no_claims").value is None
    True
    """
    precision, recall, f_beta = scored(counts, beta=settings.beta, recall_over=settings.recall_over)
    if rule is None:
        return Combined(
            value=blend(f_beta, similarity, settings.weights), reason=None, f_beta=f_beta, precision=precision, recall=recall
        )
    f_beta = _F_BETA.get(rule)
    if rule == "identical":
        precision = recall = 1.0
    elif rule == "refusal":
        recall = 0.0
    return Combined(
        value=blend(f_beta, similarity, settings.weights) if rule in BLENDED else _VALUE.get(rule),
        reason=_REASONS[rule],
        f_beta=f_beta,
        precision=precision,
        recall=recall,
    )
