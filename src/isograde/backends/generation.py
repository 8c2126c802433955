"""One generating call with a JSON schema, over the chat backend's own wire and with what that has learned of its server.

Servers differ in how they take a schema: as ``json_schema``, as plain JSON mode, or not at all. What one rejects is mended once
and remembered, from the strictest form to the loosest; reading the text is the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from isograde.backends.base import Backend, Reply
from isograde.backends.wire import Rejected
from isograde.prompt import Prompt
from isograde.records import GradeFailure
from isograde.store import answer_key

if TYPE_CHECKING:
    from isograde.backends.chat import ChatBackend

__all__ = ["Generated", "Generator", "generator_of", "read_generated"]

_ROOM = 4096  # tokens that a reply may have
_MENDS = 12  # forms that one request may take before it is given up
_LIMITS = {"max_tokens", "max_completion_tokens"}
_OF_LOGPROBS = {"logprobs", "top_logprobs", "add_generation_prompt", "continue_final_message", "n", *_LIMITS}
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_LARGEST = re.compile(r"(?:<=|at most|maximum(?: allowed| value)?(?: is| of)?:?|up to|less than or equal to|supports) *(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """What a model wrote.

    Attributes
    ----------
    text : str
        Its final answer, less a thought in front of it.
    truncated : bool
        Whether the server cut it at the token limit.
    room : int
        That limit.
    reply : Reply
        What the server sent, with tokens and seconds.
    """

    text: str
    truncated: bool
    room: int
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """What is sent beside the messages; a new one is made when the server rejects a part."""

    schema: Literal["json_schema", "json_object", "none"] = "json_schema"
    limit: str
    room: int = _ROOM
    system_role: bool = True
    dropped: frozenset[str] = frozenset()


class Generator:
    """Ask the model behind a chat backend to write JSON.

    Parameters
    ----------
    backend : ChatBackend
        Its wire, its model, and the parameters that it has found its server to take.
    """

    def __init__(self, backend: ChatBackend) -> None:
        self._backend = backend
        self._form: _Form | None = None

    @property
    def model(self) -> str:
        """Name of the model at the server."""
        return self._backend.model

    def request(
        self, prompt: Prompt, schema: Mapping[str, Any], *, name: str, then: Sequence[tuple[str, str]] = ()
    ) -> dict[str, Any]:
        """Show the exact request that :meth:`generate` would send."""
        return self._body(self._form or self._first(prompt), prompt, schema, name, then)

    def key(self, prompt: Prompt, schema: Mapping[str, Any], *, name: str) -> bytes:
        """Hash what is asked for with everything that shapes the reply, as it was configured, whatever was mended since."""
        asked: Any = getattr(self._backend, "asked", self._backend.request)(prompt, ())
        request = {"asked": asked, "name": name, "schema": schema, "room": _ROOM}
        return answer_key(kind="text", server=self._backend.server, model=self._backend.model, request=request)

    async def generate(
        self, prompt: Prompt, schema: Mapping[str, Any], *, name: str, then: Sequence[tuple[str, str]] = ()
    ) -> Generated | GradeFailure:
        """Ask once, mending what the server rejects.

        Parameters
        ----------
        prompt : Prompt
            What is asked.
        schema : mapping
            JSON schema of the answer, strict: every property required, no others.
        name : str
            The schema's name.
        then : sequence of pairs of str
            Replies that could not be used, each with what was said of it.

        Returns
        -------
        Generated or GradeFailure

        Raises
        ------
        ServerError
            If the whole run cannot go on.
        """
        form = self._form or self._first(prompt)
        for _ in range(_MENDS):
            try:
                reply = await self._backend.wire.post("/chat/completions", self._body(form, prompt, schema, name, then))
            except Rejected as rejected:
                changed = _mended(form, rejected.status, rejected.message, self._base(prompt))
                if changed is None:
                    return await self._backend.wire.failure(rejected, self._backend.model)
                form = changed
            else:
                self._form = form
                return reply if isinstance(reply, GradeFailure) else read_generated(reply, form.room)
        return GradeFailure(status="server_error", message="every form of the generating request was rejected")

    def _base(self, prompt: Prompt) -> dict[str, Any]:
        """The judge's own request as it stands by now, less what is for reading logprobs."""
        asked = self._backend.request(prompt, ())
        return {key: value for key, value in asked.items() if key not in _OF_LOGPROBS}

    def _first(self, prompt: Prompt) -> _Form:
        asked = self._backend.request(prompt, ())
        return _Form(limit="max_tokens" if "max_tokens" in asked else "max_completion_tokens")

    def _body(
        self, form: _Form, prompt: Prompt, schema: Mapping[str, Any], name: str, then: Sequence[tuple[str, str]]
    ) -> dict[str, Any]:
        """Write the request."""
        base = self._base(prompt)
        system_role = form.system_role and base["messages"][0]["role"] == "system"
        messages = prompt.messages(system_role=system_role)
        for said, complaint in then:
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": complaint}]
        body = {**base, "messages": messages, "temperature": 0, form.limit: form.room}
        if form.schema == "json_schema":
            wanted = {"name": name, "strict": True, "schema": dict(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        elif form.schema == "json_object":
            body["response_format"] = {"type": "json_object"}
        return {key: value for key, value in body.items() if key not in form.dropped}


def generator_of(backend: Backend) -> Generator | None:
    """Give a generator where the backend's model can write; None for the embedded one, which answers single tokens.

    Examples
    --------
    >>> from isograde import Judge
    >>> generator_of(Judge(model="gpt-4.1-mini", api_key="sk-…").backend).model
    'gpt-4.1-mini'
    """
    from isograde.backends.chat import ChatBackend

    return Generator(backend) if isinstance(backend, ChatBackend) else None


def _mended(form: _Form, status: int, message: str, base: Mapping[str, Any]) -> _Form | None:
    """Change what a server's rejection names; None if it is of another kind."""
    if status not in {400, 403, 404, 415, 422, 500, 501}:
        return None
    said = message.lower()
    if form.schema != "none" and re.search(r"response_?format|json_?schema|json_?object|structured|grammar|schema", said):
        return replace(form, schema="json_object" if form.schema == "json_schema" else "none")
    if status not in {400, 403, 422}:
        return None
    if "max_completion_tokens" in said or "max_tokens" in said:
        other = "max_tokens" if form.limit != "max_tokens" else "max_completion_tokens"
        if f"'{other}' instead" in said or re.search(r"unsupported|unrecognized|unknown", said):
            return replace(form, limit=other)
        found = _LARGEST.search(said)
        if found and 0 < int(found[1]) < form.room:
            return replace(form, room=int(found[1]))
    if form.system_role and "system" in said and re.search(r"role|message|instruction", said):
        return replace(form, system_role=False)
    for name in base:
        if name not in {"model", "messages", "stream", *form.dropped} and re.search(rf"\b{name}\b", said):
            return replace(form, dropped=form.dropped | {name})
    return None


def read_generated(reply: Reply, room: int = _ROOM) -> Generated | GradeFailure:
    """Take the written text out of a chat completion."""
    body = reply.body
    choices = body.get("choices") if isinstance(body, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else None
    if choice is None:
        error = body.get("error") if isinstance(body, Mapping) else None
        said = " ".join(str(error).split())[:300] if error else "the answer has no choices"
        return GradeFailure(status="server_error", message=said)
    if choice.get("finish_reason") == "content_filter":
        return GradeFailure(status="filtered", message="the provider's content filter stopped the reply")
    message = choice.get("message")
    text = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(text, list):  # content in parts
        text = "".join(part["text"] for part in text if isinstance(part, Mapping) and isinstance(part.get("text"), str))
    if isinstance(message, Mapping) and message.get("refusal") and not text:
        return GradeFailure(status="filtered", message=f"the model refused: {' '.join(str(message['refusal']).split())[:200]}")
    text = _THOUGHT.sub("", text if isinstance(text, str) else "").strip()
    truncated = choice.get("finish_reason") == "length"
    return Generated(text=text, truncated=truncated, room=room, reply=reply)
