"""Claims → verdicts: each by the probability of a two-level question, or all of them in one call, as RAGAS does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from isograde.correctness.asking import Asker, Ledger, PartFailed, json_prompt
from isograde.correctness.results import Claim
from isograde.correctness.rules import same
from isograde.correctness.sentences import sentences
from isograde.judge import Judge
from isograde.prompt import Prompt
from isograde.records import GradeFailure, Item
from isograde.rubric import Level, Rubric, load_rubric

__all__ = ["CLAIM_SUPPORT", "ClaimJudge", "LogprobVerdicts", "SentenceVerdicts", "claim_judge", "sorted_claims", "sorting_prompt"]

CLAIM_SUPPORT = Rubric(
    name="claim_support",
    description="Whether a text supports a claim (0 or 1).",
    fields={"input": "question", "text": "text", "claim": "claim"},
    instructions=(
        "Decide whether a claim is supported by a text, which answers a question. Compare what is stated, not how it is worded "
        "or in which language. Numbers, dates, units and names must agree exactly; what the text does not state is not "
        "supported, even if it is true in the world."
    ),
    levels=(
        Level(label="0", description="the text contradicts the claim or does not state it"),
        Level(label="1", description="the text states the claim, or it follows directly from what the text states"),
    ),
    item="{input}\n{text}\n{claim}",
    blank_output="ask",
)
"""The two-level question that is asked about each claim; the text stands before the claim, so that its tokens are shared."""

_NEAREST = 4  # sentences of a long text that a claim is compared with
_SORTING = """\
Sort the claims of an answer (A1, A2 ...) and of a reference (R1, R2 ...), both to the same question. TP: claims of the answer \
that the reference states, or that follow directly from it. FP: claims of the answer that the reference contradicts or does not \
state. FN: claims of the reference that the answer does not state. Each A stands in TP or in FP, exactly once; an R stands in FN \
or nowhere. Compare what is stated, not how it is worded. Numbers, dates, units and names must agree exactly."""
_EXAMPLE = '{"TP": ["A1"], "FP": ["A2"], "FN": ["R1"]}'
_NAMES: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"TP": _NAMES, "FP": _NAMES, "FN": _NAMES},
    "required": ["TP", "FP", "FN"],
    "additionalProperties": False,
}


def sorting_prompt(question: str, response: Sequence[str], reference: Sequence[str]) -> Prompt:
    """Write the prompt that asks for all claims to be sorted at once."""
    numbered = {
        "question": question.strip(),
        "answer": "\n".join(f"A{i}: {claim}" for i, claim in enumerate(response, 1)),
        "reference": "\n".join(f"R{i}: {claim}" for i, claim in enumerate(reference, 1)),
    }
    return json_prompt("claim_sorting", _SORTING, _EXAMPLE, numbered, "Sorted?")


async def sorted_claims(
    asker: Asker, question: str, response: Sequence[str], reference: Sequence[str], ledger: Ledger
) -> tuple[list[Claim], list[Claim]]:
    """Have all claims sorted in one call, RAGAS's way, and check the count.

    Parameters
    ----------
    asker : Asker
    question : str
    response, reference : sequence of str
        Claims; at least one of each.
    ledger : Ledger

    Returns
    -------
    tuple of list of Claim
        Those of the response and those of the reference, in their order.

    Raises
    ------
    PartFailed
        If a claim was left out, sorted twice or invented, and was so again after one repair.
    """

    def read(value: Any) -> tuple[list[Claim], list[Claim]]:
        return _sorting(value, response, reference)

    prompt = sorting_prompt(question, response, reference)
    return await asker.ask(prompt, _SCHEMA, read, part="verdicts", ledger=ledger)


def _sorting(value: Any, response: Sequence[str], reference: Sequence[str]) -> tuple[list[Claim], list[Claim]]:
    """Read which claims are supported, each sorted exactly once and none invented."""
    if not isinstance(value, Mapping):
        raise ValueError(f"it is no {_EXAMPLE}")
    found = {str(key).strip().upper(): entries for key, entries in value.items()}
    if missing := [key for key in ("TP", "FP", "FN") if not isinstance(found.get(key), list)]:
        raise ValueError(f"{', '.join(missing)} is no list")
    true, false = ([_place(entry, "A", response) for entry in found[key]] for key in ("TP", "FP"))
    absent = [_place(entry, "R", reference) for entry in found["FN"]]
    for place in range(len(response)):
        times = true.count(place) + false.count(place)
        if times != 1:
            raise ValueError(f"A{place + 1} is sorted {times} times; each A stands in TP or FP, once")
    if twice := [place + 1 for place in set(absent) if absent.count(place) > 1]:
        raise ValueError(f"R{twice[0]} stands in FN more than once")
    return (
        [Claim(text=text, supported=place in true) for place, text in enumerate(response)],
        [Claim(text=text, supported=place not in absent) for place, text in enumerate(reference)],
    )


def _place(entry: Any, letter: str, claims: Sequence[str]) -> int:
    """Find the claim that an entry names: by its number, or word for word."""
    if isinstance(entry, Mapping):
        entry = next((entry[key] for key in ("id", "claim", "statement", "text") if key in entry), None)
    said = str(entry).strip()
    for place, claim in enumerate(claims):
        if same(claim, said):
            return place
    name = re.match(rf"{letter}?(\d+)(?:\s*[:.)]|\Z)", said, re.IGNORECASE)
    if name and 1 <= int(name[1]) <= len(claims):
        return int(name[1]) - 1
    raise ValueError(f"{said[:60]!r} is no claim of {'the answer' if letter == 'A' else 'the reference'}")


class ClaimJudge(Protocol):
    """Judges claims one by one."""

    @property
    def caveat(self) -> str | None:
        """What is known to speak against the verdicts, in one line; None where nothing is."""

    async def of(self, question: str, text: str, claims: Sequence[str], ledger: Ledger) -> list[Claim]:
        """Judge claims against a text that may support them.

        Raises
        ------
        PartFailed
            If one could not be judged.
        """


def claim_judge(judge: Judge) -> ClaimJudge:
    """Choose the question: that of two levels, or the one that the embedded model was trained for."""
    trained = load_rubric("answer_correctness")
    if judge.backend.adapter(trained) is not None:
        return SentenceVerdicts(judge.with_rubric(trained))
    return LogprobVerdicts(judge)


class LogprobVerdicts:
    """Ask about each claim by itself, and read a probability.

    Parameters
    ----------
    judge : Judge
        Whose model is asked.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge.with_rubric(CLAIM_SUPPORT)

    @property
    def caveat(self) -> str | None:
        """What is known to speak against the verdicts."""
        return None

    async def of(self, question: str, text: str, claims: Sequence[str], ledger: Ledger) -> list[Claim]:
        """Judge the claims of one text against another, one after the other, so that each finds the text in the prefix cache.

        Parameters
        ----------
        question : str
        text : str
            What may support them.
        claims : sequence of str
        ledger : Ledger

        Returns
        -------
        list of Claim

        Raises
        ------
        PartFailed
            If one could not be judged.
        """
        if not claims:
            return []
        probabilities = [await self._probability(question, text, claim, ledger) for claim in claims]
        return [Claim(text=claim, supported=p >= 0.5, probability=p) for claim, p in zip(claims, probabilities, strict=True)]

    async def _probability(self, question: str, text: str, claim: str, ledger: Ledger) -> float:
        grade = await self._judge.grade(Item(input=question, metadata={"text": text, "claim": claim}))
        if isinstance(grade, GradeFailure):
            raise PartFailed("verdicts", grade.status, f"claim {claim[:60]!r}: {grade.message}")
        ledger.add("verdicts", grade.usage, grade.latency_s)
        return grade.probabilities["1"]


