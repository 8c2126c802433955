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
    rows : list of slice
        Where the prefix, then each item stands.
    positions : Tensor, shape (n,), int64
        Positions; each item's go on from the prefix.
    last : Tensor, shape (items,), int64
        Index of each item's last token.
    masks : list of Tensor
        Of the prefix, shape (n, n), then of each item, shape (its tokens, prefix + its tokens): 0 where it may look, else −inf.
    """

    tokens: Tensor
    rows: list[slice]
    positions: Tensor
    last: Tensor
    masks: list[Tensor]

    @classmethod
    def pack(cls, prefix: np.ndarray, items: Sequence[np.ndarray]) -> Batch:
        start = len(prefix)
        ends = np.cumsum([start, *map(len, items)]).tolist()
        seen = [torch.full((start, start), -torch.inf).triu_(1)]
        seen += [torch.full((len(item), start + len(item)), -torch.inf).triu_(start + 1) for item in items]
        positions = np.concatenate([np.arange(start), *(start + np.arange(len(item)) for item in items)])
        return cls(
            tokens=torch.from_numpy(np.concatenate([prefix, *items]).astype(np.int64)),
            rows=[slice(a, b) for a, b in zip([0, *ends], ends, strict=False)],
            positions=torch.from_numpy(positions),
            last=torch.tensor(ends[1:]) - 1,
            masks=seen,
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


class _Attention(torch.autograd.Function):
    """Each item looks at the prefix and, causally, at itself; query heads of a group share their keys in one product."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, batch: Batch) -> Tensor:
        queries, keys, values = (_by_kv_head(x, k.shape[1]) for x in (q, k, v))
        out, weights = torch.empty_like(queries), []
        for rows, mask in zip(batch.rows, batch.masks, strict=True):
            key, value = _visible(keys, rows, batch.rows[0]), _visible(values, rows, batch.rows[0])
            asked = queries[:, :, rows].flatten(1, 2)
            scores = torch.bmm(asked, key.transpose(1, 2)).float().mul_(q.shape[-1] ** -0.5)
            scores.unflatten(1, (-1, mask.shape[0])).add_(mask)
            weight = scores.softmax(-1).to(q.dtype)
            out[:, :, rows] = torch.bmm(weight, value).unflatten(1, (-1, mask.shape[0]))
            weights.append(weight)
        ctx.save_for_backward(queries, keys, values, *weights)
        ctx.batch = batch
        return out.flatten(0, 1).transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:  # type: ignore[override]
        queries, keys, values, *weights = ctx.saved_tensors
        batch, scale = ctx.batch, queries.shape[-1] ** -0.5
        grads = _by_kv_head(grad, keys.shape[0])
        grad_q, grad_k, grad_v = torch.empty_like(queries), torch.zeros_like(keys), torch.zeros_like(values)
        first = batch.rows[0]
        for rows, weight in zip(batch.rows, weights, strict=True):
            key, value = _visible(keys, rows, first), _visible(values, rows, first)
            asked, back = queries[:, :, rows].flatten(1, 2), grads[:, :, rows].flatten(1, 2)
            inner = torch.bmm(back, value.transpose(1, 2))
            inner = torch.ops.aten._softmax_backward_data(inner, weight, -1, weight.dtype).mul_(scale)  # noqa: SLF001 - the fused kernel has no public name
            grad_q[:, :, rows] = torch.bmm(inner, key).unflatten(1, (-1, rows.stop - rows.start))
            for total, part in (
                (grad_k, torch.bmm(inner.transpose(1, 2), asked)),
                (grad_v, torch.bmm(weight.transpose(1, 2), back)),
            ):
                total[:, rows] += part[:, -(rows.stop - rows.start) :]
                if rows is not first:
                    total[:, first] += part[:, : first.stop]
        return grad_q.flatten(0, 1).transpose(0, 1), grad_k.transpose(0, 1), grad_v.transpose(0, 1), None


def _by_kv_head(x: Tensor, kv_heads: int) -> Tensor:
    """(n, heads, d) to (kv heads, n, d), or (kv heads, group, n, d) where several heads share one."""
    x = x.transpose(0, 1)
    return (x if x.shape[0] == kv_heads else x.unflatten(0, (kv_heads, -1))).contiguous()


def _visible(x: Tensor, rows: slice, first: slice) -> Tensor:
    """What an item sees: the prefix and itself."""
    return x[:, rows] if rows is first else torch.cat([x[:, first], x[:, rows]], dim=1)


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

    def load(self, adapter: Path) -> None:
        """Take LoRA's parameters from a GGUF adapter."""
        for tensor in gguf.GGUFReader(adapter).tensors:
            values = torch.from_numpy(np.array(tensor.data, dtype=np.float32))
            assert values.shape == self.parameters[tensor.name].shape
            self.parameters[tensor.name] = values

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
        q, k = self._rotate(heads[:, : self.heads + self.kv_heads], rotations).split([self.heads, self.kv_heads], dim=1)
        return _Attention.apply(q, k, heads[:, self.heads + self.kv_heads :], batch).flatten(1)

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
