"""The System One wire: a decision model that gives its own distribution over levels (Jev at TypeSafe, and compatible servers)."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from isograde.backends.base import Reply
from isograde.backends.wire import Rejected, Wire
from isograde.errors import UserError
from isograde.prompt import PROMPT_VERSION, Prompt, data_rule
from isograde.records import FailureStatus, GradeFailure, LevelDistribution, Method, Usage
from isograde.rubric import Rubric

__all__ = ["SystemOneBackend", "read_decision"]

_TYPESAFE = "https://api.typesafe.ai/v1"
_QUESTION = "level"
_MAX_OFF = 0.05  # how far a sum may be from 1: ten values that were rounded to two decimals


class SystemOneBackend:
    """Ask a decision model: one ``score`` question an item (``choice`` for a rubric without order), no prompt and no tokens.

    Parameters
    ----------
    model : str, default "jev-latest"
        Name of the model at the server.
    base_url : str or None
        Address of the server, with or without ``/v1``. None takes ``TYPESAFE_BASE_URL``, or TypeSafe's own address.
    api_key : str or None
        None takes ``TYPESAFE_API_KEY`` where ``base_url`` is None, and sends none elsewhere.
    timeout : float
        Seconds for one try.
    max_retries : int
        Tries after the first.
    concurrency : int
        Requests that are under way at once.

    Raises
    ------
    UserError
        If there is no key for TypeSafe, or the address is none.

    Examples
    --------
    >>> from isograde import Judge
    >>> judge = Judge(backend=SystemOneBackend(base_url="http://localhost:8000"))  # nothing is sent yet
    >>> judge.backend.server
    'http://localhost:8000/v1'
    """

    methods: tuple[Method, ...] = ("decision_model",)

    def __init__(
        self,
        model: str = "jev-latest",
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 4,
        concurrency: int = 16,
    ) -> None:
        self.model = model
        self.concurrency = concurrency
        if base_url is None:
            base_url = os.environ.get("TYPESAFE_BASE_URL", "").strip() or _TYPESAFE
            api_key = api_key or os.environ.get("TYPESAFE_API_KEY", "").strip() or None
            if api_key is None and base_url == _TYPESAFE:
                raise UserError("no key: set TYPESAFE_API_KEY, or name another server (--base-url)")
        self.wire = Wire(base_url=_address(base_url), api_key=api_key, timeout=timeout, max_retries=max_retries)
        self.server: str | None = self.wire.server

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, base_url={self.server!r})"

    @property
    def prompt_fingerprint(self) -> str:
        """Fingerprint of how an item is put into ``state`` and a rubric into the question."""
        shape = {"version": PROMPT_VERSION, "wire": "systemone"}
        return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:16]

    def adapter(self, rubric: Rubric) -> str | None:
        """None: what stands behind a server's model name is the server's."""
        del rubric
        return None

    def caveat(self, rubric: Rubric) -> str | None:
        """None: nothing is known of a server's model."""
        del rubric
        return None

    def request(self, prompt: Prompt, labels: tuple[str, ...]) -> dict[str, Any]:
        """Show the exact request that :meth:`ask` would send."""
        rubric = prompt.asked
        if rubric is None:
            raise UserError("a decision model is asked by a rubric; make the prompt with isograde.prompt.render")
        described = [level.description for level in rubric.levels]
        ordered = rubric.scale == "ordered"
        question = {
            "type": "score" if ordered else "choice",
            "instructions": f"{rubric.instructions.strip()}\n\n{data_rule(rubric)}",
            "criteria": described if ordered else dict(zip(labels, described, strict=True)),
        }
        return {"model": self.model, "state": dict(prompt.fields), "questions": {_QUESTION: question}}

    async def ask(self, prompt: Prompt, labels: tuple[str, ...]) -> Reply | GradeFailure:
        """Ask one question about one item.

        Returns
        -------
        Reply or GradeFailure
            The server's own body, for :func:`read_decision`.

        Raises
        ------
        ServerError
            If the key, the model or the quota is refused, or nothing answers.
        """
        try:
            reply = await self.wire.post("/systemone", self.request(prompt, labels))
        except Rejected as rejected:
            return await self.wire.failure(rejected, self.model)
        return replace(reply, usage=_usage(reply.body)) if isinstance(reply, Reply) else reply

    async def aclose(self) -> None:
        """Close the connections."""
        await self.wire.aclose()


