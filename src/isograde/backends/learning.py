"""What one server and model turn out to want, learnt from their own answers and remembered; never guessed from names."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from isograde.backends.base import Memory, Reply
from isograde.backends.rejections import Parameters
from isograde.logprobs import answer_position, read_response
from isograde.prompt import Prompt
from isograde.records import LevelDistribution, Method

__all__ = ["MORE_LOGPROBS", "Learnt", "first_listed", "same_values", "settle"]

Post = Callable[[Parameters], Awaitable[Reply | None]]
"""Sends one request in a form; None where it was rejected or failed."""

_LASTS_S = 7 * 86_400.0  # a server is started anew with other flags now and then
_WIDE = 0.1  # levels between the bounds from which more listed tokens are asked for
MORE_LOGPROBS = 100
"""Listed tokens that are tried where the usual number leaves levels unseen."""
# How far a logprob may move between two equal requests, since batches round differently; less likely tokens move more
_NOISE, _NOISE_TAIL = 0.1, 0.05
_COMPARED = 5  # most likely tokens


class _Facts(BaseModel):
    """What is remembered of a server and its model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1]
    at: float
    forms: dict[str, Parameters]


class Learnt:
    """The form of requests that suits a server, by method.

    Parameters
    ----------
    first : Parameters
        The form to begin with.
    server, model : str
        What is learnt about.
    memory : Memory or None
        Where it is kept from run to run.
    """

    def __init__(self, first: Parameters, *, server: str, model: str, memory: Memory | None = None) -> None:
        self._asked = self._first = first
        self._forms: dict[Method, Parameters] = {}
        self._settled: set[Method] = set()
        self._server, self._model = server, model
        self._memory: Memory | None = None
        self.use(memory)

    def use(self, memory: Memory | None) -> None:
        """Keep what is learnt in a memory, and take up what it holds."""
        self._memory = memory
        for method, form in self._remembered().items():
            self._forms[method] = form
            self._settled.add(method)

    def save(self, memory: Memory) -> None:
        """Keep what was learnt in a memory, in place of what it holds."""
        self._memory = memory
        self._remember()

    def form(self, method: Method) -> Parameters:
        """Give the form to ask in."""
        return self._forms.get(method, self._first)

    def settled(self, method: Method) -> bool:
        """Tell whether the form is known to suit."""
        return method in self._settled

    def changed(self, method: Method, form: Parameters) -> None:
        """Take up a form that mends a rejection; what no method is special about holds for the others too."""
        self._forms[method] = form
        self._first = replace(form, max_tokens=self._first.max_tokens, greedy=False)
        if method in self._settled:
            self._remember()

    def settle(self, method: Method, form: Parameters) -> None:
        """Take up a form that is known to suit."""
        self._forms[method] = form
        self._settled.add(method)
        self._remember()

    def _remember(self) -> None:
        if self._memory is not None:
            forms = {self._key(method): self._forms[method].learnt(self._asked) for method in sorted(self._settled)}
            facts = _Facts(format=1, at=time.time(), forms=self._kept() | forms)
            self._memory.remember(self._server, self._model, facts.model_dump())

    def _remembered(self) -> dict[Method, Parameters]:
        """Find the forms of this judge's kind, within what the user asks for now."""
        kept = self._kept()
        methods: tuple[Method, ...] = ("answer_token", "sampling", "reasoning_first")
        return {method: self._asked.restored(kept[self._key(method)]) for method in methods if self._key(method) in kept}

    def _kept(self) -> dict[str, Parameters]:
        """Read what the memory holds, unless it is of another format or too old."""
        try:
            facts = _Facts.model_validate(None if self._memory is None else self._memory.facts(self._server, self._model))
        except ValidationError:
            return {}
        return facts.forms if 0 <= time.time() - facts.at < _LASTS_S else {}

    def _key(self, method: Method) -> str:
        return f"{method}+prefill" if self._first.prefill else method


async def settle(
    post: Post, form: Parameters, reply: Reply, prompt: Prompt, labels: tuple[str, ...]
) -> tuple[Parameters | None, Reply]:
    """Look at the first answer, and try at most two other forms where it shows that they may suit better.

    Parameters
    ----------
    post : callable
        Sends the same prompt in another form.
    form : Parameters
        What the first answer was asked with.
    reply : Reply
        The first answer.
    prompt : Prompt
    labels : tuple of str

    Returns
    -------
    form : Parameters or None
        The one to go on with; None where the answer shows nothing to go by.
    reply : Reply
        The answer to it.
    """
    if prompt.method == "sampling" or prompt.samples > 1:
        return form, reply
    method: Literal["answer_token", "reasoning_first"] = (
        "reasoning_first" if prompt.method == "reasoning_first" else "answer_token"
    )

    def read(body: Any) -> LevelDistribution | None:
        seen = read_response(body, labels, method=method, min_mass=0.0)
        return seen if isinstance(seen, LevelDistribution) else None

    seen = read(reply.body)
    if seen is None:
        return None, reply
    if not form.greedy and answer_position(reply.body, method=method):
        # other tokens come before the answer; at temperature 0 they are the same every time, if the logprobs do not change
        other = await post(replace(form, greedy=True))
        if other is not None and same_values(reply.body, other.body) and (again := read(other.body)) is not None:
            form, reply, seen = replace(form, greedy=True), other, again
    low, high = seen.expected_level_bounds
    if high - low > _WIDE and form.top_logprobs < MORE_LOGPROBS:
        wider = replace(form, top_logprobs=MORE_LOGPROBS)
        other = await post(wider)
        if other is not None and (again := read(other.body)) is not None:
            narrower = again.expected_level_bounds
            if narrower[1] - narrower[0] < (high - low) / 2:
                form, reply = wider, other
    return form, reply


def first_listed(body: Any) -> dict[str, float]:
    """Read the first position's tokens and logprobs; empty where nothing usable is listed."""
    try:
        position = body["choices"][0]["logprobs"]["content"][0]
        listed = {str(token["token"]): float(token["logprob"]) for token in [*position["top_logprobs"], position]}
    except (KeyError, IndexError, TypeError, ValueError):
        return {}
    return {token: value for token, value in listed.items() if value > -9999}


def same_values(one: Any, other: Any) -> bool:
    """Tell whether two answers to one prompt show the same distribution at their first token, whatever was sampled.

    Examples
    --------
    >>> def body(*values):
    ...     top = [{"token": token, "logprob": value} for token, value in zip("ab", values)]
    ...     return {"choices": [{"logprobs": {"content": [{**top[0], "top_logprobs": top}]}}]}
    >>> same_values(body(-0.5, -1.0), body(-0.52, -1.05)), same_values(body(-0.5, -1.0), body(-0.1, -2.0))
    (True, False)
    """
    values, others = first_listed(one), first_listed(other)
    top = sorted(values, key=lambda token: -values[token])[:_COMPARED]
    return len(top) > 1 and all(
        abs(values[token] - others.get(token, -math.inf)) <= _NOISE - _NOISE_TAIL * values[token] for token in top
    )
