"""The embedded model: llama.cpp in this process, no server to set up and no key.

Content is tokenised apart from our own text, with special tokens off, and token ids are what is sent: nothing inside an item can
become a token of the chat template. The assistant's turn is opened by the cue, one token is asked for, and its logprobs are read.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any

from isograde.backends.adapters import shipped_adapter
from isograde.backends.base import Reply
from isograde.backends.llama import Llama, checked_gguf
from isograde.backends.weights import FINGERPRINT, MEMBER, default_weights, weights_fingerprint
from isograde.errors import UserError
from isograde.prompt import CUE, Prompt, prompt_fingerprint
from isograde.records import GradeFailure, Method, Usage
from isograde.rubric import Rubric

__all__ = ["EmbeddedBackend"]

# Stand for the messages while the chat template is rendered
_SYSTEM, _USER = "\u27e6what the rubric says\u27e7", "\u27e6what the item says\u27e7"
_N_PROBS = 500  # listed tokens: costs nothing next to the whole vocabulary, and all levels are nearly always among them


class EmbeddedBackend:
    """Grades with llama.cpp in this process, through the package ``xllamacpp``.

    The model is loaded at the first request.

    Parameters
    ----------
    path : str, pathlib.Path or None
        A GGUF file; None is the default model, whose weights are fetched at the first request.
    n_slots : int, default 1
        Requests that are computed at once. More pay off on a GPU only: on a CPU one request keeps all cores busy, and each slot
        computes the rubric anew and needs its own memory.
    n_ctx : int, default 8192
        Tokens that a prompt may have; the model's own limit where that is lower.
    progress : callable or None
        Is told in one line when weights are fetched.

    Raises
    ------
    UserError
        If the file is missing or no GGUF, or ``xllamacpp`` is not installed.
    """

    server: str | None = None
    methods: tuple[Method, ...] = ("answer_token",)

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        n_slots: int = 1,
        n_ctx: int = 8192,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise UserError('the embedded model needs llama.cpp: pip install "isograde[embedded]"')
        self._path = None if path is None else checked_gguf(Path(path))
        fingerprint = FINGERPRINT if self._path is None else weights_fingerprint(self._path)
        self.model = f"{Path(self._path or MEMBER).stem}@{fingerprint}"
        self.concurrency = n_slots + 1  # the next request waits at llama.cpp's door while this one is computed
        self._adapter = shipped_adapter(fingerprint)
        self._n_slots, self._n_ctx, self._progress = n_slots, n_ctx, progress
        self._process = os.getpid()
        self._pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="isograde-embedded")
        self._lock = threading.Lock()
        self._loaded: _Framer | None = None

    @property
    def prompt_fingerprint(self) -> str:
        """Fingerprint of the prompt's version and shape; the model is loaded to see whether its template has a system role."""
        return prompt_fingerprint(system_role=self._framer.system_role, prefill=True)

    def adapter(self, rubric: Rubric) -> str | None:
        """Fingerprint of the adapter that was trained for this rubric; None where there is none."""
        return self._adapter.fingerprint if self._adapter is not None and self._adapter.rubric == rubric.fingerprint else None

    def caveat(self, rubric: Rubric) -> str | None:
        """Say so where the default model was not trained for this rubric; of a model of one's own nothing is known."""
        if self._path is not None or self.adapter(rubric) is not None:
            return None
        return f"the embedded model is not trained for the rubric {rubric.name}: its grades are close to chance"

    async def ask(self, prompt: Prompt, labels: tuple[str, ...]) -> Reply | GradeFailure:
        """Ask for one answer token and its logprobs.

        Parameters
        ----------
        prompt : Prompt
            What is asked.
        labels : tuple of str
            The levels' labels.

        Returns
        -------
        Reply or GradeFailure
            ``too_long`` where the prompt has more tokens than the model's context; it is not sent then, and never cut.

        Raises
        ------
        ServerError
            If the weights cannot be fetched.
        UserError
            If the file is no model that llama.cpp can load, a label is not one token of this model, or the process is a fork.
        """
        if os.getpid() != self._process:  # a fork keeps none of the threads, and would wait for ever
            raise UserError("the embedded model does not survive a fork: make the judge inside the worker process")
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._ask, prompt, labels)

    def asked(self, prompt: Prompt, labels: tuple[str, ...]) -> dict[str, Any]:
        """Say all that shapes an answer beside model and adapter, without loading the model."""
        engine = f"xllamacpp {_engine_version()}"
        return {"engine": engine, "n_probs": _N_PROBS, "labels": labels, "messages": prompt.messages(prefill=True)}

    def request(self, prompt: Prompt, labels: tuple[str, ...]) -> dict[str, Any]:
        """Show the request that :meth:`ask` would send: the text, how many tokens it has, and the parameters."""
        framed = self._framer.framed(prompt, labels)
        asked = {**_completion(framed, _N_PROBS), **self._lora(prompt)}
        parameters = {name: value for name, value in asked.items() if name != "prompt"}
        return {"model": self.model, "prompt": framed.text, "prompt_tokens": len(framed.ids), **parameters}

    async def aclose(self) -> None:
        """Wait for the requests under way, stop llama.cpp and free its memory."""
        await asyncio.to_thread(self._close)

    @property
    def _framer(self) -> _Framer:
        """The loaded model; loaded once, however many ask."""
        with self._lock:
            if self._loaded is None:
                path = default_weights(self._progress) if self._path is None else self._path
                lora = None if self._adapter is None else self._adapter.path
                self._loaded = _Framer(Llama(path, n_slots=self._n_slots, n_ctx=self._n_ctx, lora=lora))
            return self._loaded

    def _ask(self, prompt: Prompt, labels: tuple[str, ...]) -> Reply | GradeFailure:
        """Tokenise, compute, and bring the answer into the shape of a chat completion."""
        framer = self._framer
        llama = framer.llama
        start = time.perf_counter()
        framed = framer.framed(prompt, labels)
        if len(framed.ids) >= llama.n_ctx:  # the answer needs one
            message = f"the prompt has {len(framed.ids):,} tokens; the model's context holds {llama.n_ctx - 1:,}"
            return GradeFailure(status="too_long", message=message)
        lora = self._lora(prompt)
        answer = llama.complete({**_completion(framed, _N_PROBS), **lora})
        usage = _usage(answer)
        if not _lists(answer, framed.label_ids):
            answer = llama.complete({**_completion(framed, llama.n_vocab), **lora})
        return Reply(body=_as_chat(answer), usage=usage, latency_s=time.perf_counter() - start)

    def _lora(self, prompt: Prompt) -> dict[str, Any]:
        """Switch the adapter on for the rubric that it was trained for, and off for all others."""
        if self._adapter is None:
            return {}
        return {"lora": [{"id": 0, "scale": float(prompt.rubric == self._adapter.rubric)}]}

    def _close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        with self._lock:
            if self._loaded is not None:
                self._loaded.llama.close()
                self._loaded = None


