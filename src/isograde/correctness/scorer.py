"""One item → its parts → one result: the rules first, then claims, verdicts and similarity, with the rubric beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from isograde.correctness.asking import Asker, Ledger, PartFailed
from isograde.correctness.claims import ClaimMaker
from isograde.correctness.combine import BLENDED, Rule, Settings, combined
from isograde.correctness.counts import Counts, expected_f_beta
from isograde.correctness.results import Claim, Correctness, CorrectnessFailure
from isograde.correctness.rules import refuses, same
from isograde.correctness.verdicts import ClaimJudge, sorted_claims
from isograde.errors import NoLogprobsError
from isograde.judge import Judge
from isograde.prompt import is_blank
from isograde.records import Grade, GradeFailure, Item

__all__ = ["FIELDS", "Scorer"]

T = TypeVar("T")

FIELDS = ("input", "output", "expected")
"""What an item must have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """The claims of both texts, judged; or the rule that spares it."""

    response: tuple[Claim, ...] = ()
    reference: tuple[Claim, ...] = ()
    rule: Rule | None = None

    @property
    def counts(self) -> Counts:
        """How many are supported."""
        right, covered = sum(c.supported for c in self.response), sum(c.supported for c in self.reference)
        return Counts(tp_response=right, fp=len(self.response) - right, tp_reference=covered, fn=len(self.reference) - covered)


