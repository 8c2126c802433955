"""The same rows graded in process, at a llama.cpp server over HTTP, and through a LiteLLM proxy in front of it.

    python tests/bench/server_parity.py [--rows 300] [--litellm PATH_OF_THE_LITELLM_COMMAND]

Prints the largest difference of the scores and whether the prompts had the same number of tokens. The rows are those of
``saf2_en`` in the folder of human-graded sets (``ISOGRADE_SHARED``, or ``../shared``).
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from isograde import Judge
from isograde.datasets import read_rows
from isograde.records import Grade

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ISOGRADE_SHARED", ROOT.parent / "shared")) / "data" / "saf2_en.jsonl.gz"
KEY = "sk-local-proxy"


@contextmanager
def llama_server(port: int):
    """Run a llama.cpp server."""
    command = [sys.executable, str(ROOT / "tests" / "servers" / "llama_server.py"), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert "listening" in process.stdout.readline()
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


@contextmanager
def litellm_proxy(command: str, upstream: str, port: int):
    """Run a LiteLLM proxy in front of a server."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.yaml")
        config.write_text(
            "model_list:\n  - model_name: judge\n    litellm_params:\n"
            f"      {{model: openai/judge, api_base: '{upstream}', api_key: none}}\ngeneral_settings:\n  master_key: {KEY}\n",
            encoding="utf-8",
        )
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        arguments = [command, "--config", str(config), "--port", str(port)]
        with subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                for _ in range(120):
                    try:
                        urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=1).close()
                        break
                    except OSError:
                        time.sleep(0.5)
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                process.terminate()


def graded(judge: Judge, items: list) -> list[Grade]:
    """Grade with a word on the time."""
    started = time.perf_counter()
    grades = judge.score_batch(items)
    judge.close()
    failed = [grade for grade in grades if not isinstance(grade, Grade)]
    assert not failed, failed[0]
    print(f"{judge.backend.server or 'in process'}: {len(grades)} graded in {time.perf_counter() - started:.0f} s", flush=True)
    return grades


def compare(name: str, one: list[Grade], other: list[Grade]) -> None:
    """Print how far two runs are apart."""
    difference = max(abs(a.score - b.score) for a, b in zip(one, other, strict=True))
    same = sum(a.usage.input_tokens == b.usage.input_tokens for a, b in zip(one, other, strict=True))
    print(
        f"{name}: largest difference of a score {difference:.2g}; same number of prompt tokens in {same} of {len(one)}",
        flush=True,
    )


def main() -> None:
    """Grade three ways and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--litellm")
    arguments = parser.parse_args()
    items = [row.item for row in itertools.islice(read_rows(DATA), arguments.rows)]
    embedded = graded(Judge(), items)
    with llama_server(8790) as address:
        compare(
            "llama.cpp over HTTP", embedded, graded(Judge(model="judge", base_url=address, prefill=True, concurrency=2), items)
        )
        if arguments.litellm:
            with litellm_proxy(arguments.litellm, address, 8791) as proxy:
                judge = Judge(model="judge", base_url=proxy, api_key=KEY, prefill=True, concurrency=2)
                compare("LiteLLM before it", embedded, graded(judge, items))


if __name__ == "__main__":
    main()