def read_decision(body: Any, labels: tuple[str, ...], *, min_mass: float = 0.5) -> LevelDistribution | GradeFailure:
    """Read a System One answer into a probability per level.

    Only ``probabilities`` is read; the server's own ``score`` and ``confidence``, which servers define differently, are not.

    Parameters
    ----------
    body : mapping
        The decoded JSON of ``POST /v1/systemone``.
    labels : tuple of str, length n
        The levels' labels, from worst to best.
    min_mass : float
        Taken for the same shape as :func:`isograde.logprobs.read_response`; a decision has no other mass.

    Returns
    -------
    LevelDistribution or GradeFailure
        ``server_error`` for an error body or no answer, ``no_logprobs`` for a distribution that is none: keys that are not the
        levels', values that are no probabilities, a sum further than 0.05 from 1, a legend that contradicts the keys.

    Examples
    --------
    >>> answer = {"type": "score", "score": 0.9, "probabilities": {"0": 0.1, "1": 0.9}}
    >>> read_decision({"answers": {"level": answer}}, ("bad", "good")).probabilities
    (0.1, 0.9)
    """
    del min_mass
    if not isinstance(body, Mapping):
        return _failed("server_error", f"the server sent {type(body).__name__} in place of an answer")
    if error := body.get("error") or body.get("detail"):
        return _failed("server_error", f"the server answered with an error: {' '.join(str(error).split())[:300]}")
    answers = body.get("answers")
    answer = answers.get(_QUESTION) if isinstance(answers, Mapping) else None
    if not isinstance(answer, Mapping):
        return _failed("server_error", "the server answered without the question that was asked")
    kind, probabilities = answer.get("type"), answer.get("probabilities")
    keys = [str(i) for i in range(len(labels))] if kind == "score" else list(labels)
    if kind not in ("score", "choice") or not isinstance(probabilities, Mapping):
        return _failed("no_logprobs", f"the answer (type {str(kind)[:40]!r}) holds no probabilities")
    if set(probabilities) != set(keys):
        found = ", ".join(map(str, probabilities))[:80]
        return _failed("no_logprobs", f"the answer's probabilities are those of {found or 'nothing'}, not of {', '.join(keys)}")
    legend = answer.get("legend")
    if kind == "score" and isinstance(legend, Mapping) and set(legend) != set(keys):
        return _failed(
            "no_logprobs", "the answer's legend has other keys than its probabilities: which level is which is not known"
        )
    values = [probabilities[key] for key in keys]
    if not all(isinstance(p, int | float) and not isinstance(p, bool) and 0 <= p <= 1 for p in values):  # NaN compares false
        return _failed("no_logprobs", "the answer holds a probability that is none")
    total = math.fsum(values)
    if abs(total - 1) > _MAX_OFF + 1e-9:
        return _failed("no_logprobs", f"the answer's probabilities add up to {total:.3g}")
    return LevelDistribution(labels=labels, probabilities=tuple(p / total for p in values), observed_mass=1.0)


def _failed(status: FailureStatus, message: str) -> GradeFailure:
    return GradeFailure(status=status, message=message)


def _address(base_url: str) -> str:
    """Bring an address to the form that ends in /v1, as the questions' own path follows it."""
    address = base_url.rstrip("/").removesuffix("/systemone")
    return address if "/" in address.partition("://")[2] else f"{address}/v1"


def _usage(body: Any) -> Usage | None:
    """Read the tokens that the server counted."""
    usage = body.get("usage") if isinstance(body, Mapping) else None
    if not isinstance(usage, Mapping):
        return None
    counts = [count if isinstance(count, int) else None for count in (usage.get("input_tokens"), usage.get("output_tokens"))]
    return Usage(input_tokens=counts[0], output_tokens=counts[1])
