"""Any text survives a file, and no file raises anything but our own errors."""

from __future__ import annotations

import csv
import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isograde.datasets import read_rows
from isograde.errors import IsogradeError

anything = st.text(st.characters(exclude_categories=["Cs"]))
awkward = st.text("\r\n\t\",;'\\\0\ufeff\u2028\u0085 aN{}[]:0")
texts = anything | awkward
pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=5)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["input", "output", "expected", "id", "gold", "gold_scale", "metadata", "answer", "context", "x", "a.b"])


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@given(pairs, st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]), st.booleans(), st.sampled_from(["\n", "\r\n"]))
@settings(deadline=None)
def test_texts_survive_jsonl(folder: Path, pairs: list[tuple[str, str]], encoding: str, ascii_only: bool, end: str) -> None:  # noqa: FBT001
    path = folder / "a.jsonl"
    lines = [json.dumps({"input": a, "output": b}, ensure_ascii=ascii_only) for a, b in pairs]
    path.write_bytes("".join(line + end for line in lines).encode(encoding))
    rows = list(read_rows(path))
    assert [(row.item.input, row.item.output) for row in rows] == pairs
    assert [row.line for row in rows] == list(range(1, len(pairs) + 1))


@given(pairs, st.integers(0, 2))
@settings(deadline=None)
def test_texts_survive_json(folder: Path, pairs: list[tuple[str, str]], indent: int) -> None:
    path = folder / "a.json"
    path.write_text(json.dumps([{"input": a, "output": b} for a, b in pairs], indent=indent or None))
    assert [(row.item.input, row.item.output) for row in read_rows(path)] == pairs


@given(pairs, st.sampled_from([("a.csv", ","), ("a.tsv", "\t"), ("a.csv.gz", ",")]), st.sampled_from(["\n", "\r\n"]))
@settings(deadline=None)
def test_texts_survive_csv(folder: Path, pairs: list[tuple[str, str]], kind: tuple[str, str], end: str) -> None:
    name, delimiter = kind
    path = folder / name
    with (
        gzip.open(path, "wt", encoding="utf-8", newline="")
        if name.endswith(".gz")
        else path.open("w", encoding="utf-8", newline="") as out
    ):
        writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
        writer.writerows([("input", "output"), *pairs])
    assert [(row.item.input, row.item.output) for row in read_rows(path)] == pairs


@given(
    st.binary() | texts.map(str.encode) | texts.map(lambda text: b"input,output,gold\n" + text.encode()),
    st.sampled_from([".jsonl", ".json", ".csv", ".tsv", ".jsonl.gz", ".csv.gz"]),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_no_bytes_raise_a_stranger(folder: Path, content: bytes, suffix: str, packed: bool) -> None:  # noqa: FBT001
    path = folder / f"b{suffix}"
    path.write_bytes(gzip.compress(content)[: -1 if packed and len(content) % 3 == 0 else None] if packed else content)
    _only_our_errors(path)


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_no_bytes_raise_a_stranger_in_parquet(folder: Path, content: bytes) -> None:
    pytest.importorskip("pyarrow", reason="isograde[data]")
    path = folder / "c.parquet"
    path.write_bytes(b"PAR1" + content + b"PAR1")
    _only_our_errors(path)


@given(
    st.lists(st.dictionaries(names, json_values, max_size=6), max_size=4),
    st.none() | st.dictionaries(names, names | st.sampled_from(["x.0", "metadata.a", "input.0.x"]), max_size=3),
    st.none() | names | st.lists(names, max_size=2),
    st.sampled_from([None, (0, 1), (0, 100)]),
    st.sampled_from(["01234", "ABC", "54321"]),
)
@settings(max_examples=300, deadline=None)
def test_no_values_raise_a_stranger(records: list[dict[str, Any]], columns: Any, gold: Any, scale: Any, labels: str) -> None:
    for source in (records, iter(records)):
        try:
            rows = list(read_rows(source, columns=columns, gold=gold, gold_scale=scale, labels=tuple(labels)))
        except IsogradeError as error:
            assert len(str(error).splitlines()) == 1
        else:
            assert [row.index for row in rows] == list(range(len(records)))
            assert all(row.gold is None or 0 <= row.gold <= len(labels) - 1 for row in rows)


def _only_our_errors(path: Path) -> None:
    try:
        rows = read_rows(path)
    except IsogradeError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert len(list(rows)) == rows.n
