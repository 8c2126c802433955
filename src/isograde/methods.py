"""How a grade is come by: which prompt asks, how many answers are wanted, and how they are read into one distribution."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias, get_args

from isograde.backends import Reply
from isograde.backends.systemone import read_decision
from isograde.errors import UserError
from isograde.logprobs import each_choice, read_answer, read_response
from isograde.prompt import CUE, Prompt, render
from isograde.records import GradeFailure, Item, LevelDistribution, Method, Samples, Usage
from isograde.rubric import Rubric

__all__ = ["CHOSEN", "Ask", "Seen", "Way", "certain_lowest", "dirichlet", "way_of"]

ChosenMethod: TypeAlias = Literal["answer_token", "sampling", "reasoning_first"]
CHOSEN: tuple[str, ...] = get_args(ChosenMethod)
"""The methods that a user can choose; a decision model has its own."""

_SAMPLES = {"sampling": 10, "reasoning_first": 1}


class Ask(Protocol):
    """Asks a backend; ``repeat`` tells apart the requests about one item that are otherwise the same."""

    async def __call__(self, prompt: Prompt, labels: tuple[str, ...], *, repeat: int = 0) -> Reply | GradeFailure:
        """Ask once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read of one item, and what it cost."""

    distribution: LevelDistribution
    usage: Usage | None
    latency_s: float | None
    samples: Samples | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One method at work.

    Attributes
    ----------
    method : str
        As it stands on grades.
    samples : int
        Answers an item.
    """

    method: Method
    samples: int = 1

    def prompt(self, rubric: Rubric, item: Item, reference: int = 0) -> Prompt:
        """Write the prompt; see :func:`isograde.prompt.render`."""
        return render(rubric, item, reference=reference, method=self.method, samples=self.samples)

    def fingerprint(self, shape: str) -> str:
        """Tell prompts of one shape apart by method and number of answers; the answer token's stays the shape's own."""
        if self.method in {"answer_token", "decision_model"}:
            return shape
        told = {"shape": shape, "method": self.method, "samples": self.samples}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]

    async def seen(self, ask: Ask, prompt: Prompt, labels: tuple[str, ...], *, min_mass: float) -> Seen | GradeFailure:
        """Ask, and read what comes.

        Parameters
        ----------
        ask : Ask
            How the backend is asked.
        prompt : Prompt
            From :meth:`prompt`.
        labels : tuple of str
            The levels' labels.
        min_mass : float
            Observed mass (of answers: the share that names a level) below which the item fails.

        Returns
        -------
        Seen or GradeFailure
        """
        replies = await _answers(ask, prompt, labels)
        if isinstance(replies, GradeFailure):
            return replies
        if self.method == "sampling":
            return _counted(replies, labels, min_mass)
        if self.method == "reasoning_first":
            return _averaged(replies, labels, min_mass)
        read = read_decision if self.method == "decision_model" else read_response
        distribution = read(replies[0].body, labels, min_mass=min_mass)
        if isinstance(distribution, GradeFailure):
            return distribution
        return Seen(distribution=distribution, usage=replies[0].usage, latency_s=replies[0].latency_s)


