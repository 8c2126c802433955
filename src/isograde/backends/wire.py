"""One server: its connections, its pace, its retries, its errors. Every wire over HTTP posts through it."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import os
import re
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, AnyStr, Literal
from urllib.parse import unquote, urlsplit

from isograde.backends.base import Reply
from isograde.backends.loop import on_loop, release
from isograde.backends.pace import Pace
from isograde.backends.replies import error_in, error_words, is_daily, is_transient, retry_after, usage_in
from isograde.errors import NoLogprobsError, ServerError, UnreachableError, UserError
from isograde.records import GradeFailure

if TYPE_CHECKING:
    import httpx2
    import openai
    import tenacity

__all__ = ["WAYS_OUT", "Rejected", "Wire"]

WAYS_OUT = (
    "use a model or a server that shows them (isograde doctor looks), the embedded model (no --model), a decision model "
    "(--wire systemone), or choose another method (--method sampling counts sampled answers)"
)
"""What a user can do where no logprobs are shown."""

_MAX_WAIT_S = 300.0  # what a server may ask to be left alone for, and how long one item is told that it comes too fast
_TELL_AFTER_S = 5.0  # of being told that it comes too fast, after which that is said
_SECRET = 8  # characters from which a key is one: «none» and the like stand for no key
_BACKOFF_S, _MAX_BACKOFF_S = 0.5, 16.0
_TOO_LONG = ("context_length", "context length", "context size", "too large to process")
_NO_MODEL = ("not found", "invalid model", "unknown model")
_LOST = 30  # requests in a row that came to nothing, tries included, after which a server is taken to be gone


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
        Seconds for one try, from sending to the last byte.
    max_retries : int
        Tries after the first, with exponential backoff and full jitter; at most one until the server has answered for the first
        time. To be told that it comes too fast (429) is no try: that is waited out for up to five minutes, with fewer requests
        at once (:class:`~isograde.backends.pace.Pace`). ``Retry-After`` is waited out before any jitter, and stops the run
        where it is longer than five minutes.

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
        import openai

        credentials, base_url = _credentials(base_url)
        self._client = client or _new_client(base_url, api_key, timeout, max_retries, credentials=credentials)
        self._close = weakref.finalize(self, release, self._client.close) if client is None else None
        if not isinstance(self._client, openai.AsyncOpenAI):
            raise UserError("client must be an asynchronous one (AsyncOpenAI, AsyncAzureOpenAI), so that requests can overlap")
        address = urlsplit(str(self._client.base_url))
        self.host = address.hostname or ""
        port = f":{address.port}" if address.port else ""
        self.server = f"{address.scheme}://{self.host}{port}{address.path}".rstrip("/")
        secrets = (self._client.api_key, *unquote(credentials or "").split(":"), credentials)
        self._secrets = [each for each in secrets if each and len(each) >= _SECRET]
        self._timeout_s = timeout if client is None else _seconds(client.timeout)
        self._max_retries = max_retries if client is None else client.max_retries
        self._pace = Pace()
        self._max_wait_s = _MAX_WAIT_S
        self._told = False
        self._reached = False  # some HTTP came back
        self._answered = False  # and once it was an answer
        self._last_answer = -math.inf
        self._lost = 0

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
        ServerError
            If the server asks to be left alone for long, or answers no more.
        """
        return await on_loop(self._post(path, body))

    @contextmanager
    def waiting_at_most(self, seconds: float) -> Iterator[None]:
        """Wait for a server that says too fast no longer than this, for a while."""
        before, self._max_wait_s = self._max_wait_s, seconds
        try:
            yield
        finally:
            self._max_wait_s = before

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
        if code == 413 or (code == 429 and "too large" in lower) or any(said in lower for said in _TOO_LONG):
            return GradeFailure(status="too_long", message=f"the item does not fit: {message}")
        if "logprobs" in lower and code in {400, 403, 422}:
            raise NoLogprobsError(f"{model} at {self.server} refuses logprobs: {message}; {WAYS_OUT}")
        if code in {401, 403}:
            raise ServerError(f"{self.server} refuses the key (HTTP {code}): {message}")
        if code == 404 or (code == 400 and "model" in lower and any(said in lower for said in _NO_MODEL)):
            raise ServerError(f"{self.server} has no model {model!r} (HTTP {code}); {await on_loop(self._served())}")
        if code == 402 or "insufficient_quota" in lower:
            raise ServerError(f"the quota at {self.server} is used up: {message}", retryable=True)
        return GradeFailure(status="server_error", message=f"HTTP {code}: {message}")

    async def aclose(self) -> None:
        """Close the connections, unless the client is the user's."""
        if self._close is not None and self._close.detach():
            await on_loop(self._client.close())

    async def _post(self, path: str, body: dict[str, Any]) -> Reply | GradeFailure:
        """Send one request, again where that may help, and count what comes of it."""
        tried = await self._once(path, body)
        if tried.again is not None:
            tried = await self._again(tried, path, body)
        if tried.again is None:
            self._lost = 0
        else:
            self._lost += 1
            if self._answered and self._lost >= _LOST:
                said = tried.result.message if isinstance(tried.result, GradeFailure) else str(tried.result)
                raise ServerError(
                    f"the last {self._lost} requests to {self.server} all failed, the last with: {said}; what is done is kept",
                    retryable=True,
                )
        if isinstance(tried.result, Exception):
            raise tried.result
        return tried.result

    async def _again(self, first: _Tried, path: str, body: dict[str, Any]) -> _Tried:
        """Try until it succeeds or trying is at an end."""
        import tenacity

        known: list[_Tried] = [first]
        began, failed = time.monotonic(), 0
        jitter = tenacity.wait_random_exponential(multiplier=_BACKOFF_S, max=_MAX_BACKOFF_S)

        async def attempt() -> _Tried:
            return known.pop() if known else await self._once(path, body)

        def enough(state: tenacity.RetryCallState) -> bool:
            nonlocal failed
            if _outcome(state).again == "too fast":
                waited_s = time.monotonic() - began
                if waited_s > _TELL_AFTER_S and self._last_answer < began and not self._told:
                    self._told = True
                    sys.stderr.write(f"isograde: {self.server} says too fast; waiting up to {self._max_wait_s:.0f} s\n")
                return self._max_retries == 0 or waited_s > self._max_wait_s
            failed += 1
            # a server that has never answered is not waited for as one that has
            return failed > (self._max_retries if self._answered else min(1, self._max_retries))

        retrying = tenacity.AsyncRetrying(
            retry=lambda state: _outcome(state).again is not None,
            stop=enough,
            wait=lambda state: _outcome(state).floor_s + jitter(state),
            retry_error_callback=_outcome,
        )
        tried: _Tried = await retrying(attempt)
        if tried.again == "too fast" and self._max_retries and self._last_answer < began:  # it is not this item
            said = f"{self.server} says too fast for {self._max_wait_s:.0f} s, however slowly it is asked: {tried.result}"
            raise ServerError(f"{said}; try again later: what is done is kept", retryable=True)
        return tried

    async def _once(self, path: str, body: dict[str, Any]) -> _Tried:
        """Send one request at the server's pace, and decode what comes."""
        import aiohttp
        import httpx2
        import openai

        turn = await self._pace.enter()
        tried: _Tried | None = None
        try:
            started = time.perf_counter()
            try:
                async with asyncio.timeout(self._timeout_s):  # the SDK's own is for one read, which a slow drip never exceeds
                    response = await self._client.post(path, body=body, cast_to=httpx2.Response, options={"max_retries": 0})
                tried = self._decoded(response, time.perf_counter() - started)
            except openai.APIStatusError as error:
                tried = self._refused(error)
            except (TimeoutError, openai.APIConnectionError, aiohttp.ClientError) as error:  # the last: what is no HTTP
                tried = self._unconnected(error)
        finally:
            again = None if tried is None else tried.again
            self._pace.leave(turn, faster=tried is not None and again is None, slower=again in {"too fast", "too slow"})
        return tried

    def _decoded(self, response: httpx2.Response, latency_s: float) -> _Tried:
        """Read a body that came with status 200."""
        self._reached = True
        try:
            content = self._without_secrets(response.content)
            decoded = json.loads(content)
        except (ValueError, RecursionError):
            kind = response.headers.get("content-type", "no content type")
            said = f"the server sent no JSON ({kind}, {len(response.content)} bytes)"
            return _Tried(result=GradeFailure(status="server_error", message=said), again="failed")
        reply = Reply(body=decoded, usage=usage_in(decoded), latency_s=latency_s, raw=content)
        trouble = error_in(decoded)
        if trouble is not None and is_transient(*trouble):
            return _Tried(result=reply, again="too fast" if trouble[0] == 429 else "failed")
        self._answered, self._last_answer = True, time.monotonic()
        return _Tried(result=reply)

    def _refused(self, error: openai.APIStatusError) -> _Tried:
        """Read an HTTP error: the request's, the moment's, or the whole run's."""
        self._reached = True
        code, message = error.status_code, self._without_secrets(error_words(error.body or error.message))
        rejected = Rejected(code, message)
        headers = error.response.headers
        if not is_transient(code, message) or headers.get("x-should-retry") == "false":
            return _Tried(result=rejected)
        floor_s = retry_after(headers, time.time())
        if floor_s is None and code == 429 and is_daily(message):
            return _Tried(result=ServerError(f"the day's quota at {self.server} is used up: {message}", retryable=True))
        if floor_s is not None and floor_s > self._max_wait_s:
            said = f"{self.server} asks to be left alone for {floor_s:,.0f} s (HTTP {code}: {message})"
            return _Tried(result=ServerError(f"{said}; try again then: what is done is kept", retryable=True))
        if code in {429, 503} and floor_s:
            self._pace.hold(floor_s)
        large = code == 429 and "too large" in message.lower()  # one request beyond what a minute allows
        again: _Again | None = None if large else "too fast" if code == 429 else "failed"
        return _Tried(result=rejected, again=again, floor_s=floor_s or 0.0)

    def _without_secrets(self, said: AnyStr) -> AnyStr:
        """Take the key out of what a server says, should it repeat it: words of servers stand on grades and in files."""
        for secret in self._secrets:
            found, hidden = (secret, "…") if isinstance(said, str) else (secret.encode(), "…".encode())
            if found in said:
                said = said.replace(found, hidden)
        return said

    def _unconnected(self, error: Exception) -> _Tried:
        """Read what was no answer; where the server never answered, nothing can be done."""
        import httpx2
        import openai

        # aiohttp's transport calls a refused connection a connect timeout
        refused = isinstance(error.__cause__, httpx2.ConnectTimeout)
        if isinstance(error, TimeoutError) or (isinstance(error, openai.APITimeoutError) and not refused):
            return _Tried(result=GradeFailure(status="timeout", message="no answer in time, tries included"), again="too slow")
        reason = " ".join(str(error.__cause__ or error).split())
        if not self._reached:
            said = f"nothing answers at {self.server} ({reason}); is it up, and the address right up to /v1?"
            return _Tried(result=UnreachableError(said), again="failed")
        return _Tried(result=GradeFailure(status="server_error", message=f"the connection broke: {reason}"), again="failed")

    async def _served(self) -> str:
        """Say which models the server serves."""
        import openai

        try:
            names = [model.id async for model in self._client.models.list()]
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):  # the last three: a listing that is not OpenAI's
            return "it does not list what it serves; is the address right up to /v1?"
        names = [self._without_secrets(name) for name in sorted(names)]
        return f"it serves {', '.join(names[:20])}{' …' if len(names) > 20 else ''}" if names else "it serves none"


