"""Embeddings from any OpenAI-compatible server, or from a function of one's own.

Servers differ: numbers or base64, whatever is asked for; entries out of order; a blank text or one too long that fails its whole
batch; a limit on the batch that nobody wrote down. So floats are asked for and base64 is read too, entries are put in order by
their index, and a batch that is rejected, or answered by something else than its vectors, is halved until the text at fault
stands alone.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isograde.backends.loop import on_loop
from isograde.backends.vectors import Embedded, Embeddings, Vector, as_vector, embedded_once
from isograde.backends.wire import Rejected, Wire
from isograde.errors import UserError
from isograde.records import GradeFailure, Usage

if TYPE_CHECKING:
    import openai

__all__ = ["CallableEmbeddings", "HttpEmbeddings", "embeddings_of", "http_embeddings"]

_MOST_TEXTS = 96  # the least of the limits that hosted services write down
_MOST_CHARACTERS = 100_000  # OpenAI takes 300,000 tokens a request, and a character is at most 3 of them
_NOT_THE_BATCHS = {429, 502, 503, 504}  # a 500 may be: llama.cpp's for one text too long, Ollama's for one vector with NaN


class HttpEmbeddings:
    """Embeddings of a model at an OpenAI-compatible server.

    Parameters
    ----------
    model : str
        Name of the model at the server.
    wire : Wire
        The server.
    dimensions : int or None
        Length that the vectors are cut to, by models that can; None is the model's own.
    concurrency : int
        Requests that are under way at once.
    """

    def __init__(self, model: str, *, wire: Wire, dimensions: int | None = None, concurrency: int = 8) -> None:
        self.model = model
        self.name = model if dimensions is None else f"{model}[{dimensions}]"
        self._wire, self._dimensions, self._concurrency = wire, dimensions, concurrency
        self._says_float = True
        self._most_texts = _MOST_TEXTS
        self._length: int | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, base_url={self._wire.server!r})"

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Turn texts into vectors.

        Parameters
        ----------
        texts : sequence of str
            Blank ones are not sent.

        Returns
        -------
        Embedded

        Raises
        ------
        ServerError
            If the whole run cannot go on: nothing answers, the key is refused, no such model.
        """
        return await on_loop(embedded_once(texts, self._batches))

    async def aclose(self) -> None:
        """Close the connections, unless the client is the user's."""
        await self._wire.aclose()

    def request(self, texts: Sequence[str]) -> dict[str, Any]:
        """Show the exact request that :meth:`embed` would send for one batch."""
        body: dict[str, Any] = {"model": self.model, "input": list(texts)}
        if self._says_float:
            body["encoding_format"] = "float"
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        return body

    async def _batches(self, texts: list[str]) -> tuple[list[Vector | GradeFailure], Usage | None]:
        """Send batches, some at once."""
        some = asyncio.Semaphore(self._concurrency)

        async def one(batch: list[str]) -> tuple[list[Vector | GradeFailure], int | None]:
            async with some:
                return await self._batch(batch)

        found = await asyncio.gather(*(one(batch) for batch in _cut(texts, self._most_texts)))
        tokens = _added([count for _, count in found])
        usage = None if tokens is None else Usage(input_tokens=tokens)
        return [vector for vectors, _ in found for vector in vectors], usage

    async def _batch(self, texts: list[str]) -> tuple[list[Vector | GradeFailure], int | None]:
        """Send one batch; halve it where something in it is in the way."""
        try:
            reply = await self._wire.post("/embeddings", self.request(texts))
        except Rejected as rejected:
            if self._says_float and rejected.status in {400, 422} and "encoding_format" in rejected.message:
                self._says_float = False
                return await self._batch(texts)
            trouble = await self._wire.failure(rejected, self.model)
            if len(texts) == 1 or rejected.status in _NOT_THE_BATCHS:
                return [trouble] * len(texts), None
            return await self._halves(texts)
        if isinstance(reply, GradeFailure):
            return [reply] * len(texts), None
        entries = _entries(reply.body, len(texts))
        if isinstance(entries, GradeFailure):
            return ([entries], None) if len(texts) == 1 else await self._halves(texts)
        tokens = None if reply.usage is None else reply.usage.input_tokens
        return [self._even(as_vector(entry)) for entry in entries], tokens

    async def _halves(self, texts: list[str]) -> tuple[list[Vector | GradeFailure], int | None]:
        """Send a batch in two; where nothing fails then, it was too large, which is remembered."""
        half = (len(texts) + 1) // 2
        one, first = await self._batch(texts[:half])
        other, second = await self._batch(texts[half:])
        if not any(isinstance(vector, GradeFailure) for vector in one + other):
            self._most_texts = min(self._most_texts, half)
        return one + other, _added([first, second])

    def _even(self, vector: Vector | GradeFailure) -> Vector | GradeFailure:
        """Refuse a vector of another length than the first."""
        if isinstance(vector, GradeFailure):
            return vector
        self._length = self._length or len(vector)
        if len(vector) != self._length:
            said = f"the server gave an embedding of {len(vector):,} numbers after one of {self._length:,}"
            return GradeFailure(status="server_error", message=said)
        return vector


