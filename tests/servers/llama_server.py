"""A real llama.cpp server over HTTP, with the embedded model's weights, until it is stopped.

    python tests/servers/llama_server.py [--port 0] [--model path.gguf] [--api-key KEY] [--parallel 1]

Prints ``listening on http://127.0.0.1:PORT`` once it answers. It computes as the embedded backend does (flash attention off,
32-bit cache), so that the two can be compared.
"""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path

from isograde.backends.adapters import shipped_adapter
from isograde.backends.llama import start_server
from isograde.backends.weights import default_weights, weights_fingerprint


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--api-key", default="")
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--ctx", type=int, default=8192, help="tokens of context, a slot")
    asked = parser.parse_args()
    path = asked.model or default_weights(print)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    adapter = shipped_adapter(weights_fingerprint(path))  # as the embedded judge has it, for the rubric that it was trained for
    lora = None if adapter is None else adapter.path
    server = start_server(path, n_slots=asked.parallel, n_ctx=asked.ctx, port=asked.port, api_key=asked.api_key, lora=lora)
    print(f"listening on {server.listening_address}", flush=True)
    stopped.wait()


if __name__ == "__main__":
    main()
