"""The chat completions wire: any OpenAI-compatible server, through the openai SDK."""

from __future__ import annotations

import json
import os
import time
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from isograde.backends.base import Reply
from isograde.backends.loop import on_loop, release
from isograde.backends.rejections import Parameters, mend
from isograde.errors import NoLogprobsError, ServerError, UnreachableError, UserError
from isograde.prompt import Prompt, is_blank, prompt_fingerprint
from isograde.records import GradeFailure, Usage
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
        self._client = client if client is not None else _new_client(base_url, api_key, timeout, max_retries)
        self._close = weakref.finalize(self, release, self._client.close) if client is None else None
        if not _is_async(self._client):
            raise UserError("client must be an asynchronous one (AsyncOpenAI, AsyncAzureOpenAI), so that requests can overlap")
        address = urlsplit(str(self._client.base_url))
        host = address.hostname or ""
        port = f":{address.port}" if address.port else ""
        self.server: str | None = f"{address.scheme}://{host}{port}{address.path}".rstrip("/")
        self._parameters = Parameters.first(
            hosted=any(host == name.lstrip(".") or host.endswith(name) for name in _HOSTED),
            openrouter=host == "openrouter.ai",
            top_logprobs=top_logprobs,
            max_tokens=max_tokens,
            prefill=prefill,
        )
        self._answered = False

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
        """Ask for one answer token and its logprobs."""
        return await on_loop(self._ask(prompt, labels))

    async def aclose(self) -> None:
        """Close the connections, unless the client is the user's."""
        if self._close is not None and self._close.detach():
            await on_loop(self._client.close())

    async def _ask(self, prompt: Prompt, labels: tuple[str, ...]) -> Reply | GradeFailure:
        """Send the request, mending what the server rejects."""
        import openai

        del labels  # every label is read from the list; none is forced
        answer: Reply | GradeFailure = GradeFailure(status="server_error", message="every form of the request was rejected")
        asked = self._parameters
        again = _CHANCES
        for _ in range(_MENDS):
            remembered = True
            try:
                answer = await self._send({"model": self.model, **asked.body(prompt)})
            except openai.APIStatusError as error:
                message = _error_message(error)
                changed = mend(asked, error.status_code, message)
                if changed is None:
                    return await self._status_failure(error, message)
            except openai.APIConnectionError as error:
                return self._connection_failure(error)
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

    async def _send(self, body: dict[str, Any]) -> Reply | GradeFailure:
        """Send one request and decode what comes, whatever it is."""
        import httpx2

        started = time.perf_counter()
        # a server that has never answered is not waited for as one that has
        options: Any = {} if self._answered else {"max_retries": min(1, self._client.max_retries)}
        response = await self._client.post("/chat/completions", body=body, cast_to=httpx2.Response, options=options)
        latency = time.perf_counter() - started
        try:
            decoded = json.loads(response.content)
        except (ValueError, RecursionError):
            kind = response.headers.get("content-type", "no content type")
            return GradeFailure(status="server_error", message=f"the server sent no JSON ({kind}, {len(response.content)} bytes)")
        self._answered = True
        return Reply(body=decoded, usage=_usage(decoded), latency_s=latency)

    async def _status_failure(self, error: openai.APIStatusError, message: str) -> GradeFailure:
        """Turn an HTTP error into the item's status, or stop the run."""
        code, lower = error.status_code, message.lower()
        if "content_filter" in lower or "content management policy" in lower:
            return GradeFailure(status="filtered", message="the provider's content filter refused the item")
        if code == 413 or "context_length" in lower or "context length" in lower or "context size" in lower:
            return GradeFailure(status="too_long", message=f"the item does not fit: {message}")
        if "logprobs" in lower and code in {400, 403, 422}:
            raise NoLogprobsError(f"{self.model} at {self.server} refuses logprobs: {message}; {_LOGPROBS_ADVICE}")
        if code in {401, 403}:
            raise ServerError(f"{self.server} refuses the key (HTTP {code}): {message}")
        if code == 404 or (code == 400 and "model" in lower and ("not found" in lower or "invalid model" in lower)):
            raise ServerError(f"{self.server} has no model {self.model!r} (HTTP {code}); {await self._served()}")
        if code == 429 and "insufficient_quota" in lower:
            raise ServerError(f"the quota at {self.server} is used up: {message}", retryable=True)
        return GradeFailure(status="server_error", message=f"HTTP {code}: {message}")

    def _connection_failure(self, error: openai.APIConnectionError) -> GradeFailure:
        """Stop a run whose server never answered; one that did is given the next item."""
        import httpx2
        import openai

        # aiohttp's transport calls a refused connection a connect timeout
        if isinstance(error, openai.APITimeoutError) and not isinstance(error.__cause__, httpx2.ConnectTimeout):
            return GradeFailure(status="timeout", message="no answer in time, tries included")
        reason = " ".join(str(error.__cause__ or error).split())
        if not self._answered:
            raise UnreachableError(f"nothing answers at {self.server} ({reason}); is it up, and the address right up to /v1?")
        return GradeFailure(status="server_error", message=f"the connection broke: {reason}")

    async def _served(self) -> str:
        """Say which models the server serves."""
        import openai

        try:
            names = [model.id async for model in self._client.models.list()]
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):  # the last three: a listing that is not OpenAI's
            return "it does not list what it serves; is the address right up to /v1?"
        return f"it serves {', '.join(sorted(names)[:20])}{' …' if len(names) > 20 else ''}" if names else "it serves none"


_LOGPROBS_ADVICE = "use a model that shows logprobs (most non-reasoning models do), or the embedded one (no --model)"


def _new_client(base_url: str | None, api_key: str | None, timeout: float, max_retries: int) -> openai.AsyncOpenAI:
    """Open a client over the SDK's fastest transport."""
    import openai

    if base_url is not None and not base_url.lower().startswith(("http://", "https://")):
        raise UserError(f"base_url {base_url!r}: an address begins with http:// or https://")
    if base_url is not None and api_key is None:
        api_key = "none"  # most local servers want no key, and a key for OpenAI is nobody else's business
    if base_url is None and api_key is None and not os.environ.get("OPENAI_API_KEY"):
        raise UserError("no key: set OPENAI_API_KEY, or name another server (--base-url), or no model, for the embedded one")
    transport = openai.DefaultAioHttpClient()
    try:
        return openai.AsyncOpenAI(
            base_url=base_url, api_key=api_key, timeout=timeout, max_retries=max_retries, http_client=transport
        )
    except ValueError as error:  # an address that is none
        raise UserError(f"base_url {base_url!r} is no address: {error}") from None


def _is_async(client: Any) -> bool:
    """Tell the SDK's asynchronous clients from the others without importing it for nothing."""
    import openai

    return isinstance(client, openai.AsyncOpenAI)


def _error_message(error: openai.APIStatusError) -> str:
    """Take the server's own words, with its code, in one line."""
    body = error.body
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        inner = inner if isinstance(inner, Mapping) else {"message": inner}
        said = [str(inner.get(key)) for key in ("message", "detail", "code", "param") if inner.get(key)]
        text = " · ".join(said) or str(body)
    else:
        text = str(body or error.message)
    return " ".join(text.split())[:500]


def _usage(body: Any) -> Usage | None:
    """Read the tokens that the server counted."""
    usage = body.get("usage") if isinstance(body, Mapping) else None
    if not isinstance(usage, Mapping):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    counts = [
        count if isinstance(count, int) else None
        for count in (usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)
    ]
    return Usage(input_tokens=counts[0], output_tokens=counts[1], cached_tokens=counts[2])


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
