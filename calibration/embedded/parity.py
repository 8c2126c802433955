"""Compare the level probabilities of torch and of llama.cpp, set up as the embedded judge does, on a few evaluation prompts.

What differs is llama.cpp's rounding of activations to 8 bits before a product with quantised weights. With `--exact`, llama.cpp
gets the same weights de-quantised to 32 bits, does not round, and must agree to the third digit.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gguf
import numpy as np
import torch
from model import Judge
from numpy.typing import NDArray
from train import Data, grade

from isograde.backends.llama import Llama


def dequantised(model: Path, copy: Path) -> Path:
    """Write the same model with 32-bit weights."""
    reader = gguf.GGUFReader(model)
    writer = gguf.GGUFWriter(copy, arch="llama")
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name not in {"general.architecture", "general.file_type"}:
            sub_type = field.types[1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=sub_type)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return copy


def by_torch(args: argparse.Namespace, data: Data, indices: list[int]) -> NDArray[np.float32]:
    judge = Judge(args.model, seed=0, dtype=torch.float32)
    judge.load(args.adapter)
    return grade(judge, data.prefix, [data.items[i] for i in indices], data.labels, 1500).numpy()


def by_llama_cpp(args: argparse.Namespace, data: Data, indices: list[int]) -> NDArray[np.float32]:
    model = dequantised(args.model, args.exact) if args.exact else args.model
    llama = Llama(model, n_slots=1, n_ctx=2048, lora=args.adapter)
    graded = []
    for i in indices:
        tokens = [*data.prefix.tolist(), *data.items[i].tolist()]
        answer = llama.complete({"prompt": tokens, "max_tokens": 1, "n_probs": 500, "temperature": 0.0, "cache_prompt": True})
        top = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        seen = {entry["id"]: np.exp(entry["logprob"]) for entry in top}
        levels = np.array([seen[int(label)] for label in data.labels])
        graded.append([*(levels / levels.sum()), levels.sum()])
    llama.close()
    return np.array(graded, dtype=np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("adapter", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--prompts", type=int, default=50)
    parser.add_argument("--exact", type=Path, metavar="FILE", help="write the base with 32-bit weights there (540 MB) and use it")
    args = parser.parse_args()
    torch.set_num_threads(1)
    data = Data(args.work / "eval.npz", Data(args.work / "train.npz").prefix)
    indices = np.random.default_rng(0).choice(len(data.items), args.prompts, replace=False).tolist()
    ours, theirs = by_torch(args, data, indices), by_llama_cpp(args, data, indices)
    difference = np.abs(ours - theirs)
    level = np.abs((ours[:, :5] - theirs[:, :5]) @ np.arange(5))
    for what, values in (
        ("level probability", difference[:, :5]),
        ("observed mass", difference[:, 5]),
        ("expected level", level),
    ):
        most, usual = values.max(), np.quantile(values, 0.99)
        print(f"{what}: differs by {most:.4f} at most, {usual:.4f} in 99 of 100, {values.mean():.4f} on average")


if __name__ == "__main__":
    main()
