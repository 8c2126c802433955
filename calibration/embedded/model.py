"""The judge's language model in torch: a Llama forward pass over packed items, with LoRA on every linear layer.

Weights come de-quantised from the GGUF file, in its own layout (interleaved rotary pairs), so that nothing is permuted on the way
back. The base is frozen and held in bf16; LoRA's parameters, the residual stream and every reduction are fp32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

RANK = 16
ALPHA = 32.0
LINEARS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
FUSED = (("attn_q", "attn_k", "attn_v"), ("attn_output",), ("ffn_gate", "ffn_up"), ("ffn_down",))


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One packed sequence: the shared prefix, then the items one after another.

    Attributes
    ----------
    tokens : Tensor, shape (n,), int64
    lengths : list of int
        Tokens of the prefix, then of each item.
    positions : Tensor, shape (n,), int64
        Positions; each item's go on from the prefix.
    last : Tensor, shape (items,), int64
        Index of each item's last token.
    masks : list of Tensor
        Per item, shape (its tokens, prefix + its tokens): 0 where it may look, −inf elsewhere.
    """

    tokens: Tensor
    lengths: list[int]
    positions: Tensor
    last: Tensor
    masks: list[Tensor]

    @classmethod
    def pack(cls, prefix: np.ndarray, items: Sequence[np.ndarray], dtype: torch.dtype) -> Batch:
        start = len(prefix)
        lengths = [start, *map(len, items)]
        positions = np.concatenate([np.arange(start), *(start + np.arange(len(item)) for item in items)])
        masks = [
            torch.full((n, start + n), -torch.inf, dtype=dtype).triu_(start + 1) if n > 1 else torch.zeros((1, start + 1), dtype=dtype)
            for n in lengths[1:]
        ]
        return cls(
            tokens=torch.from_numpy(np.concatenate([prefix, *items]).astype(np.int64)),
            lengths=lengths,
            positions=torch.from_numpy(positions),
            last=torch.from_numpy(np.cumsum(lengths)[1:] - 1),
            masks=masks,
        )


