"""llama.cpp in this process, through the package ``xllamacpp``: completions, tokens, and the model's chat template.

Flash attention is off and the key-value cache holds 32-bit floats, because llama.cpp's other kernels round by the size of the
batch. The same prompt then gives the same bits beside whatever other requests and after whatever other items of its rubric.
What is left: where an item begins as the one before it (the same question), the part in common is not computed again, and in
about one such case in six the model's 8-bit rounding tips elsewhere and a logprob moves by up to 0.1 (SmolLM2-135M on AVX2;
with flash attention it does in each).
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import weakref
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from isograde.errors import UserError

__all__ = ["Llama", "checked_gguf", "start_server"]

_CACHED_PROMPTS_MIB = 256  # prefixes of other rubrics, kept for when their turn comes
_OMP_WAIT = "OMP_WAIT_POLICY"


class Llama:
    """llama.cpp: answers in process; its tokenizer and its template over loopback, which is the only way to them."""

    def __init__(self, path: Path, *, n_slots: int, n_ctx: int, lora: Path | None = None, embeds: bool = False) -> None:
        self.path = path
        self._key = secrets.token_urlsafe(32)
        server = start_server(path, n_slots=n_slots, n_ctx=n_ctx, port=0, api_key=self._key, lora=lora, embeds=embeds)
        held = [server]
        # A server that lives on into the interpreter's end would run threads in freed memory
        self.close = weakref.finalize(self, held.clear)
        self._held = held
        address = urlsplit(server.listening_address)
        self._host, self._port = address.hostname or "127.0.0.1", address.port
        self.n_ctx = int(self._http("GET", "/props")["default_generation_settings"]["n_ctx"])
        self.n_vocab = int(self._http("GET", "/v1/models")["data"][0]["meta"]["n_vocab"])

    def complete(self, request: dict[str, Any]) -> Any:
        """Compute one completion."""
        return self._held[0].handle_completions(request)

    def embed(self, ids: list[list[int]]) -> Any:
        """Compute one embedding a list of token ids; for a server that embeds."""
        return self._held[0].handle_embeddings({"input": ids})

    def tokenize(self, content: str | list[str | int], *, special: bool = False, bos: bool = False) -> list[int]:
        """Turn text into token ids; ids in a list stay as they are."""
        asked = {"content": content, "parse_special": special, "add_special": bos}
        ids: list[int] = self._http("POST", "/tokenize", asked)["tokens"]
        return ids

    def render(self, messages: list[dict[str, str]]) -> str | None:
        """Apply the model's chat template, thinking switched off; None where the template refuses the messages."""
        asked = {"messages": messages, "chat_template_kwargs": {"enable_thinking": False}}
        prompt: str | None = self._http("POST", "/apply-template", asked).get("prompt")
        return prompt

    def _http(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Ask the server's own port."""
        connection = http.client.HTTPConnection(self._host, self._port)
        try:
            connection.request(method, path, json.dumps(body), {"Authorization": f"Bearer {self._key}"})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


def checked_gguf(path: Path) -> Path:
    """Refuse what is no GGUF file."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise UserError(f"model {path}: {error.strerror or error}") from None
    if magic != b"GGUF":
        raise UserError(f"model {path}: not a GGUF file")
    return path


def start_server(
    path: Path, *, n_slots: int, n_ctx: int, port: int, api_key: str, lora: Path | None = None, embeds: bool = False
) -> Any:
    """Start llama.cpp's server in this process, on loopback, as silent and as closed as it can be.

    An adapter is loaded beside the weights; a request switches it off by ``"lora": [{"id": 0, "scale": 0}]``. Switching makes
    llama.cpp compute the rubric anew, so that items by several rubrics in turn cost more than one rubric after the other.

    Returns
    -------
    xllamacpp.Server
        It ends when it is collected.

    Raises
    ------
    UserError
        If llama.cpp or the model cannot be loaded.
    """
    xllamacpp = _xllamacpp()
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    if lora is not None:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(lora), 1.0)]
    params.n_parallel, params.n_ctx = n_slots, n_slots * n_ctx
    if embeds:
        params.embedding, params.n_ubatch = True, n_ctx  # attention that looks both ways needs the whole text in one batch
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.cache_ram_mib = _CACHED_PROMPTS_MIB
    params.warmup = False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _n_threads()
    params.verbosity = -1  # its log goes to stderr, which is the user's
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], port, [api_key] if api_key else []
    params.cors_origins, params.cors_credentials = "http://127.0.0.1", False
    params.ui = params.endpoint_slots = params.endpoint_metrics = params.endpoint_props = False
    try:
        return xllamacpp.Server(params)
    except RuntimeError:
        raise UserError(f"model {path}: llama.cpp cannot load it (damaged, of an unknown kind, or too large)") from None


def _xllamacpp() -> Any:
    """Import llama.cpp with threads that sleep while they wait.

    OpenMP's own choice is to spin, and a busy machine then grades many times slower. The policy is read when the library is
    loaded; the environment is left as it was.
    """
    chosen = os.environ.get(_OMP_WAIT)
    os.environ[_OMP_WAIT] = chosen or "passive"
    try:
        import xllamacpp
    except ImportError as error:  # installed, but not for this machine: a system library is missing, often libgomp
        raise UserError(f"llama.cpp cannot be loaded ({error}); on a slim Linux image install libgomp1") from None
    finally:
        if chosen is None:
            del os.environ[_OMP_WAIT]
    return xllamacpp


def _n_threads() -> int:
    """Cores that this process may use; -1, llama.cpp's own choice, where it may use all."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return -1 if allowed is None or allowed == os.cpu_count() else allowed