def _credentials(base_url: str | None) -> tuple[str | None, str | None]:
    """Take «user:password» out of an address; None where there is none."""
    found = re.match(r"(\w+://)?([^/]*)@(.*)", base_url or "", re.DOTALL)
    return (None, base_url) if found is None else (found[2], f"{found[1] or ''}{found[3]}")


def _new_client(
    base_url: str | None, api_key: str | None, timeout: float, max_retries: int, *, credentials: str | None
) -> openai.AsyncOpenAI:
    """Open a client over the SDK's fastest transport."""
    import httpx2
    import openai

    if base_url is not None and not base_url.lower().startswith(("http://", "https://")):
        raise UserError(f"base_url {base_url!r}: an address begins with http:// or https://")
    if credentials is not None and api_key is not None:
        raise UserError(f"there are credentials in the address of {base_url} and a key besides; a request can carry one of them")
    if base_url is not None and api_key is None:
        api_key = "none"  # most local servers want no key, and a key for OpenAI is nobody else's business
    if base_url is None and api_key is None and not os.environ.get("OPENAI_API_KEY"):
        raise UserError("no key: set OPENAI_API_KEY, or name another server (--base-url), or no model, for the embedded one")
    transport = openai.DefaultAioHttpClient()
    try:
        return openai.AsyncOpenAI(
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            max_retries=max_retries,
            http_client=transport,
            default_headers=None if credentials is None else {"Authorization": _basic(credentials)},
        )
    except (ValueError, httpx2.InvalidURL) as error:  # an address that is none
        raise UserError(f"base_url {base_url!r} is no address: {error}") from None


def _basic(credentials: str) -> str:
    """Write credentials as a header (RFC 7617)."""
    return f"Basic {base64.b64encode(unquote(credentials).encode()).decode()}"


def _seconds(timeout: Any) -> float | None:
    """Take one number of seconds from a client's own timeout, which may be several; None is no limit."""
    seconds: float | None = getattr(timeout, "read", timeout)
    return seconds


_Again = Literal["failed", "too fast", "too slow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """One try: what it comes to if no other follows, why another may help, and the least seconds before it."""

    result: Reply | GradeFailure | Exception
    again: _Again | None = None
    floor_s: float = 0.0


def _outcome(state: tenacity.RetryCallState) -> _Tried:
    """The last try."""
    assert state.outcome is not None  # noqa: S101 - tenacity asks after a try
    tried: _Tried = state.outcome.result()
    return tried