class _Linear(torch.autograd.Function):
    """x Wᵀ + (x Aᵀ) Bᵀ with W frozen; B already holds the scale."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, a: Tensor, b: Tensor) -> Tensor:
        a, b = a.to(x.dtype), b.to(x.dtype)
        low = x @ a.T
        ctx.save_for_backward(x, weight, a, b, low)
        return torch.addmm(x @ weight.T, low, b.T)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor, Tensor]:  # type: ignore[override]  # torch types it *Any
        x, weight, a, b, low = ctx.saved_tensors
        grad = grad.contiguous()
        back = grad @ b
        return torch.addmm(grad @ weight, back, a), None, (back.T @ x).float(), (grad.T @ low).float()


class _Norm(torch.autograd.Function):
    """RMSNorm of the fp32 residual stream with a frozen weight, in the dtype of the matrix products."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
        inverse = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(x.shape[-1]).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight, inverse)
        return (x * inverse).mul_(weight).to(dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:  # type: ignore[override]
        x, weight, inverse = ctx.saved_tensors
        grad = grad.float() * weight
        inner = torch.linalg.vecdot(grad, x).unsqueeze(-1).mul_(inverse.pow(3)).div_(x.shape[-1])
        return grad.mul_(inverse).addcmul_(x, inner, value=-1), None, None, None


class _SwiGlu(torch.autograd.Function):
    """silu(gate) · up of one fused product; saves nothing but its input."""

    @staticmethod
    def forward(ctx: Any, fused: Tensor) -> Tensor:
        ctx.save_for_backward(fused)
        gate, up = fused.chunk(2, dim=-1)
        return functional.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        (fused,) = ctx.saved_tensors
        gate, up = fused.chunk(2, dim=-1)
        out = torch.empty_like(fused)
        torch.mul(grad, functional.silu(gate), out=out[:, up.shape[1] :])
        out[:, : up.shape[1]] = torch.ops.aten.silu_backward(grad * up, gate)
        return out


def _tensor(reader: gguf.GGUFReader, name: str) -> Tensor:
    tensor = next(t for t in reader.tensors if t.name == name)
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    return torch.from_numpy(np.array(values, dtype=np.float32))


class Judge:
    """SmolLM2-135M with LoRA.

    Parameters
    ----------
    path : Path
        The GGUF file.
    seed : int
        Of LoRA's initialisation (A Kaiming-uniform, B 0).
    dtype : torch.dtype
        Of the matrix products: bf16 to train, fp32 to compare with llama.cpp.
    """

    def __init__(self, path: Path, *, seed: int, dtype: torch.dtype = torch.bfloat16) -> None:
        reader = gguf.GGUFReader(path)
        meta = {name: field.contents() for name, field in reader.fields.items() if name.startswith("llama.")}
        self.layers = int(meta["llama.block_count"])
        self.heads, self.kv_heads = int(meta["llama.attention.head_count"]), int(meta["llama.attention.head_count_kv"])
        self.head = int(meta["llama.embedding_length"]) // self.heads
        self.eps = float(meta["llama.attention.layer_norm_rms_epsilon"])
        self.dtype = dtype
        self.embedding = _tensor(reader, "token_embd.weight")
        self.out_norm = _tensor(reader, "output_norm.weight")
        self.norms = [[_tensor(reader, f"blk.{i}.{n}_norm.weight") for n in ("attn", "ffn")] for i in range(self.layers)]
        generator = torch.Generator().manual_seed(seed)
        self.parameters: dict[str, Tensor] = {}
        self.weights: list[list[Tensor]] = []
        for i in range(self.layers):
            by_name = {name: _tensor(reader, f"blk.{i}.{name}.weight") for name in LINEARS}
            for name, weight in by_name.items():
                bound = weight.shape[1] ** -0.5
                a = torch.empty(RANK, weight.shape[1]).uniform_(-bound, bound, generator=generator)
                self.parameters[f"blk.{i}.{name}.weight.lora_a"] = a.requires_grad_()
                self.parameters[f"blk.{i}.{name}.weight.lora_b"] = torch.zeros(weight.shape[0], RANK).requires_grad_()
            self.weights.append([torch.cat([by_name[name] for name in names]).to(dtype) for names in FUSED])
        angles = torch.outer(
            torch.arange(int(meta["llama.context_length"]), dtype=torch.float64),
            float(meta["llama.rope.freq_base"]) ** (-torch.arange(0, self.head, 2, dtype=torch.float64) / self.head),
        )
        self.rotations = torch.polar(torch.ones_like(angles), angles).to(torch.complex64)

    def _linear(self, x: Tensor, layer: int, fused: int) -> Tensor:
        names = [f"blk.{layer}.{name}.weight" for name in FUSED[fused]]
        a = torch.cat([self.parameters[f"{name}.lora_a"] for name in names])
        b = torch.block_diag(*(self.parameters[f"{name}.lora_b"] for name in names)) * (ALPHA / RANK)
        return _Linear.apply(x, self.weights[layer][fused], a, b)

    def _rotate(self, x: Tensor, rotations: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * rotations.unsqueeze(1)).flatten(-2).to(self.dtype)

    def _attend(self, fused: Tensor, batch: Batch, rotations: Tensor) -> Tensor:
        heads = fused.unflatten(-1, (-1, self.head))
        turned = self._rotate(heads[:, : self.heads + self.kv_heads], rotations)
        group = self.heads // self.kv_heads
        q = turned[:, : self.heads].transpose(0, 1).unsqueeze(0).split(batch.lengths, dim=2)
        k, v = (
            x.repeat_interleave(group, dim=1).transpose(0, 1).unsqueeze(0).split(batch.lengths, dim=2)
            for x in (turned[:, self.heads :], heads[:, self.heads + self.kv_heads :])
        )
        outs = [functional.scaled_dot_product_attention(q[0], k[0], v[0], is_causal=True)]
        for i, mask in enumerate(batch.masks, start=1):
            keys, values = torch.cat([k[0], k[i]], dim=2), torch.cat([v[0], v[i]], dim=2)
            outs.append(functional.scaled_dot_product_attention(q[i], keys, values, attn_mask=mask))
        return torch.cat(outs, dim=2).squeeze(0).transpose(0, 1).flatten(1)

    def logprobs(self, batch: Batch) -> Tensor:
        """Log-softmax over the vocabulary after each item's last token, shape (items, vocabulary)."""
        x = self.embedding[batch.tokens]
        rotations = self.rotations[batch.positions]
        for i in range(self.layers):
            attn_norm, ffn_norm = self.norms[i]
            attended = self._attend(self._linear(_Norm.apply(x, attn_norm, self.eps, self.dtype), i, 0), batch, rotations)
            if i == self.layers - 1:  # after the last attention only the items' last tokens matter
                attended, x = attended[batch.last], x[batch.last]
            x = x + self._linear(attended, i, 1)
            hidden = _SwiGlu.apply(self._linear(_Norm.apply(x, ffn_norm, self.eps, self.dtype), i, 2))
            x = x + self._linear(hidden, i, 3)
        final = _Norm.apply(x, self.out_norm, self.eps, torch.float32)
        return functional.log_softmax(final @ self.embedding.T, dim=-1)
