"""Token sequences as the embedded judge sends them: the model's chat template, with the assistant's turn opened."""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from targets import Example

from isograde.prompt import render
from isograde.records import Item
from isograde.rubric import load_rubric

RUBRIC = "answer_correctness"


class Tokenizer:
    """llama.cpp's own server, asked for the chat template and for tokens."""

    def __init__(self, model: Path) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 512, 1, False, 0
        params.cpuparams.n_threads = 1
        self._server = xllamacpp.Server(params)
        self._address = self._server.listening_address.removeprefix("http://")
        self._rubric = load_rubric(RUBRIC)
        shown = self._template(Example(source="", input="?", expected="?", output="?", target=(0, 0, 0, 0, 0)))
        self._system = shown[: shown.index("<|im_start|>user")]
        self.system = self._tokens(self._system)

    def _post(self, path: str, body: object) -> dict:
        connection = http.client.HTTPConnection(self._address)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        try:
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def _template(self, example: Example) -> str:
        item = Item(input=example.input, expected=example.expected, output=example.output)
        return self._post("/apply-template", {"messages": render(self._rubric, item).messages(prefill=True)})["prompt"]

    def _tokens(self, text: str) -> list[int]:
        return self._post("/tokenize", {"content": text, "parse_special": True, "add_special": True})["tokens"]

    def whole(self, example: Example) -> list[int]:
        """Tokens of the whole prompt."""
        return self._tokens(self._template(example))

    def item(self, example: Example) -> list[int]:
        """Tokens after the system turn; it ends at a special token, where the text is cut before it is tokenised."""
        prompt = render(self._rubric, Item(input=example.input, expected=example.expected, output=example.output))
        turns = [f"<|im_start|>{m['role']}\n{m['content']}" for m in prompt.messages(prefill=True)[1:]]
        return self._tokens("<|im_end|>\n".join(turns))

    def labels(self) -> list[int]:
        """One token for each level."""
        return [self._tokens(label)[0] for label in self._rubric.labels]


def common_prefix(items: Sequence[Sequence[int]]) -> int:
    """Length of what all items begin with."""
    low, high = min(items), max(items)
    return next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))


def save(path: Path, tokenizer: Tokenizer, examples: Sequence[Example], *, max_tokens: int = 900) -> None:
    """Tokenise; drop what is longer than `max_tokens` or blank; write one compressed file."""
    for example in examples[:100]:
        assert tokenizer.whole(example) == [*tokenizer.system, *tokenizer.item(example)], example
    kept, ids = [], []
    for i, example in enumerate(examples):
        if min(len(t.strip()) for t in (example.input, example.expected, example.output)) == 0:
            continue
        tokens = tokenizer.item(example)
        if len(tokens) <= max_tokens:
            kept.append(i)
            ids.append(np.array(tokens, dtype=np.uint16))
    np.savez_compressed(
        path,
        system=np.array(tokenizer.system, dtype=np.uint16),
        labels=np.array(tokenizer.labels()),
        tokens=np.concatenate(ids),
        ends=np.cumsum([len(t) for t in ids]),
        targets=np.array([examples[i].target for i in kept], dtype=np.float32),
        kept=np.array(kept),
        sources=np.array([examples[i].source for i in kept]),
    )
