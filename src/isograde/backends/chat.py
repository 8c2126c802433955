"""The chat completions wire: any OpenAI-compatible server, through the openai SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from isograde.backends.base import Reply
from isograde.backends.rejections import Parameters, mend
from isograde.backends.wire import Rejected, Wire
from isograde.prompt import Prompt, is_blank, prompt_fingerprint
from isograde.records import GradeFailure
from isograde.rubric import Rubric

if TYPE_CHECKING:
    import openai

__all__ = ["ChatBackend"]

_ANSWER_ROOM = 16  # tokens asked for once the first one turned out not to be the answer
_MENDS = 10  # forms that one request may take before it is given up
_CHANCES = 3  # samples after one that happened to be no answer
_HOSTED = ("api.openai.com", ".openai.azure.com", ".cognitiveservices.azure.com")


class ChatBackend:
    """Ask an OpenAI-compatible server.

    Parameters
    ----------
    model : str
        Name of the model at the server.
    base_url : str or None
        Address up to ``/v1``; None is OpenAI's (or ``OPENAI_BASE_URL``).
    api_key : str or None
        None takes ``OPENAI_API_KEY`` where ``base_url`` is None, and sends none elsewhere.
    client : openai.AsyncOpenAI or None
        A client of one's own, such as ``AsyncAzureOpenAI``, in place of address and key. The judge runs it on a loop of its own;
        do not share it.
    top_logprobs : int
        How many tokens are asked for; lowered once where the server rejects it.
    max_tokens : int
        How many tokens are asked for; raised once where the answer does not come first.
    prefill : bool
        Whether the assistant's turn is opened with «Level: »; the server must continue a last assistant message.
    timeout : float
        Seconds for one try.
    max_retries : int
        Tries after the first, with jitter, as the SDK makes them; at most one until the server has answered for the first time.
    concurrency : int
        Requests that are under way at once.

    Raises
    ------
    UserError
        If there is no key for OpenAI, or the client is no asynchronous one.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        client: openai.AsyncOpenAI | None = None,
        top_logprobs: int = 20,
        max_tokens: int = 1,
        prefill: bool = False,
        timeout: float = 60.0,
        max_retries: int = 4,
        concurrency: int = 16,
    ) -> None:
        self.model = model
        self.concurrency = concurrency
        self.wire = Wire(base_url=base_url, api_key=api_key, client=client, timeout=timeout, max_retries=max_retries)
        self.server: str | None = self.wire.server
        host = self.wire.host
        self._parameters = Parameters.first(
            hosted=any(host == name.lstrip(".") or host.endswith(name) for name in _HOSTED),
            openrouter=host == "openrouter.ai",
            top_logprobs=top_logprobs,
            max_tokens=max_tokens,
            prefill=prefill,
        )

    @property
    def prompt_fingerprint(self) -> str:
        """Fingerprint of the prompt's version and shape."""
        return prompt_fingerprint(system_role=self._parameters.system_role, prefill=self._parameters.prefill)

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
        del labels  # every label is read from the list; none is forced
        return {"model": self.model, **self._parameters.body(prompt)}

    async def ask(self, prompt: Prompt, labels: tuple[str, ...]) -> Reply | GradeFailure:
        """Ask for one answer token and its logprobs, mending what the server rejects."""
        del labels  # every label is read from the list; none is forced
        answer: Reply | GradeFailure = GradeFailure(status="server_error", message="every form of the request was rejected")
        asked = self._parameters
        again = _CHANCES
        for _ in range(_MENDS):
            remembered = True
            try:
                answer = await self.wire.post("/chat/completions", {"model": self.model, **asked.body(prompt)})
            except Rejected as rejected:
                changed = mend(asked, rejected.status, rejected.message)
                if changed is None:
                    return await self.wire.failure(rejected, self.model)
            else:
                if not (isinstance(answer, Reply) and asked.max_tokens == 1 and _stopped_short(answer.body)):
                    return answer
                remembered = _chosen_first(answer.body)
                if not remembered and again:  # sampled by chance, which says nothing of other items, nor of the next sample
                    again -= 1
                    continue
                changed = asked.with_max_tokens(_ANSWER_ROOM)
            if remembered and self._parameters is asked:
                self._parameters = changed
            asked = changed
        return answer

    async def aclose(self) -> None:
        """Close the connections, unless the client is the user's."""
        await self.wire.aclose()


def _stopped_short(body: Any) -> bool:
    """Tell whether the tokens that were allowed hold no answer yet: blanks, an opened thought, the end of the turn."""
    choices = body.get("choices") if isinstance(body, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping) or choice.get("error") or choice.get("finish_reason") == "content_filter":
        return False
    try:  # the content would do, but for servers that repeat a prefilled turn in it
        said = "".join(position["token"] for position in choice["logprobs"]["content"])
    except (KeyError, TypeError):
        message = choice.get("message")
        said = (message.get("content") if isinstance(message, Mapping) else None) or ""
    return isinstance(said, str) and (is_blank(said) or said.strip().startswith(("<think", "<|", "</s>")))


def _chosen_first(body: Any) -> bool:
    """Tell whether the chosen token was the most probable of the listed."""
    try:
        position = body["choices"][0]["logprobs"]["content"][0]
        return bool(position["logprob"] >= max(token["logprob"] for token in position["top_logprobs"]))
    except (KeyError, IndexError, TypeError, ValueError):
        return False  # the end of the turn was sampled, or half a character: llama.cpp lists nothing then
