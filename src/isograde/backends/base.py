"""What every wire to a model offers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from isograde.prompt import Prompt
from isograde.records import GradeFailure, Method, Usage
from isograde.rubric import Rubric

__all__ = ["Backend", "Memory", "Reply"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer, before it is read.

    Attributes
    ----------
    body : object
        The decoded JSON of a chat completion, as :func:`isograde.logprobs.read_response` takes it, or of a decision.
    usage : Usage or None
        Tokens, where the server counted them.
    latency_s : float
        Seconds from sending to having read.
    raw : bytes or None
        The body as it came over the wire, where it did.
    """

    body: Any
    usage: Usage | None
    latency_s: float
    raw: bytes | None = field(default=None, repr=False, compare=False)


class Memory(Protocol):
    """Keeps from run to run what was learnt of a server and its model."""

    def facts(self, server: str, model: str) -> dict[str, Any] | None:
        """What was remembered, as JSON has it; None where nothing was."""

    def remember(self, server: str, model: str, facts: dict[str, Any]) -> None:
        """Keep it in place of what was there."""


class Backend(Protocol):
    """One model, asked one token at a time.

    Attributes
    ----------
    model : str
        Name as it stands on grades.
    server : str or None
        Address without credentials; None in process.
    concurrency : int
        Requests that are under way at once unless the user says otherwise.
    methods : tuple of str
        How its answers can be read; the first is meant unless the user says otherwise.
    prompt_fingerprint : str
        Of the shape in which prompts are sent.
    """

    model: str
    server: str | None
    concurrency: int
    methods: tuple[Method, ...]

    @property
    def prompt_fingerprint(self) -> str:
        """Fingerprint of the prompt's version and shape."""

    def adapter(self, rubric: Rubric) -> str | None:
        """Fingerprint of the low-rank adapter beside the weights that judges this rubric; None where there is none."""

    def caveat(self, rubric: Rubric) -> str | None:
        """What is known to speak against this model as a judge by this rubric, in one line; None where nothing is."""

    async def ask(self, prompt: Prompt, labels: tuple[str, ...]) -> Reply | GradeFailure:
        """Ask once, for what ``prompt.method`` and ``prompt.samples`` say: one answer token and its logprobs, or more.

        Raises
        ------
        ServerError
            If the whole run cannot go on: nothing answers, the key is refused, no such model. What befalls one item is
            returned as a failure without the item.
        """

    def request(self, prompt: Prompt, labels: tuple[str, ...]) -> dict[str, Any]:
        """Show the exact request that :meth:`ask` would send."""

    async def aclose(self) -> None:
        """Release connections, threads and memory."""
