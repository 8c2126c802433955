"""What is sent beside the messages, and how it changes when a server rejects a part of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from isograde.prompt import Prompt

__all__ = ["Parameters", "mend"]

# Every sampling parameter is said, since servers fill in what is left out; temperature 1 and no cut leave the distribution as
# it is.
_SAMPLING: dict[str, Any] = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "n": 1, "stream": False}
_OPEN_SAMPLING: dict[str, Any] = {
    "top_k": -1,
    "min_p": 0,
    "repetition_penalty": 1.0,
    "chat_template_kwargs": {"enable_thinking": False},
}
_LARGEST = re.compile(
    r"(?:<=|max(?:imum)?(?: allowed| value)?(?: is| of)?:?|between 0 and|up to|less than or equal to|at most)"
    r" *(\d+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The form of a request; a new one is made when the server rejects a part."""

    token_limit: str
    max_tokens: int
    top_logprobs: int
    system_role: bool
    prefill: bool
    extra: dict[str, Any]

    @classmethod
    def first(cls, *, hosted: bool, openrouter: bool, top_logprobs: int, max_tokens: int, prefill: bool) -> Parameters:
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
        body = {
            "messages": prompt.messages(system_role=self.system_role, prefill=self.prefill),
            "logprobs": True,
            "top_logprobs": self.top_logprobs,
            self.token_limit: self.max_tokens,
            **self.extra,
        }
        if self.prefill:
            body |= {"add_generation_prompt": False, "continue_final_message": True}
        return body

    def with_max_tokens(self, count: int) -> Parameters:
        """Ask for more tokens."""
        return replace(self, max_tokens=count)


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
    if status not in {400, 403, 422}:
        return None
    said = message.lower()
    if "top_logprobs" in said or "sample logprobs" in said:
        found = _LARGEST.search(said)
        largest = int(found[1]) if found else 5
        if 0 < largest < parameters.top_logprobs:
            return replace(parameters, top_logprobs=largest)
    if "max_completion_tokens" in said or "max_tokens" in said:
        other = "max_tokens" if parameters.token_limit != "max_tokens" else "max_completion_tokens"
        if f"'{other}' instead" in said or "unsupported" in said or "unrecognized" in said or "unknown" in said:
            return replace(parameters, token_limit=other)
        if re.search(r"(?:>=|at least|minimum)", said) and parameters.max_tokens < 16:
            return parameters.with_max_tokens(16)
    if parameters.system_role and "system" in said and re.search(r"role|message|instruction", said):
        return replace(parameters, system_role=False)
    if "logprobs" in said and "reasoning_effort" not in parameters.extra:
        return replace(parameters, extra={**parameters.extra, "reasoning_effort": "none"})  # reasoning models show none otherwise
    for name in parameters.extra:
        if re.search(rf"\b{name}\b", said) and name != "stream":
            return replace(parameters, extra={key: value for key, value in parameters.extra.items() if key != name})
    return None