class CallableEmbeddings:
    """Embeddings made by a function.

    Parameters
    ----------
    function : callable
        Takes a list of texts, gives as many vectors; a plain function, which is run in a thread, or a coroutine function, which
        is awaited on isograde's own event loop.
    name : str or None
        What tells it from others; None is the function's own name.

    Examples
    --------
    >>> from isograde.backends.loop import run
    >>> embeddings = CallableEmbeddings(lambda texts: [[len(text), 1] for text in texts], name="length")
    >>> found = run(embeddings.embed(["four", " ", "seven"]))
    >>> found.vectors[0], found.vectors[1].message
    (array([4., 1.]), 'the text is blank; it has no embedding')
    """

    def __init__(self, function: Callable[[list[str]], Any], name: str | None = None) -> None:
        self._function = function
        self.name: str = name or getattr(function, "__qualname__", "") or type(function).__qualname__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Turn texts into vectors.

        Raises
        ------
        UserError
            If the function gives another number of vectors than it got texts, or vectors of several lengths.
        """
        return await embedded_once(texts, self._call)

    async def aclose(self) -> None:
        """Nothing is held."""

    async def _call(self, texts: list[str]) -> tuple[list[Vector | GradeFailure], None]:
        """Call the function once."""
        if inspect.iscoroutinefunction(self._function):
            given = await self._function(texts)
        else:
            given = await asyncio.to_thread(self._function, texts)
            if inspect.isawaitable(given):
                given = await given
        try:
            vectors = [as_vector(each) for each in given]
        except TypeError:
            raise UserError(f"embeddings {self.name}: must give a list of vectors, gave {type(given).__name__}") from None
        if len(vectors) != len(texts):
            raise UserError(f"embeddings {self.name}: gave {len(vectors)} vectors for {len(texts)} texts")
        lengths = sorted({len(vector) for vector in vectors if not isinstance(vector, GradeFailure)})
        if len(lengths) > 1:
            raise UserError(f"embeddings {self.name}: gave vectors of several lengths ({', '.join(map(str, lengths))})")
        return vectors, None


def http_embeddings(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    client: openai.AsyncOpenAI | None = None,
    dimensions: int | None = None,
    timeout: float = 60.0,
    max_retries: int = 4,
    concurrency: int = 8,
) -> HttpEmbeddings:
    """Take embeddings from an OpenAI-compatible server.

    Parameters
    ----------
    model : str
        Name of the model at the server.
    base_url : str or None
        Address up to ``/v1``; None is OpenAI's (or ``OPENAI_BASE_URL``).
    api_key : str or None
        None takes ``OPENAI_API_KEY`` where ``base_url`` is None, and sends none elsewhere.
    client : openai.AsyncOpenAI or None
        A client of one's own in place of address and key.
    dimensions : int or None
        Length that the vectors are cut to, by models that can.
    timeout, max_retries
        As for :class:`isograde.backends.chat.ChatBackend`.
    concurrency : int
        Requests that are under way at once.

    Returns
    -------
    HttpEmbeddings

    Raises
    ------
    UserError
        If there is no key for OpenAI, or the client is no asynchronous one.

    Examples
    --------
    >>> embeddings = http_embeddings("text-embedding-3-small", api_key="sk-…")  # nothing is sent yet
    >>> embeddings.request(["one", "two"])
    {'model': 'text-embedding-3-small', 'input': ['one', 'two'], 'encoding_format': 'float'}
    """
    wire = Wire(base_url=base_url, api_key=api_key, client=client, timeout=timeout, max_retries=max_retries)
    return HttpEmbeddings(model, wire=wire, dimensions=dimensions, concurrency=concurrency)


def embeddings_of(given: Any) -> Embeddings:
    """Take embeddings as they are, and make some of a function.

    Raises
    ------
    UserError
        If it is neither.

    Examples
    --------
    >>> embeddings_of("text-embedding-3-small")
    Traceback (most recent call last):
        ...
    isograde.errors.UserError: embeddings must be a function of a list of texts, or http_embeddings(…), is a str
    """
    if isinstance(given, Embeddings):
        return given
    if callable(given):
        return CallableEmbeddings(given)
    raise UserError(f"embeddings must be a function of a list of texts, or http_embeddings(…), is a {type(given).__name__}")


def _cut(texts: Sequence[str], most: int) -> list[list[str]]:
    """Cut into batches by count and by characters."""
    batches: list[list[str]] = []
    room = 0
    for text in texts:
        if not batches or len(batches[-1]) == most or len(text) > room:
            batches.append([])
            room = _MOST_CHARACTERS
        batches[-1].append(text)
        room -= len(text)
    return batches


def _entries(body: Any, n: int) -> list[Any] | GradeFailure:
    """Take the embeddings out of an answer, in the order of the texts."""
    data = body.get("data") if isinstance(body, Mapping) else None
    if not isinstance(data, list) or not all(isinstance(entry, Mapping) and "embedding" in entry for entry in data):
        error = body.get("error") if isinstance(body, Mapping) else None
        said = " ".join(str(error).split())[:300] if error else "the answer holds no embeddings"
        return GradeFailure(status="server_error", message=said)
    places = [entry.get("index") for entry in data]
    if n == 1 or places == [None] * n:
        places = list(range(len(data)))
    if len(data) != n:
        return GradeFailure(status="server_error", message=f"the server gave {len(data)} embeddings for {n} texts")
    if not all(type(place) is int for place in places) or set(places) != set(range(n)):
        return GradeFailure(status="server_error", message="the server numbered its embeddings wrongly")
    ordered = dict(zip(places, data, strict=True))
    return [ordered[place]["embedding"] for place in range(n)]


def _added(counts: Sequence[int | None]) -> int | None:
    """Add what was counted; None where nothing was."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