class Scorer:
    """Scores items, one at a time.

    Parameters
    ----------
    judge : Judge
        Grades the item by its own rubric.
    claims : ClaimMaker
    verdicts : ClaimJudge or Asker
        Judges each claim by itself, or sorts all in one call.
    similarity : callable or None
        Coroutine function of two texts and a ledger; raises PartFailed.
    settings : Settings
    parallel : bool
        Whether both texts' claims are under way at once.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        claims: ClaimMaker,
        verdicts: ClaimJudge | Asker,
        similarity: Any,
        settings: Settings,
        parallel: bool,
    ) -> None:
        self.judge, self.claims, self.verdicts, self.similarity = judge, claims, verdicts, similarity
        self.settings, self.parallel = settings, parallel
        self.proven = False
        self._no_rubric: GradeFailure | None = None

    async def score(self, item: Item, index: int | None = None) -> Correctness | CorrectnessFailure:
        """Score one item against each of its references and keep the highest value."""
        about: dict[str, Any] = {"item": item, "index": index}
        if missing := _missing(item):
            return CorrectnessFailure(status="invalid_item", message=missing, **about)
        output = item.output or ""
        for place, reference in enumerate(item.references):
            if same(output, reference):
                at = place if len(item.references) > 1 else None
                return replace(self._built(_Judged(rule="identical"), None), identical=True, reference_index=at, **about)
        ledger = Ledger()
        rubric = await self._rubric(item, ledger)
        best: Correctness | None = None
        kept: dict[str, list[str]] = {}  # the response's claims, which are the same against each reference
        for place, reference in enumerate(item.references):
            try:
                found = await self._against(item.input or "", output, reference, ledger, kept)
            except PartFailed as failed:
                several = len(item.references) > 1
                message = f"reference {place + 1} of {len(item.references)}: {failed.message}" if several else failed.message
                return _failure(failed, ledger, message=message, rubric=rubric, **about)
            if len(item.references) > 1:
                found = replace(found, reference_index=place)
            if best is None or _rank(found) > _rank(best):
                best = found
        assert best is not None  # noqa: S101 - there is a reference
        self.proven = True
        failures = best.failures
        if isinstance(rubric, GradeFailure):
            failures += (CorrectnessFailure(part="rubric", status=rubric.status, message=rubric.message),)
        return replace(
            best,
            rubric=rubric,
            refused=refuses(output),
            usage=ledger.total,
            usage_by_part=ledger.usage,
            seconds_by_part=ledger.seconds,
            failures=failures,
            **about,
        )

    async def _rubric(self, item: Item, ledger: Ledger) -> Grade | GradeFailure:
        """Grade the item as the judge always does; first, since that shows whether the server can be used."""
        if self._no_rubric is not None:
            return self._no_rubric
        try:
            grade = await self.judge.grade(item)
        except NoLogprobsError as error:
            if not isinstance(self.verdicts, Asker):
                raise
            self._no_rubric = GradeFailure(status="no_logprobs", message=str(error), rubric=self.judge.rubric.name)
            return self._no_rubric  # generated verdicts need no logprobs; only the rubric does
        if isinstance(grade, Grade):
            ledger.add("rubric", grade.usage, grade.latency_s)
        return grade

    async def _against(
        self, question: str, response: str, reference: str, ledger: Ledger, kept: dict[str, list[str]]
    ) -> Correctness:
        """Score against one reference."""
        failures: list[CorrectnessFailure] = []
        weights = self.settings.weights
        try:
            judged = _ruled(response, reference) or await self._judged(question, response, reference, ledger, kept)
        except PartFailed as failed:
            if weights[0]:
                raise
            failures.append(CorrectnessFailure(part=failed.part, status=failed.status, message=failed.message, raw=failed.raw))
            judged = _Judged()
        similarity: float | None = None
        if self.similarity is not None and (judged.rule is None or judged.rule in BLENDED):
            try:
                similarity = await self.similarity(response, reference, ledger)
            except PartFailed as failed:
                if weights[1]:
                    raise
                failures.append(CorrectnessFailure(part=failed.part, status=failed.status, message=failed.message))
        return replace(self._built(judged, similarity), failures=tuple(failures))

    async def _judged(self, question: str, response: str, reference: str, ledger: Ledger, kept: dict[str, list[str]]) -> _Judged:
        """Make both texts' claims and judge them."""
        of_reference = self.claims.of_reference(question, reference, ledger)
        if response in kept:
            ours, theirs = kept[response], await of_reference
        else:
            ours, theirs = await self._both(self.claims.of_response(question, response, ledger), of_reference)
            kept[response] = ours
        if not ours or not theirs:
            return _Judged(
                response=tuple(Claim(text=text, supported=False) for text in ours),
                reference=tuple(Claim(text=text, supported=False) for text in theirs),
                rule="one_side" if ours or theirs else "no_claims",
            )
        if isinstance(self.verdicts, Asker):
            right, covered = await sorted_claims(self.verdicts, question, ours, theirs, ledger)
        else:
            right, covered = await self._both(
                self.verdicts.of(question, reference, ours, ledger),
                self.verdicts.of(question, response, theirs, ledger),
            )
        return _Judged(response=tuple(right), reference=tuple(covered))

    async def _both(self, one: Coroutine[Any, Any, T], other: Coroutine[Any, Any, T]) -> tuple[T, T]:
        """Await two, at once where the server takes many requests."""
        if self.parallel:
            found = await asyncio.gather(one, other, return_exceptions=True)  # both end before the item does
            errors = [each for each in found if isinstance(each, BaseException)]
            if errors:  # one that ends the run comes before one that ends the item
                raise min(errors, key=lambda error: isinstance(error, PartFailed))
            return found[0], found[1]  # type: ignore[return-value] # neither is an exception
        try:
            return await one, await other
        finally:
            other.close()  # where the first failed, the second was never begun

    def _built(self, judged: _Judged, similarity: float | None) -> Correctness:
        """Put the parts together."""
        settings = self.settings
        parts = combined(judged.counts, similarity, settings, rule=judged.rule)
        expected: tuple[float, float] | None = None
        probabilities = [[claim.probability for claim in side] for side in (judged.response, judged.reference)]
        if judged.rule is None and None not in probabilities[0] + probabilities[1]:
            ours, theirs = ([p or 0.0 for p in side] for side in probabilities)
            expected = expected_f_beta(ours, theirs, beta=settings.beta, recall_over=settings.recall_over)
        return Correctness(
            value=parts.value,
            reason=parts.reason,
            f_beta=parts.f_beta,
            precision=parts.precision,
            recall=parts.recall,
            expected_f_beta=None if expected is None else expected[0],
            f_beta_spread=None if expected is None else expected[1],
            similarity=similarity,
            counts=judged.counts,
            response_claims=judged.response,
            reference_claims=judged.reference,
            rule=judged.rule,
            method=self.method,
            weights=settings.weights,
            beta=settings.beta,
            recall_over=settings.recall_over,
            caveat=None if isinstance(self.verdicts, Asker) or judged.rule is not None else self.verdicts.caveat,
        )

    @property
    def method(self) -> dict[str, str]:
        """How the parts are come by."""
        return {
            "claims": self.claims.method,
            "verdicts": "generated" if isinstance(self.verdicts, Asker) else "logprobs",
            "recall_over": self.settings.recall_over,
            "model": self.judge.backend.model,
        }


def _missing(item: Item) -> str | None:
    """Say which field that is needed an item lacks; a blank response is no gap, but an answer that is worth 0."""
    for name in FIELDS:
        if getattr(item, name) is None or (name == "expected" and not item.references):
            return f"field {name!r} is missing; answer correctness needs it"
    for name, texts in (("input", (item.input or "",)), ("expected", item.references)):
        if any(map(is_blank, texts)):
            return f"field {name!r} is blank; answer correctness needs it"
    return None


def _ruled(response: str, reference: str) -> _Judged | None:
    """Decide what needs no claims."""
    if is_blank(response):
        return _Judged(rule="blank")
    if refuses(response):
        return _Judged(rule="both_refuse" if refuses(reference) else "refusal")
    return None


def _failure(failed: PartFailed, ledger: Ledger, **about: Any) -> CorrectnessFailure:
    """Write a failure with what was spent."""
    return CorrectnessFailure(
        part=failed.part,
        status=failed.status,
        raw=failed.raw,
        usage=ledger.total,
        usage_by_part=ledger.usage,
        seconds_by_part=ledger.seconds,
        **about,
    )


def _rank(result: Correctness) -> float:
    return -1.0 if result.value is None else result.value
