"""Tokens an item of answer correctness against RAGAS 0.4.3's own requests for the same items, counted at a stub.

    python tests/bench/claim_tokens.py

Counted is the text of all messages and of the JSON schema, by the embedded model's tokenizer; RAGAS's figures were counted in the
same way (tests/reference/ragas/count_requests.py). «computed» leaves out the tokens that a request shares from the start
with an earlier one of its kind, which a server with a prefix cache does not compute again. References are stored: their claims were
made once before.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from isograde import Judge
from isograde.backends.llama import Llama
from isograde.backends.weights import default_weights
from isograde.correctness import AnswerCorrectness, Correctness
from isograde.correctness.sentences import sentences

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

from servers.scripted import ScriptedModel, kind  # noqa: E402 - the path was set just now
from servers.stub import StubServer  # noqa: E402

ITEMS = json.loads((TESTS / "reference" / "ragas" / "ragas_requests.json").read_text(encoding="utf-8"))["items"]
TOKENIZER = "SmolLM2-135M-Instruct"


class Counter:
    """Tokens of requests, by kind."""

    def __init__(self, llama: Llama) -> None:
        self._llama = llama

    def ids(self, text: str) -> list[int]:
        return self._llama.tokenize(text)

    def count(self, requests: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
        """Tokens sent, and of them computed, by kind of request."""
        totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        earlier: dict[str, list[list[int]]] = defaultdict(list)
        for request in requests:
            name = kind(request)
            text = "\n".join(message["content"] for message in request["messages"])
            schema = json.dumps(request["response_format"]) if "response_format" in request else ""
            ids = self.ids(text)
            before = earlier[name]
            shared = max((shared_start(ids, other) for other in before), default=0)
            n_schema = len(self.ids(schema)) if schema else 0
            totals[name][0] += len(ids) + n_schema
            totals[name][1] += len(ids) - shared + (0 if before else n_schema)
            before.append(ids)
        return {name: (sent, computed) for name, (sent, computed) in totals.items()}


def shared_start(one: list[int], other: list[int]) -> int:
    """How many tokens two requests share from the start."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def measure(counter: Counter, item: dict[str, str], verdicts: Any) -> tuple[Correctness, dict[str, tuple[int, int]], int]:
    """Ask about an item whose reference has been split before; its result, tokens in by kind, and tokens out."""
    texts = {item[name]: sentences(item[name]) for name in ("response", "reference")}
    model = ScriptedModel(texts, {claim for claim in texts[item["response"]] if claim in texts[item["reference"]]})
    with StubServer(model) as server, Judge(model="stub-1", base_url=server.base_url) as judge:
        metric = AnswerCorrectness(judge, weights=(1, 0), verdicts=verdicts)
        metric.score(user_input=item["user_input"], response="Another answer.", reference=item["reference"])
        server.requests.clear()
        result = metric.score(**{name: item[name] for name in ("user_input", "response", "reference")})
        requests = list(server.requests)
    assert isinstance(result, Correctness), result
    written = [json.dumps({"claims": texts[item["response"]]})]
    if verdicts == "generated":
        written.append(model._sorting(next(r for r in requests if kind(r) == "sorting"))["choices"][0]["message"]["content"])
    n_tokens = sum(kind(request) in {"rubric", "support"} for request in requests)
    return result, counter.count(requests), n_tokens + sum(len(counter.ids(text)) for text in written)


def line(name: str, counts: dict[str, tuple[int, int]], out: int, theirs: int | None) -> None:
    """Print one row of a table."""
    sent, computed = (sum(each[i] for each in counts.values()) for i in (0, 1))
    rubric = counts["rubric"][0]
    of = "" if theirs is None else f"   rubric ÷ RAGAS {rubric / theirs:.2f}   all in+out ÷ RAGAS {(sent + out) / theirs:.2f}"
    print(f"  {name:28} in {sent:6,} (computed {computed:5,})  out {out:4,}   rubric {rubric:4,}{of}")


def main() -> None:
    """Print RAGAS's items, then the curve over the number of claims."""
    counter = Counter(Llama(default_weights(), n_slots=1, n_ctx=512))
    worst = 0.0
    for item in ITEMS:
        print(item["name"])
        for interface in ("collections", "classic"):
            calls = item[interface]
            theirs = sum(call[way][TOKENIZER] for call in calls for way in ("input", "output"))
            stored = theirs - sum(
                call[way][TOKENIZER] for call in calls if call["call"] == "reference" for way in ("input", "output")
            )
            print(f"  RAGAS, {interface}: {theirs:,} tokens (without its call for the reference {stored:,})")
            for verdicts in ("logprobs", "generated"):
                _, counts, out = measure(counter, item, verdicts)
                line(f"verdicts {verdicts}", counts, out, theirs)
                worst = max(worst, counts["rubric"][0] / theirs)
    print(f"rubric grade ÷ RAGAS's requests, at most: {worst:.2f}")
    print("curve: n claims on either side, references stored")
    for n in (1, 2, 4, 8, 16, 32):
        texts = {
            "response": " ".join(f"The account's term number {i} is {i * 7} rupees a month." for i in range(n)),
            "reference": " ".join(f"The account's term number {i} is {i * 9 + 1} rupees a month." for i in range(n)),
        }
        for verdicts in ("logprobs", "generated"):
            _, counts, out = measure(counter, {"user_input": "What are the account's terms?", **texts}, verdicts)
            line(f"n = {n}, {verdicts}", counts, out, None)


if __name__ == "__main__":
    main()
