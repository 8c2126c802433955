"""A model by script, for the stub server: it splits texts into claims and judges them as it was told, and tells what it is asked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from isograde.backends.vectors import Embedded
from isograde.prompt import unescape
from servers.stub import LEVELS, completion


def written(text: str, *, finish_reason: str = "stop", tokens: int = 40, prompt_tokens: int = 300) -> dict[str, Any]:
    """A chat completion that holds a text."""
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": tokens, "total_tokens": prompt_tokens + tokens},
    }


def fenced(request: Mapping[str, Any], tag: str) -> str | None:
    """What stands inside a fence of a request's first user message."""
    user = next(message["content"] for message in request["messages"] if message["role"] == "user")
    found = re.search(rf"^<{tag}>\n(.*?)\n</{tag}>$", user, re.DOTALL | re.MULTILINE)
    return unescape(found[1], (tag, "question", "text", "answer", "reference", "claim")) if found else None


def kind(request: Mapping[str, Any]) -> str:
    """What a request asks for: claims, sorting, support or rubric."""
    user = next(message["content"] for message in request["messages"] if message["role"] == "user")
    for ending, name in (("Claims?", "claims"), ("Sorted?", "sorting")):
        if user.rstrip().endswith(ending):
            return name
    return "support" if fenced(request, "claim") is not None else "rubric"


class ScriptedModel:
    """Answers as a capable model would, from a script.

    Parameters
    ----------
    claims : mapping of str to sequence of str
        For each text its claims; a text that is not there is its own only claim.
    supported : collection of str, or mapping of str to float
        Claims that the other text supports, with their probabilities (0.97 and 0.02 otherwise).
    levels : mapping
        The rubric's level probabilities.
    cosine : float
        Of any two texts' embeddings.
    """

    def __init__(
        self,
        claims: Mapping[str, Sequence[str]] = {},
        supported: Collection[str] | Mapping[str, float] = (),
        levels: Mapping[str, float] = LEVELS,
        shape: Callable[[dict[str, Any]], str] = json.dumps,
        cosine: float = 0.72,
    ) -> None:
        self.claims, self.levels, self.shape, self.cosine = claims, levels, shape, cosine
        self.supported = supported if isinstance(supported, Mapping) else dict.fromkeys(supported, 0.97)

    def __call__(self, request: dict[str, Any]) -> Any:
        return self._embeddings(request) if "input" in request else getattr(self, f"_{kind(request)}")(request)

    def _claims(self, request: dict[str, Any]) -> Any:
        text = fenced(request, "text") or ""
        return written(self.shape({"claims": list(self.claims.get(text, [text]))}))

    def _support(self, request: dict[str, Any]) -> Any:
        p = self.supported.get(fenced(request, "claim") or "", 0.02)
        return completion({"1": p, "0": 1 - p})

    def _sorting(self, request: dict[str, Any]) -> Any:
        ours, theirs = (dict(line.split(": ", 1) for line in fenced(request, tag).split("\n")) for tag in ("answer", "reference"))
        true = [name for name, claim in ours.items() if self.supported.get(claim, 0) >= 0.5]
        absent = [name for name, claim in theirs.items() if self.supported.get(claim, 0) < 0.5]
        return written(self.shape({"TP": true, "FP": [name for name in ours if name not in true], "FN": absent}))

    def _embeddings(self, request: dict[str, Any]) -> Any:
        vectors = [[1.0, 0.0], [self.cosine, math.sqrt(1 - self.cosine**2)]]
        data = [{"index": i, "embedding": vectors[i % 2]} for i in range(len(request["input"]))]
        return {"object": "list", "data": data, "usage": {"prompt_tokens": 20, "total_tokens": 20}}

    def _rubric(self, request: dict[str, Any]) -> Any:
        return completion(self.levels)


class FixedEmbeddings:
    """Embeddings whose cosine for any two different texts is as wanted."""

    name = "fixed"

    def __init__(self, cosine: float) -> None:
        self.cosine = cosine
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> Embedded:
        self.asked.append(list(texts))
        first = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        other = [self.cosine, math.sqrt(1 - self.cosine**2)]
        return Embedded(vectors=tuple(np.array([1.0, 0.0] if first[text] == 0 else other) for text in texts))

    async def aclose(self) -> None:
        pass
