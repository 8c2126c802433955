"""What every maker of embeddings offers, and what a vector must be."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from isograde.prompt import is_blank
from isograde.records import GradeFailure, Usage

__all__ = ["Embedded", "Embeddings", "Vector", "as_vector", "embedded_once"]

Vector: TypeAlias = NDArray[np.float64]

_BLANK = GradeFailure(status="invalid_item", message="the text is blank; it has no embedding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Texts as vectors.

    Attributes
    ----------
    vectors : tuple of numpy.ndarray or GradeFailure
        One a text, in the order of the texts: finite, not all zeros, of any length but 0, not normalised. A failure says why a
        text has none.
    usage : Usage or None
        Tokens, where they were counted.
    """

    vectors: tuple[Vector | GradeFailure, ...]
    usage: Usage | None = None


@runtime_checkable
class Embeddings(Protocol):
    """A model that turns texts into vectors.

    Attributes
    ----------
    name : str
        What tells it from others whose vectors cannot be compared with its own.
    """

    name: str

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Turn texts into vectors; a blank text is never sent, and a text that is there twice is sent once.

        Raises
        ------
        ServerError
            If the whole run cannot go on.
        """

    async def aclose(self) -> None:
        """Release connections, threads and memory."""


def as_vector(values: Any) -> Vector | GradeFailure:
    """Read an embedding and check that a cosine can be taken with it.

    Parameters
    ----------
    values : sequence of float or str
        Numbers, or 32-bit floats in base64, as OpenAI's ``encoding_format: "base64"`` has them.

    Returns
    -------
    numpy.ndarray or GradeFailure
        The vector, 64-bit floats of shape (n,); a failure where it is empty, no list of numbers, not finite or all zeros.

    Examples
    --------
    >>> as_vector([3, 4.5]), as_vector("AACAPwAAAMA=")
    (array([3. , 4.5]), array([ 1., -2.]))
    >>> as_vector([0, 0]).message
    'the embedding is all zeros'
    """
    try:
        if isinstance(values, str):
            vector = np.frombuffer(base64.b64decode(values, validate=True), dtype="<f4").astype(np.float64)
        else:
            vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, binascii.Error):
        return _unusable("is no list of numbers")
    if vector.ndim != 1:
        return _unusable("is no list of numbers")
    if not vector.size:
        return _unusable("is empty")
    if not np.isfinite(vector).all():
        return _unusable("holds NaN or infinity")
    if not vector.any():
        return _unusable("is all zeros")
    return vector


async def embedded_once(
    texts: Sequence[str],
    embed: Callable[[list[str]], Awaitable[tuple[Sequence[Vector | GradeFailure], Usage | None]]],
) -> Embedded:
    """Embed each text that shows anything once, and put the vectors in the order of the texts.

    Parameters
    ----------
    texts : sequence of str
        Blank ones get a failure and are not handed on.
    embed : callable
        Coroutine function of the others, each once: as many vectors, and the tokens.

    Returns
    -------
    Embedded
    """
    wanted = list(dict.fromkeys(text for text in texts if not is_blank(text)))
    found, usage = await embed(wanted) if wanted else ((), None)
    known = dict(zip(wanted, found, strict=True))
    return Embedded(vectors=tuple(known.get(text, _BLANK) for text in texts), usage=usage)


def _unusable(what: str) -> GradeFailure:
    return GradeFailure(status="no_answer", message=f"the embedding {what}")
