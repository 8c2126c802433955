"""Count what RAGAS 0.4.3 sends for four items: calls, characters and tokens, at a server that answers as a capable model would.

Run as ``make_reference.py`` is, with an argument: the embedded model's GGUF file, by whose tokenizer is counted too (needs
xllamacpp). It writes ``ragas_requests.json``. RAGAS's own wording is counted, never stored.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import urllib.request
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
warnings.simplefilter("ignore")

import tiktoken  # noqa: E402
import xllamacpp  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from make_reference import issue_cases  # noqa: E402
from openai import AsyncOpenAI  # noqa: E402
from ragas.dataset_schema import SingleTurnSample  # noqa: E402
from ragas.llms import LangchainLLMWrapper, llm_factory  # noqa: E402
from ragas.metrics import AnswerCorrectness as OldAnswerCorrectness  # noqa: E402
from ragas.metrics.collections import AnswerCorrectness  # noqa: E402
from ragas.run_config import RunConfig  # noqa: E402

OUT = Path(__file__).with_name("ragas_requests.json")
REASON = "The other text says the same."


class Stub(BaseHTTPRequestHandler):
    """Answer a chat completion by ``script``; keep what came in and went out."""

    script: list[str]
    seen: list[tuple[str, str]]

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = self.script.pop(0)
        extra = [json.dumps(body[name]) for name in ("tools", "functions") if name in body]
        self.seen.append(("\n".join([*(message["content"] for message in body["messages"]), *extra]), said))
        answer = {
            "id": "x", "object": "chat.completion", "created": 0, "model": "stub",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }  # fmt: skip
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


def tokenizers(gguf):
    """o200k_base, and the embedded model's through llama.cpp's server."""
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.verbosity = gguf, 512, -1
    params.hostnames, params.port = ["127.0.0.1"], 0
    server = xllamacpp.Server(params)

    def embedded(text):
        request = urllib.request.Request(
            f"{server.listening_address}/tokenize", json.dumps({"content": text}).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            return len(json.load(answer)["tokens"])

    encoding = tiktoken.get_encoding("o200k_base")
    return {"characters": len, "o200k_base": lambda text: len(encoding.encode(text)), "SmolLM2-135M-Instruct": embedded}


async def main(gguf):
    counters = tokenizers(gguf)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    wanted = ("savings account [1.0, 0.0]", "SpaceX 1", "SpaceX 2", "SpaceX 3")
    items = []
    for case in issue_cases():
        if case["name"] not in wanted:
            continue
        row = {name: case[name] for name in ("user_input", "response", "reference")}
        sorted_ = {k: [{"statement": text, "reason": REASON} for text in texts] for k, texts in case["classification"].items()}
        script = [{"statements": case["response_statements"]}, {"statements": case["reference_statements"]}, sorted_]
        item = {"name": case["name"].removesuffix(" [1.0, 0.0]"), **row}
        for interface in ("collections", "classic"):
            Stub.script, Stub.seen = [json.dumps(said, ensure_ascii=False) for said in script], []
            if interface == "collections":
                llm = llm_factory("gpt-4o-mini", client=AsyncOpenAI(base_url=url, api_key="none"))
                await AnswerCorrectness(llm=llm, weights=[1.0, 0.0]).ascore(**row)
            else:
                llm = LangchainLLMWrapper(ChatOpenAI(model="gpt-4o-mini", base_url=url, api_key="none"))
                metric = OldAnswerCorrectness(llm=llm, weights=[1.0, 0.0])
                metric.init(RunConfig())
                await metric.single_turn_ascore(SingleTurnSample(**row))
            item[interface] = [
                {
                    "call": call,
                    "input": {name: count(sent) for name, count in counters.items()},
                    "output": {name: count(said) for name, count in counters.items()},
                }
                for call, (sent, said) in zip(("response", "reference", "classification"), Stub.seen, strict=True)
            ]
        items.append(item)
    lines = ",\n".join(json.dumps(item, ensure_ascii=False) for item in items)
    OUT.write_text(f'{{"ragas": "0.4.3",\n"items": [\n{lines}\n]}}\n', encoding="utf-8")
    for item in items:
        for interface in ("collections", "classic"):
            print(
                item["name"],
                interface,
                {
                    name: (sum(c["input"][name] for c in item[interface]), sum(c["output"][name] for c in item[interface]))
                    for name in counters
                },
            )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
