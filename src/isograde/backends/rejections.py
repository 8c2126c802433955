"""What is sent beside the messages, and how it changes when a server rejects a part of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Self

from isograde.prompt import Prompt
from isograde.records import Method

__all__ = ["TOP_LOGPROBS", "Parameters", "mend"]

# Every sampling parameter is said, since servers fill in what is left out; temperature 1 and no cut leave the distribution as
# it is.
_SAMPLING: dict[str, Any] = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "n": 1, "stream": False}
_OPEN_SAMPLING: dict[str, Any] = {
    "top_k": -1,
    "min_p": 0,
    "repetition_penalty": 1.0,
    "chat_template_kwargs": {"enable_thinking": False},
}
_ROOM: dict[Method, int] = {"answer_token": 1, "sampling": 16, "reasoning_first": 1024}  # tokens, unless the user says otherwise
_MORE_ROOM = (16, 2048)  # for blanks and the like before the answer; for thinking that cannot be switched off
TOP_LOGPROBS = 20
"""Listed tokens that are asked for unless the user says otherwise."""
_FEW = 5  # listed tokens that every server with logprobs grants
_LARGEST = re.compile(
    r"(?:<=|max(?:imum)?(?: allowed| value)?(?: is| of)?:?|between 0 and|up to|less than or equal to|at most)"
    r" *(\d+)"
)
_ONE_CHOICE = re.compile(
    r"['\"`]n['\"`]|\bn\b ?(?:=|>|must|should|is|has|value)|only one (?:choice|completion)|multiple (?:choice|completion)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The form of a request; a new one is made when the server rejects a part, or shows what suits it better.

    Attributes
    ----------
    token_limit : str
        What the server calls the limit of tokens.
    max_tokens : int or None
        The limit; None is as many as the method needs.
    top_logprobs : int
        How many tokens are to be listed.
    system_role, prefill : bool
        Whether there is a system message, and an opened assistant's turn.
    several : bool
        Whether the server gives more than one choice a request.
    greedy : bool
        Whether temperature 0 is asked for where one answer is wanted: the logprobs were seen not to change with temperature, and
        other tokens come before the answer, which are then the same every time.
    extra : dict
        Everything else, as it is sent.
    """

    token_limit: str
    max_tokens: int | None
    top_logprobs: int
    system_role: bool
    prefill: bool
    several: bool = True
    greedy: bool = False
    extra: dict[str, Any]

    @classmethod
    def first(cls, *, hosted: bool, openrouter: bool, top_logprobs: int, max_tokens: int | None, prefill: bool) -> Self:
        """Choose the form to begin with: OpenAI's own at OpenAI's hosts, the wider one of open servers elsewhere."""
        extra = dict(_SAMPLING) if hosted or openrouter else {**_SAMPLING, **_OPEN_SAMPLING}
        if openrouter:
            extra["provider"] = {"require_parameters": True}
        return cls(
            token_limit="max_completion_tokens" if hosted else "max_tokens",
            max_tokens=max_tokens,
            top_logprobs=top_logprobs,
            system_role=True,
            prefill=prefill,
            extra=extra,
        )

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """Write the request, less the model's name."""
        sampling = prompt.method == "sampling"
        body = {
            "messages": prompt.messages(system_role=self.system_role, prefill=self.prefill),
            **({} if sampling else {"logprobs": True, "top_logprobs": self.top_logprobs}),
            self.token_limit: self.room(prompt.method),
            **self.extra,
        }
        if prompt.samples > 1 and self.several and "n" in body:
            body["n"] = prompt.samples
        if self.greedy and prompt.samples == 1 and not sampling and "temperature" in body:
            body["temperature"] = 0
        if self.prefill:
            body |= {"add_generation_prompt": False, "continue_final_message": True}
        return body

    def room(self, method: Method) -> int:
        """How many tokens are asked for."""
        return _ROOM.get(method, 1) if self.max_tokens is None else self.max_tokens

    def roomier(self, method: Method, *, thinking: bool) -> Parameters | None:
        """Ask for more tokens, once the ones that were allowed held no answer; None where more would not help."""
        largest = _MORE_ROOM[-1] if thinking else _MORE_ROOM[0]
        return next((replace(self, max_tokens=more) for more in _MORE_ROOM if self.room(method) < more <= largest), None)

    def with_max_tokens(self, count: int) -> Parameters:
        """Ask for as many tokens."""
        return replace(self, max_tokens=count)

    def learnt(self, asked: Parameters) -> Parameters:
        """Leave out what is not the server's doing but what the user asked for."""
        return replace(
            self,
            max_tokens=None if self.max_tokens == asked.max_tokens else self.max_tokens,
            top_logprobs=TOP_LOGPROBS if self.top_logprobs == asked.top_logprobs else self.top_logprobs,
        )

    def restored(self, known: Parameters) -> Parameters:
        """Take up what was remembered, within what the user asks for now."""
        return replace(
            known,
            prefill=self.prefill,
            max_tokens=known.max_tokens if self.max_tokens is None else max(self.max_tokens, known.max_tokens or 0),
            top_logprobs=known.top_logprobs if self.top_logprobs == TOP_LOGPROBS else min(self.top_logprobs, known.top_logprobs),
        )


def mend(parameters: Parameters, status: int, message: str) -> Parameters | None:
    """Change what a server's rejection names.

    Parameters
    ----------
    parameters : Parameters
        What was sent.
    status : int
        HTTP status.
    message : str
        The server's words.

    Returns
    -------
    Parameters or None
        What to send next; None if the rejection is of another kind.
    """
    said = message.lower()
    if status == 500 and "json compliant" in said and parameters.top_logprobs > _FEW:
        return replace(
            parameters, top_logprobs=_FEW
        )  # a listed −inf, which the server cannot write; they stand at the list's end
    if status not in {400, 403, 422}:
        return None
    if (limited := _within_limits(parameters, said)) is not None:
        return limited
    if parameters.system_role and "system" in said and re.search(r"role|message|instruction", said):
        return replace(parameters, system_role=False)
    if parameters.several and _ONE_CHOICE.search(said):
        return replace(parameters, several=False)
    if "logprobs" in said and "reasoning_effort" not in parameters.extra:
        return replace(parameters, extra={**parameters.extra, "reasoning_effort": "none"})  # reasoning models show none otherwise
    for name in parameters.extra:
        named = _ONE_CHOICE.search(said) if name == "n" else re.search(rf"\b{name}\b", said)
        if named and name != "stream":
            return replace(parameters, extra={key: value for key, value in parameters.extra.items() if key != name})
    return None


def _within_limits(parameters: Parameters, said: str) -> Parameters | None:
    """Change the number of listed tokens, or the limit of tokens, where a rejection speaks of them."""
    if "top_logprobs" in said or "sample logprobs" in said:
        found = _LARGEST.search(said)
        largest = int(found[1]) if found else _FEW
        if 0 < largest < parameters.top_logprobs:
            return replace(parameters, top_logprobs=largest)
    if "max_completion_tokens" in said or "max_tokens" in said:
        other = "max_tokens" if parameters.token_limit != "max_tokens" else "max_completion_tokens"
        if f"'{other}' instead" in said or "unsupported" in said or "unrecognized" in said or "unknown" in said:
            return replace(parameters, token_limit=other)
        if re.search(r"(?:>=|at least|minimum)", said) and parameters.room("answer_token") < _MORE_ROOM[0]:
            return parameters.with_max_tokens(_MORE_ROOM[0])
    return None
