"""Write LoRA's parameters as a GGUF adapter that llama.cpp loads beside the base model, and what it belongs to."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
import torch
from model import ALPHA
from tokens import RUBRIC
from torch import Tensor

from isograde.backends.adapters import Adapter
from isograde.backends.weights import weights_fingerprint
from isograde.prompt import prompt_fingerprint
from isograde.rubric import load_rubric


def write_adapter(path: Path, parameters: Mapping[str, Tensor], *, examples: int) -> None:
    """Write `blk.N.<linear>.weight.lora_a` (rank × inputs) and `.lora_b` (outputs × rank) in f16."""
    writer = gguf.GGUFWriter(path, arch="llama")
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, ALPHA)
    writer.add_name("isograde answer_correctness judge for SmolLM2-135M-Instruct Q4_1")
    writer.add_license("apache-2.0")
    writer.add_description(f"LoRA for the rubric answer_correctness, {examples} examples; see MODEL_CARD.md")
    for name, tensor in parameters.items():
        writer.add_tensor(name, np.ascontiguousarray(tensor.detach().numpy().astype(np.float16)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def describe(path: Path, weights: Path) -> None:
    """Write `adapter.json` beside an adapter: what it belongs to."""
    text = Adapter(
        file=path.name,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        weights=weights_fingerprint(weights),
        rubric=load_rubric(RUBRIC).fingerprint,
        prompt=prompt_fingerprint(system_role=True, prefill=True),
    ).model_dump_json(indent=1)
    path.with_name("adapter.json").write_text(f"{text}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("adapter", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--weights", choices=("average", "parameters"), default="average")
    args = parser.parse_args()
    state = torch.load(args.checkpoint, weights_only=True)
    write_adapter(args.adapter, state[args.weights], examples=state["seen"])
    describe(args.adapter, args.model)


if __name__ == "__main__":
    main()