@lru_cache(maxsize=1)
def _engine_version() -> str:
    """Version of llama.cpp's package: another one may give other last digits."""
    return version("xllamacpp")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Framed:
    """A prompt in the chat template's frame, as text to show and as token ids to send."""

    text: str
    ids: list[int]
    label_ids: tuple[int, ...]


def _completion(framed: _Framed, n_probs: int) -> dict[str, Any]:
    """Write the request: one token, no sampler, logprobs as the model gives them."""
    return {
        "prompt": framed.ids,
        "max_tokens": 1,
        "temperature": 0.0,
        "samplers": ["temperature"],
        # Only a level can be answered, so that the answer is never blank; the logprobs are those before the bias
        "logit_bias": [[token, 100.0] for token in framed.label_ids],
        "n_probs": n_probs,
        "post_sampling_probs": False,
        "cache_prompt": True,
    }


def _first_position(answer: Any) -> Any:
    """Find the answer token's entry in a completion."""
    return answer["choices"][0]["logprobs"]["content"][0]


def _lists(answer: Any, label_ids: Sequence[int]) -> bool:
    """Tell whether every level's token is listed; an error lists all that it ever will."""
    if "choices" not in answer:
        return True
    return {token["id"] for token in _first_position(answer)["top_logprobs"]}.issuperset(label_ids)


