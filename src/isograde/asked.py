"""Asking a backend with what was answered before at hand: nothing that is kept is asked again."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from isograde.backends import Backend, Reply
from isograde.backends.wire import WAYS_OUT
from isograde.errors import NoLogprobsError, ServerError
from isograde.prompt import Prompt
from isograde.records import GradeFailure, Usage
from isograde.store import Answer, Store, answer_key

__all__ = ["Asked", "Trust", "truncation"]

_HOPELESS = 5  # failures in a row, without any answer before, after which the server is given up
_PIECE = re.compile(r"\w{1,16}")
_REPEATED = re.compile(r"(.{1,8}?)\1{2,}", re.DOTALL)  # rows of blanks, dashes, letters, which tokens of their own swallow
_SHORT = 8  # characters a token, up to which no prompt is looked at


class Asked:
    """The answers to the questions about one item, from a store or from the backend; see :class:`isograde.methods.Ask`.

    Parameters
    ----------
    backend : Backend
    store : Store or None
    adapter : str or None
        Fingerprint of the adapter that judges.

    Attributes
    ----------
    n_new : int
        Answers that were not on file.
    shape : str or None
        Prompt fingerprint of the last answer; None where there was none.
    """

    def __init__(self, backend: Backend, store: Store | None, *, adapter: str | None) -> None:
        self._backend, self._store, self._adapter = backend, store, adapter
        self._new: list[tuple[bytes, Answer]] = []
        self._keys: list[bytes] = []
        self.n_new = 0
        self.shape: str | None = None

    async def __call__(self, prompt: Prompt, labels: tuple[str, ...], *, repeat: int = 0) -> Reply | GradeFailure:
        """Answer from the store, or ask."""
        key = self.about(prompt, labels, repeat=repeat)
        known = None if self._store is None else self._store.get(key)
        if known is not None:
            self.shape = known.prompt_fingerprint
            return Reply(body=known.body, usage=known.usage, latency_s=known.latency_s or 0.0)
        self.n_new += 1
        reply = await self._backend.ask(prompt, labels)
        if isinstance(reply, Reply):
            self.shape = self._backend.prompt_fingerprint
            if self._store is not None:
                about: dict[str, Any] = {"usage": reply.usage, "latency_s": reply.latency_s, "prompt_fingerprint": self.shape}
                self._new.append((key, Answer(body=reply.body, raw=reply.raw, **about)))
        return reply

    def about(self, prompt: Prompt, labels: tuple[str, ...], *, repeat: int = 0) -> bytes:
        """Hash a question with everything that shapes its answer.

        The request is taken as it was configured (``backend.asked``), where the backend tells that from what a server's
        rejections made of it: the same command finds its answers again, whatever was learnt in between.
        """
        backend = self._backend
        request: Any = getattr(backend, "asked", backend.request)(prompt, labels)
        key = answer_key(
            kind=f"level by {prompt.method}",
            server=backend.server,
            model=backend.model,
            request=request,
            adapter=self._adapter,
            repeat=repeat,
        )
        if repeat == 0:
            self._keys.append(key)
        return key

    @property
    def fingerprint(self) -> str:
        """16 hex digits over all questions; how often each was repeated says nothing."""
        return hashlib.sha256(b"".join(self._keys)).hexdigest()[:16]

    async def keep(self) -> None:
        """Put what is new on file; called once it could be read."""
        new, self._new = self._new, []
        if self._store is not None:
            for key, answer in new:
                await self._store.keep(key, answer)


def truncation(prompt: Prompt, usage: Usage | None) -> GradeFailure | None:
    """Suspect that a server cut the prompt: it counted less than one token for two words of the item.

    A token is hardly ever longer than a word, nor than 16 characters of one, in any language; what is repeated counts once. Only
    the item's own message is looked at, since some servers leave a cached prefix out of their count. So a suspicion is not raised
    without cause, while a cut that leaves more than about a third of an English text, or much of one without blanks between
    words, is not seen.

    Parameters
    ----------
    prompt : Prompt
        What was asked.
    usage : Usage or None
        What the server counted.

    Returns
    -------
    GradeFailure or None
        With status ``suspected_truncation``.
    """
    counted = None if usage is None else usage.input_tokens
    if not counted or len(prompt.user) < counted * _SHORT:
        return None
    if len(_PIECE.findall(_REPEATED.sub(r"\1", prompt.user))) < 2 * counted:
        return None
    message = (
        f"the server counted {counted:,} tokens for an item of {len(prompt.user):,} characters: it seems to cut prompts; let it "
        "have a longer context (Ollama: num_ctx)"
    )
    return GradeFailure(status="suspected_truncation", message=message)


class Trust:
    """What is known of a server: asked one item at a time until it has given one distribution, given up where it never does."""

    def __init__(self, *, decides: bool) -> None:
        self.proven = False
        self._decides = decides
        self._failures = 0
        self._last: GradeFailure

    def failed(self, failure: GradeFailure) -> None:
        """Stop the run where the server never showed what is needed."""
        if self.proven or failure.status in {"filtered", "too_long", "low_mass"}:
            return
        if failure.status == "no_logprobs":
            advice = "isograde doctor looks at the server" if self._decides else WAYS_OUT
            raise NoLogprobsError(f"the server's first answer shows no usable logprobs ({failure.message}); {advice}")
        self._failures += 1
        self._last = failure

    def check(self) -> None:
        """Stop before another request where the first ones all failed."""
        if not self.proven and self._failures >= _HOPELESS:
            said = f"the first {self._failures} requests all failed, the last with {self._last.status}: {self._last.message}"
            raise ServerError(said, retryable=True)