def way_of(method: str | None, samples: int | None, methods: Sequence[Method], *, prefill: bool = False) -> Way:
    """Choose the way that a judge was asked for.

    Parameters
    ----------
    method : str or None
        ``answer_token``, ``sampling`` or ``reasoning_first``; None is the backend's own.
    samples : int or None
        Answers an item; None is 10 for sampling and 1 for reasoning first.
    methods : sequence of str
        How the backend can be read; the first is its own way.
    prefill : bool
        Whether the assistant's turn is to be opened with the level's cue.

    Returns
    -------
    Way

    Raises
    ------
    UserError
        If there is no such method, or it does not go with the backend or the number of samples.

    Examples
    --------
    >>> way_of("sampling", None, ("answer_token", "sampling"))
    Way(method='sampling', samples=10)
    >>> way_of(None, None, ("answer_token", "sampling"))
    Way(method='answer_token', samples=1)
    """
    if method is not None and method not in CHOSEN:
        raise UserError(f"method {method!r}: choose one of {', '.join(CHOSEN)}")
    if method is not None and method not in methods:
        raise UserError(
            f"method {method!r}: this backend is read by {' or '.join(methods)}; leave the method out, or ask a server"
        )
    chosen: Any = method or methods[0]
    if chosen == "reasoning_first" and prefill:
        raise UserError("prefill opens the turn with the level, and leaves no place to reason first; give one or the other")
    if chosen not in _SAMPLES:
        if samples is not None:
            raise UserError(f"samples: only for the methods {' and '.join(_SAMPLES)}; {chosen} asks once")
        return Way(method=chosen)
    if samples is not None and (isinstance(samples, bool) or not isinstance(samples, int) or samples < 1):
        raise UserError(f"samples must be a whole number of at least 1, is {samples!r}")
    if chosen == "sampling" and samples == 1:
        raise UserError("samples: one sampled answer says nothing of how sure the model is; ask for at least 2")
    return Way(method=chosen, samples=samples or _SAMPLES[chosen])


def certain_lowest(rubric: Rubric) -> Seen:
    """Put all mass on level 0, which a rubric's rule gives a blank output unasked.

    Examples
    --------
    >>> from isograde.rubric import load_rubric
    >>> certain_lowest(load_rubric("relevance")).distribution.expected_level
    0.0
    """
    certain = (1.0, *[0.0] * (len(rubric.labels) - 1))
    distribution = LevelDistribution(labels=rubric.labels, probabilities=certain, observed_mass=1.0)
    return Seen(distribution=distribution, usage=None, latency_s=None)


def dirichlet(counts: Sequence[int]) -> tuple[tuple[float, ...], float]:
    """Estimate level probabilities from counts of sampled answers.

    The prior is Dirichlet with 1/n a level (Perks' reference prior): all of it weighs as much as one answer.

    Parameters
    ----------
    counts : sequence of int, length n
        Answers by level.

    Returns
    -------
    probabilities : tuple of float, length n
        Posterior means, (count + 1/n) ÷ (answers + 1).
    sd : float
        Posterior standard deviation of the expected level Σ i·pᵢ, in levels.

    References
    ----------
    Perks, W. (1947). Some observations on inverse probability including a new indifference rule. Journal of the Institute of
    Actuaries 73(2), 285–334. https://doi.org/10.1017/S0020268100012270

    Examples
    --------
    >>> p, sd = dirichlet([0, 0, 0, 2, 7])
    >>> [round(each, 2) for each in p], round(sd, 3)
    ([0.02, 0.02, 0.02, 0.22, 0.72], 0.241)
    """
    n = len(counts)
    total = sum(counts) + 1
    p = tuple((count + 1 / n) / total for count in counts)
    mean = math.fsum(i * each for i, each in enumerate(p))
    # the variance of a linear form of a Dirichlet: that of one draw, over the total concentration + 1
    variance = math.fsum((i - mean) ** 2 * each for i, each in enumerate(p)) / (total + 1)
    return p, math.sqrt(variance)


async def _answers(ask: Ask, prompt: Prompt, labels: tuple[str, ...]) -> list[Reply] | GradeFailure:
    """Ask until as many answers are there as are wanted: at once where the server takes ``n``, else one after the other."""
    found: list[Reply] = []
    while len(found) < prompt.samples:
        reply = await ask(replace(prompt, samples=prompt.samples - len(found)) if found else prompt, labels, repeat=len(found))
        if isinstance(reply, GradeFailure):
            return reply
        several = each_choice(reply.body)[: prompt.samples - len(found)] if prompt.samples > 1 else []
        if len(several) <= 1:
            found.append(reply)
        else:  # tokens and time are those of all together, and stand on the first
            found.append(replace(reply, body=several[0]))
            found += [Reply(body=body, usage=None, latency_s=0.0) for body in several[1:]]
    return found