def _as_chat(answer: Any) -> dict[str, Any]:
    """Bring a text completion into the shape of a chat completion."""
    if "choices" not in answer:
        return {"error": answer.get("error") or answer}
    choice = answer["choices"][0]
    message = {"role": "assistant", "content": choice["text"]}
    return {**answer, "object": "chat.completion", "choices": [{**choice, "message": message}]}


def _usage(answer: Any) -> Usage | None:
    """Read how many tokens were sent, and how many of them llama.cpp had computed before."""
    usage = answer.get("usage")
    if not usage:
        return None
    return Usage(
        input_tokens=usage["prompt_tokens"],
        output_tokens=usage["completion_tokens"],
        cached_tokens=usage["prompt_tokens_details"]["cached_tokens"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """What is the same for each item of a rubric: our texts between the contents, and their tokens; one more than contents."""

    texts: tuple[str, ...]
    runs: tuple[tuple[int, ...], ...]
    label_ids: tuple[int, ...]


class _Framer:
    """Puts prompts into a model's chat template, as token ids."""

    def __init__(self, llama: Llama) -> None:
        self.llama = llama
        self._bos = llama.tokenize("", bos=True)[:1]
        with_system = llama.render([{"role": "system", "content": _SYSTEM}, {"role": "user", "content": _USER}])
        self.system_role = with_system is not None and _SYSTEM in with_system
        self._frame = lru_cache(maxsize=64)(self._tokenised)

    def framed(self, prompt: Prompt, labels: tuple[str, ...]) -> _Framed:
        """Tokenise our texts once, and each content apart, where no text is a special token."""
        own, contents = _alternate(prompt)
        frame = self._frame(prompt.system, own, labels)
        text, mixed = frame.texts[0], list[str | int]()
        for content, own_text, run in zip(contents, frame.texts[1:], frame.runs[1:], strict=True):
            text += content + own_text
            mixed += [content, *run]
        ids = [*frame.runs[0], *(self.llama.tokenize(mixed) if mixed else ())]
        return _Framed(text=text, ids=ids, label_ids=frame.label_ids)

    def _tokenised(self, system: str, own: tuple[str, ...], labels: tuple[str, ...]) -> _Frame:
        """Tokenise the chat template and our texts, up to where one token tells the labels apart."""
        before, after = self._template(system)
        texts = [*own[:-1], own[-1] + after]
        texts[0] = before + texts[0]
        runs = [self.llama.tokenize(text, special=True) for text in texts[:-1]]
        answered = [self.llama.tokenize(f"{texts[-1]}{CUE} {label}", special=True) for label in labels]
        opened = [each[0] for each in takewhile(lambda each: len(set(each)) == 1, zip(*answered, strict=False))]
        for label, ids in zip(labels, answered, strict=True):
            if len(ids) != len(opened) + 1:
                raise UserError(
                    f"label {label!r} is not one token of {self.llama.path.name}; give the levels labels of one digit or letter"
                )
        runs.append(opened)
        if runs[0][:1] != self._bos:  # templates that write the token themselves have it already
            runs[0] = self._bos + runs[0]
        return _Frame(
            texts=(*texts[:-1], f"{texts[-1]}{CUE} "),
            runs=tuple(map(tuple, runs)),
            label_ids=tuple(ids[-1] for ids in answered),
        )

    def _template(self, system: str) -> tuple[str, str]:
        """Render the model's own chat template once, and cut it at the user's text."""
        if self.system_role:
            messages = [{"role": "system", "content": system}, {"role": "user", "content": _USER}]
        else:
            messages = [{"role": "user", "content": f"{system}\n\n{_USER}"}]
        rendered = self.llama.render(messages)
        if rendered is None or rendered.count(_USER) != 1 or system.strip() not in rendered:
            raise UserError(f"model {self.llama.path}: its chat template does not show what is asked; use an instruct model")
        before, _, after = rendered.partition(_USER)
        return before, after


def _alternate(prompt: Prompt) -> tuple[tuple[str, ...], list[str]]:
    """Join neighbouring parts, so that our texts and contents take turns; ours begin and end."""
    own, contents = [""], list[str]()
    for part in prompt.parts:
        if not part.content:
            own[-1] += part.text
        elif part.text:
            contents.append(part.text)
            own.append("")
    return tuple(own), contents