class SentenceVerdicts:
    """Judge claims by a model that was trained for the rubric ``answer_correctness`` and nothing else: the embedded one.

    The two-level question would be close to chance. What the model can do is to compare a short answer with a short reference;
    so each claim is graded as an answer against each sentence of the text as a reference, and its probability is the highest
    P(level ≥ 2) among them («partly correct» included, since a claim may be a part of a sentence). A sentence that equals the
    claim makes it 1 without a call; of a long text only the sentences that share most with the claim are asked.

    On 100 answers of SciEntsBank (unseen questions and domains; human verdicts, 39 % right), each against its reference hidden
    among three references of other questions, this has AUC 0.76 and 71 % right at 0.5; against the four as one text the same
    model has 0.71 and 62 %, and against the right reference alone 0.77 and 72 %.

    Parameters
    ----------
    judge : Judge
        Of the rubric ``answer_correctness``.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    @property
    def caveat(self) -> str | None:
        """What is known to speak against the verdicts."""
        return (
            "claims are sentences, judged one sentence against another by a model that was trained to grade whole answers: "
            "about seven verdicts of ten are right, and what is spread over several sentences is missed"
        )

    async def of(self, question: str, text: str, claims: Sequence[str], ledger: Ledger) -> list[Claim]:
        """Judge claims against the sentences of a text."""
        against = sentences(text)
        best = [float(any(same(claim, sentence) for sentence in against)) for claim in claims]
        near = [_nearest(claim, against) if p < 1 else set[str]() for claim, p in zip(claims, best, strict=True)]
        for sentence in against:  # outside, so that the claims that are asked against it share its tokens
            for place, claim in enumerate(claims):
                if sentence in near[place]:
                    best[place] = max(best[place], await self._probability(question, sentence, claim, ledger))
        return [Claim(text=claim, supported=p >= 0.5, probability=p) for claim, p in zip(claims, best, strict=True)]

    async def _probability(self, question: str, sentence: str, claim: str, ledger: Ledger) -> float:
        grade = await self._judge.grade(Item(input=question, output=claim, expected=sentence))
        if isinstance(grade, GradeFailure):
            raise PartFailed("verdicts", grade.status, f"claim {claim[:60]!r}: {grade.message}")
        ledger.add("verdicts", grade.usage, grade.latency_s)
        return min(1.0, sum(grade.distribution.probabilities[2:]))


def _nearest(claim: str, against: Sequence[str]) -> set[str]:
    """Choose the sentences that share the largest part of their three-letter pieces with a claim."""
    if len(against) <= _NEAREST:
        return set(against)
    ours = _pieces(claim)

    def shared(sentence: str) -> float:
        theirs = _pieces(sentence)
        return len(ours & theirs) / (len(ours | theirs) or 1)

    return set(sorted(against, key=shared, reverse=True)[:_NEAREST])


def _pieces(text: str) -> set[str]:
    folded = f" {' '.join(text.casefold().split())} "
    return {folded[i : i + 3] for i in range(len(folded) - 2)}
