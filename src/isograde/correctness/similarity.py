"""How alike two texts are: the cosine of their embeddings."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isograde.backends.embeddings import embeddings_of
from isograde.backends.loop import run
from isograde.backends.vectors import Embeddings, Vector
from isograde.correctness.asking import Ledger, PartFailed
from isograde.errors import UserError
from isograde.records import GradeFailure, Usage

__all__ = ["Similarity", "cosine"]

_REMEMBERED = 8192  # texts; with 1,536 numbers each, 100 MB


def cosine(one: Sequence[float] | Vector, other: Sequence[float] | Vector) -> float:
    """Measure how alike two vectors point: 1 the same way, 0 at right angles or away from each other.

    max(0, a·b ÷ (‖a‖·‖b‖)). A negative cosine is 0: it says as little of an answer as a right angle does, and below 0 it would
    pull a blend out of [0, 1]. RAGAS passes it on.

    Parameters
    ----------
    one, other : sequence of float, shape (n,)
        Finite and not all zeros.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    UserError
        If the vectors have not one length.

    Examples
    --------
    >>> cosine([3, 4], [4, 3]), cosine([1, 0], [-1, 0.1])
    (0.96, 0.0)
    """
    a, b = (np.asarray(vector, dtype=np.float64) for vector in (one, other))
    if a.shape != b.shape:
        raise UserError(f"embeddings of {a.size:,} and of {b.size:,} numbers cannot be compared")
    a, b = (vector / np.abs(vector).max() for vector in (a, b))  # so that no square is too large or too small for a float
    return float(np.clip(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)), 0.0, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fetched:
    """What one request gave."""

    vectors: dict[str, Vector | GradeFailure]
    usage: Usage | None


class Similarity:
    """Compares texts by their embeddings; each text is embedded once, as long as 8,192 others have not been seen since.

    Parameters
    ----------
    embeddings : Embeddings or callable
        A model, or a function of a list of texts that gives as many vectors.

    Raises
    ------
    UserError
        If it is neither.

    Examples
    --------
    >>> similarity = Similarity(lambda texts: [[text.count("a"), text.count("b")] for text in texts])
    >>> similarity.of("aaabbbb", "aaaabbb")
    0.96
    """

    def __init__(self, embeddings: Any) -> None:
        self.embeddings: Embeddings = embeddings_of(embeddings)
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._coming: dict[str, asyncio.Task[_Fetched]] = {}

    @property
    def name(self) -> str:
        """What tells the embeddings from others."""
        return self.embeddings.name

    def of(self, one: str, other: str) -> float:
        """Compare two texts.

        Raises
        ------
        PartFailed
            If one of them has no embedding.
        ServerError
            If the model cannot be used.
        """
        return run(self(one, other, Ledger()))

    async def __call__(self, one: str, other: str, ledger: Ledger) -> float:
        """Compare two texts, on isograde's event loop, and note in the ledger what it cost.

        Raises
        ------
        PartFailed
            If one of them has no embedding.
        ServerError
            If the model cannot be used.
        """
        with ledger.timed("similarity"):
            vectors = await self._vectors((one, other), ledger)
        found: list[Vector] = []
        for which, vector in zip(("response", "reference"), vectors, strict=True):
            if isinstance(vector, GradeFailure):
                status = "no_similarity" if vector.status in {"no_answer", "invalid_item"} else vector.status
                raise PartFailed("similarity", status, f"the {which}: {vector.message}")
            found.append(vector)
        if found[0].shape != found[1].shape:
            sizes = f"{found[0].size:,} and {found[1].size:,} numbers"
            raise PartFailed("similarity", "no_similarity", f"the two embeddings have {sizes}")
        return cosine(*found)

    async def aclose(self) -> None:
        """Release what the embeddings hold."""
        await self.embeddings.aclose()

    async def _vectors(self, texts: Sequence[str], ledger: Ledger) -> list[Vector | GradeFailure]:
        """Take what is known, ask for the rest, and wait for what another item has asked for already."""
        found: dict[str, Vector | GradeFailure] = {text: self._known[text] for text in texts if text in self._known}
        for text in found:
            self._known.move_to_end(text)
        wanted = [text for text in dict.fromkeys(texts) if text not in found and text not in self._coming]
        own = asyncio.create_task(self._fetch(wanted)) if wanted else None
        if own is not None:
            self._coming |= dict.fromkeys(wanted, own)
        awaited = {text: self._coming[text] for text in texts if text not in found}
        for text, task in awaited.items():
            fetched = await asyncio.shield(task)  # others may wait for it too
            found[text] = fetched.vectors[text]
        if own is not None:
            ledger.add("similarity", own.result().usage)
        return [found[text] for text in texts]

    async def _fetch(self, texts: list[str]) -> _Fetched:
        """Embed texts and remember their vectors; a failure is not remembered."""
        try:
            embedded = await self.embeddings.embed(texts)
        finally:
            for text in texts:
                del self._coming[text]
        vectors = dict(zip(texts, embedded.vectors, strict=True))
        self._known.update({text: vector for text, vector in vectors.items() if not isinstance(vector, GradeFailure)})
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return _Fetched(vectors=vectors, usage=embedded.usage)