def _counted(replies: Sequence[Reply], labels: tuple[str, ...], min_mass: float) -> Seen | GradeFailure:
    """Count sampled answers by level."""
    answers = [read_answer(reply.body, labels, cue=CUE) for reply in replies]
    named = [answer for answer in answers if isinstance(answer, str)]
    failed = [answer for answer in answers if isinstance(answer, GradeFailure)]
    share = len(named) / len(answers)
    if not named or share < min_mass:
        said = f"{len(named)} of {len(answers)} sampled answers name a level ({failed[0].message})"
        return GradeFailure(status="low_mass" if named else failed[0].status, message=said)
    counts = [named.count(label) for label in labels]
    probabilities, sd = dirichlet(counts)
    distribution = LevelDistribution(
        labels=labels,
        probabilities=probabilities,
        observed_mass=share,
        missing_levels=tuple(label for label, count in zip(labels, counts, strict=True) if not count),
        prefix_probability=None,
    )
    samples = Samples(n=len(answers), n_invalid=len(failed), sd=sd)
    return Seen(distribution=distribution, usage=_total(replies), latency_s=_seconds(replies), samples=samples)


def _averaged(replies: Sequence[Reply], labels: tuple[str, ...], min_mass: float) -> Seen | GradeFailure:
    """Average the distributions after several reasonings, each read at its own last cue."""
    read = [_reasoned(reply.body, labels, min_mass) for reply in replies]
    seen = [each for each in read if isinstance(each, LevelDistribution)]
    failed = [each for each in read if isinstance(each, GradeFailure)]
    if not seen or len(seen) / len(read) < min_mass:
        first = failed[0]
        return first if len(read) == 1 else replace(first, message=f"{len(failed)} of {len(read)} reasonings: {first.message}")
    k = len(seen)
    levels = [each.expected_level for each in seen]
    mean = math.fsum(levels) / k
    spread = math.sqrt(math.fsum((level - mean) ** 2 for level in levels) / (k - 1)) if k > 1 else None
    distribution = LevelDistribution(
        labels=labels,
        probabilities=tuple(math.fsum(p) / k for p in zip(*(each.probabilities for each in seen), strict=True)),
        observed_mass=math.fsum(each.observed_mass for each in seen) / k,
        unseen_mass=math.fsum(each.unseen_mass for each in seen) / k,
        missing_levels=tuple(label for label in labels if all(label in each.missing_levels for each in seen)),
        prefix_probability=seen[0].prefix_probability if k == 1 else None,
    )
    samples = Samples(n=len(read), n_invalid=len(failed), sd=spread)
    return Seen(distribution=distribution, usage=_total(replies), latency_s=_seconds(replies), samples=samples)


def _reasoned(body: Any, labels: tuple[str, ...], min_mass: float) -> LevelDistribution | GradeFailure:
    """Read the level after a reasoning; one that was cut off has none, whatever stands before the cut."""
    seen = read_response(body, labels, method="reasoning_first", cue=CUE, min_mass=min_mass)
    [choice] = each_choice(body)[:1] or [{"choices": [None]}]
    choice = choice["choices"][0]
    cut = isinstance(choice, dict) and choice.get("finish_reason") == "length"
    if cut and (isinstance(seen, LevelDistribution) or seen.status in {"no_answer", "low_mass"}):
        return GradeFailure(
            status="no_answer", message="the reasoning was cut off before it ended with a level; allow more tokens (--max-tokens)"
        )
    return seen


def _total(replies: Sequence[Reply]) -> Usage | None:
    """Sum up the tokens of several replies; None where nobody counted."""
    known = [reply.usage for reply in replies if reply.usage is not None]
    if not known:
        return None

    def added(name: str) -> int | None:
        counts = [count for usage in known if (count := getattr(usage, name)) is not None]
        return sum(counts) if counts else None

    return Usage(**{name: added(name) for name in ("input_tokens", "output_tokens", "cached_tokens")})


def _seconds(replies: Sequence[Reply]) -> float:
    """Sum up the time that was waited."""
    return math.fsum(reply.latency_s for reply in replies)
