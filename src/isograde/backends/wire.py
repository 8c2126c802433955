"""One server: its connections, its retries, its errors. Every wire over HTTP posts through it."""

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
from isograde.errors import NoLogprobsError, ServerError, UnreachableError, UserError
from isograde.records import GradeFailure, Usage

if TYPE_CHECKING:
    import openai

__all__ = ["Rejected", "Wire"]

_LOGPROBS_ADVICE = "use a model that shows logprobs (most non-reasoning models do), or the embedded one (no --model)"


class Rejected(Exception):  # noqa: N818 - it never leaves the backends
    """The server answered with an HTTP error; another form of the request may mend it.

    Attributes
    ----------
    status : int
        HTTP status.
    message : str
        The server's own words, with its code, in one line.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Wire:
    """Post JSON to one server and decode what comes, whatever it is.

    Parameters
    ----------
    base_url : str or None
        Address up to ``/v1``; None is OpenAI's (or ``OPENAI_BASE_URL``).
    api_key : str or None
        None takes ``OPENAI_API_KEY`` where ``base_url`` is None, and sends none elsewhere.
    client : openai.AsyncOpenAI or None
        A client of one's own in place of address and key.
    timeout : float
        Seconds for one try.
    max_retries : int
        Tries after the first; at most one until the server has answered for the first time.

    Raises
    ------
    UserError
        If there is no key for OpenAI, or the client is no asynchronous one.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        client: openai.AsyncOpenAI | None = None,
        timeout: float = 60.0,
        max_retries: int = 4,
    ) -> None:
        self._client = client if client is not None else _new_client(base_url, api_key, timeout, max_retries)
        self._close = weakref.finalize(self, release, self._client.close) if client is None else None
        if not _is_async(self._client):
            raise UserError("client must be an asynchronous one (AsyncOpenAI, AsyncAzureOpenAI), so that requests can overlap")
        address = urlsplit(str(self._client.base_url))
        self.host = address.hostname or ""
        port = f":{address.port}" if address.port else ""
        self.server = f"{address.scheme}://{self.host}{port}{address.path}".rstrip("/")
        self._answered = False

    async def post(self, path: str, body: dict[str, Any]) -> Reply | GradeFailure:
        """Send one request.

        Parameters
        ----------
        path : str
            Below the server's address, such as ``/chat/completions``.
        body : dict
            What is sent, as JSON.

        Returns
        -------
        Reply or GradeFailure
            The decoded answer; a failure where none came in time, the connection broke, or it was no JSON.

        Raises
        ------
        Rejected
            On an HTTP error.
        UnreachableError
            If nothing ever answered.
        """
        return await on_loop(self._post(path, body))

    async def failure(self, rejected: Rejected, model: str) -> GradeFailure:
        """Turn a rejection that cannot be mended into the item's status, or stop the run.

        Raises
        ------
        ServerError
            If it speaks of the key, the model, the quota or logprobs, and so of every item.
        """
        code, message = rejected.status, rejected.message
        lower = message.lower()
        if "content_filter" in lower or "content management policy" in lower:
            return GradeFailure(status="filtered", message="the provider's content filter refused the item")
        if code == 413 or "context_length" in lower or "context length" in lower or "context size" in lower:
            return GradeFailure(status="too_long", message=f"the item does not fit: {message}")
        if "logprobs" in lower and code in {400, 403, 422}:
            raise NoLogprobsError(f"{model} at {self.server} refuses logprobs: {message}; {_LOGPROBS_ADVICE}")
        if code in {401, 403}:
            raise ServerError(f"{self.server} refuses the key (HTTP {code}): {message}")
        if code == 404 or (code == 400 and "model" in lower and ("not found" in lower or "invalid model" in lower)):
            raise ServerError(f"{self.server} has no model {model!r} (HTTP {code}); {await on_loop(self._served())}")
        if code == 429 and "insufficient_quota" in lower:
            raise ServerError(f"the quota at {self.server} is used up: {message}", retryable=True)
        return GradeFailure(status="server_error", message=f"HTTP {code}: {message}")

    async def aclose(self) -> None:
        """Close the connections, unless the client is the user's."""
        if self._close is not None and self._close.detach():
            await on_loop(self._client.close())

    async def _post(self, path: str, body: dict[str, Any]) -> Reply | GradeFailure:
        """Send one request and decode what comes."""
        import httpx2
        import openai

        started = time.perf_counter()
        # a server that has never answered is not waited for as one that has
        options: Any = {} if self._answered else {"max_retries": min(1, self._client.max_retries)}
        try:
            response = await self._client.post(path, body=body, cast_to=httpx2.Response, options=options)
        except openai.APIStatusError as error:
            raise Rejected(error.status_code, _error_message(error)) from None
        except openai.APIConnectionError as error:
            return self._connection_failure(error)
        latency = time.perf_counter() - started
        try:
            decoded = json.loads(response.content)
        except (ValueError, RecursionError):
            kind = response.headers.get("content-type", "no content type")
            return GradeFailure(status="server_error", message=f"the server sent no JSON ({kind}, {len(response.content)} bytes)")
        self._answered = True
        return Reply(body=decoded, usage=_usage(decoded), latency_s=latency)

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
