"""Files of every kind: what they hold comes out unchanged, and what is broken is named in one line before any row comes out."""

from __future__ import annotations

import builtins
import csv
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from isograde.datasets import Row, read_rows
from isograde.errors import DataError, UserError


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def refused(path: Path | str, **arguments: Any) -> str:
    """The error's text, which is one line that begins with the file's name."""
    with pytest.raises(UserError) as caught:
        read_rows(path, **arguments)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert len(message) < len(str(path)) + 320
    return message.removeprefix(str(path))


def rows_of(path: Path) -> list[Row]:
    return list(read_rows(path))


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz", "A.JSONL"])
def test_jsonl_keeps_every_line_separator_that_is_not_a_line_feed(tmp_path: Path, name: str) -> None:
    lines = '{"input": "a\u2028b\u0085c\u000bd", "output": "x"}\r\n\n   \n{"input": "e", "output": "y\\r\\n"}'.replace(
        "\u000b", "\\u000b"
    )
    rows = read_rows(write(tmp_path, name, lines))
    assert rows.n == 2
    assert [(row.item.input, row.item.output, row.line, row.index, row.item.id) for row in rows] == [
        ("a\u2028b\u0085c\u000bd", "x", 1, 0, "0"),
        ("e", "y\r\n", 4, 1, "1"),
    ]


def test_files_can_be_read_again(tmp_path: Path) -> None:
    rows = read_rows(str(write(tmp_path, "a.jsonl", '{"input": "a", "output": "b"}\n')))
    assert list(rows) == list(rows)
    assert (rows.columns, rows.fields, rows.has_gold, rows.n_unlabelled) == (("input", "output"), {"input", "output"}, False, 0)


def test_json_is_a_list_of_objects_with_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", '\n[\n  {"input": "a",\n "output": "b"},\n\n  {"input": "c", "output": "d"}\n]\n')
    assert [(row.item.input, row.line) for row in rows_of(path)] == [("a", 3), ("c", 6)]


def test_csv_follows_rfc_4180(tmp_path: Path) -> None:
    content = '\ufeffinput, output ,note\r\n"one, ""two""\r\nthree",null,NA\r\n\r\nNone,,nan\r\n'
    rows = rows_of(write(tmp_path, "a.csv", content))
    assert [(row.item.input, row.item.output, row.item.metadata, row.line) for row in rows] == [
        ('one, "two"\r\nthree', "null", {"note": "NA"}, 2),
        ("None", "", {"note": "nan"}, 5),
    ]


def test_tsv_is_separated_by_tabs(tmp_path: Path) -> None:
    rows = rows_of(write(tmp_path, "a.tsv.gz", 'input\toutput\na, b\t"c\td"\n'))
    assert (rows[0].item.input, rows[0].item.output) == ("a, b", "c\td")


def test_an_empty_cell_of_an_optional_field_is_absent(tmp_path: Path) -> None:
    rows = rows_of(write(tmp_path, "a.csv", "id,group,context,gold,input,output,expected\n,,,,,,\n"))
    assert rows == [
        Row(item=rows[0].item, gold=None, raters=(None,), line=2, index=0),
    ]
    item = rows[0].item
    assert (item.id, item.group, item.context, item.input, item.output, item.expected) == ("0", None, None, "", "", "")


def test_a_single_column_keeps_its_empty_cells(tmp_path: Path) -> None:
    assert [row.item.output for row in rows_of(write(tmp_path, "a.csv", 'output\na\n""\n  \nb\n'))] == ["a", "", "  ", "b"]


def test_a_cell_may_be_longer_than_the_csv_module_allows_by_default(tmp_path: Path) -> None:
    long = "x" * 200_000
    csv.field_size_limit(131_072)
    assert rows_of(write(tmp_path, "a.csv", f"input,output\n{long},b\n"))[0].item.input == long


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be-bom"])
def test_encodings(tmp_path: Path, name: str, encoding: str) -> None:
    content = "input,output\nÜ😀,b\n" if name.endswith("csv") else '{"input": "Ü😀", "output": "b"}\n'
    raw = b"\xfe\xff" + content.encode("utf-16-be") if encoding == "utf-16-be-bom" else content.encode(encoding)
    assert rows_of(write(tmp_path, name, raw))[0].item.input == "Ü😀"


def test_nul_is_text_in_csv(tmp_path: Path) -> None:
    assert rows_of(write(tmp_path, "a.csv", "input,output\na\0b,c\n"))[0].item.input == "a\0b"


def test_nan_and_infinity_in_json_are_absent(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "a.jsonl",
        '{"input": NaN, "output": "b", "gold": NaN, "x": -Infinity}\n{"input": "c", "output": "d", "gold": 3}\n',
    )
    rows = read_rows(path)
    first, second = rows
    assert (first.item.input, first.gold, first.item.metadata) == (None, None, {"x": None})
    assert (second.gold, rows.n_unlabelled) == (3, 1)


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="isograde[data]")
    from pyarrow import parquet

    table = pa.table(
        {
            "question": ["a", "b\u2028", None] * 200,
            "response": ["c", "null", "NA"] * 200,
            "reference": [["d", "e"], ["f"], []] * 200,
            "answer": [{"text": "t"}] * 600,
            "gold": [1.5, float("nan"), None] * 200,
            "x": [float("nan"), 1.0, 2.0] * 200,
        }
    )
    path = tmp_path / "a.parquet"
    parquet.write_table(table, path)
    rows = read_rows(path, columns={"output": "answer.text"})
    assert (rows.n, rows.n_unlabelled) == (600, 400)
    first, second, third = list(rows)[:3]
    assert (first.item.input, first.item.output, first.item.expected, first.gold, first.line) == ("a", "t", ("d", "e"), 1.5, None)
    assert first.item.metadata == {"response": "c", "answer": {"text": "t"}, "x": None}
    assert (second.item.input, second.item.expected, second.gold, second.index) == ("b\u2028", ("f",), None, 1)
    assert (third.item.input, third.item.expected, third.gold) == (None, None, None)
    packed = write(tmp_path, "b.parquet.gz", path.read_bytes())
    assert list(read_rows(packed, columns={"output": "answer.text"})) == list(rows)


def test_parquet_in_error(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="isograde[data]")
    from pyarrow import parquet

    parquet.write_table(pa.table({"input": pa.array([], pa.string())}), tmp_path / "empty.parquet")
    assert refused(tmp_path / "empty.parquet") == ": no rows (columns: input)"
    assert refused(write(tmp_path, "broken.parquet", b"PAR1 no")).startswith(": not readable as Parquet: ")
    parquet.write_table(pa.table({"id": ["a", "b", "a"], "output": ["x", "y", "z"]}), tmp_path / "ids.parquet")
    assert refused(tmp_path / "ids.parquet") == ", rows 1 and 3: id 'a' stands twice; an id names one row"


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    path = write(tmp_path, "a.parquet", b"PAR1")
    monkeypatch.setattr(builtins, "__import__", without)
    assert refused(path) == ': reading Parquet needs pyarrow: pip install "isograde[data]"'


GOOD = '{"input": "a", "output": "b"}\n'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", "", ": the file is empty; there are no rows"),
        ("a.jsonl", " \n\n", ": the file is nothing but blanks; there are no rows"),
        ("a.jsonl.gz", "", ": the file is empty; there are no rows"),
        ("a.json", "", ": the file is empty; there are no rows"),
        ("a.json", " \n ", ": the file is nothing but blanks; there are no rows"),
        ("a.json", "[ ]", ": the list is empty; there are no rows"),
        ("a.csv", "", ": the file is empty; there are no rows"),
        ("a.csv", "\n \n", ": the file is nothing but blanks; there are no rows"),
        ("a.csv", "input,output\n", ": a header and no rows (columns: input, output)"),
        ("a.txt", "x", ": unknown kind of file; read are .jsonl, .ndjson, .json, .csv, .tsv, .parquet, each also with .gz"),
        ("a.gz", "x", ": unknown kind of file; read are .jsonl, .ndjson, .json, .csv, .tsv, .parquet, each also with .gz"),
        ("a.jsonl", GOOD + '{"input": "a" "output"}\n', ", line 2: not JSON: Expecting ',' delimiter (column 15)"),
        ("a.jsonl", GOOD + "\n[1]\n", ', line 3: must be an object such as {"input": …, "output": …}, is a list'),
        ("a.jsonl", "null\n", ', line 1: must be an object such as {"input": …, "output": …}, is null'),
        ("a.jsonl", '{"output": "a", "output": "b"}\n', ", line 1: key 'output' stands twice in one object"),
        ("a.jsonl", "[" * 100_000, ", line 1: not readable: nested too deeply"),
        ("a.jsonl", '{"x": ' + "1" * 5000 + "}", ", line 1: not readable: a number has thousands of digits"),
        ("a.jsonl", '{"input": "a\0"}', ", line 1: not JSON: Invalid control character at (column 13)"),
        ("a.json", GOOD, ": must be a list of objects [{…}, {…}]; objects that stand one a line belong into a .jsonl file"),
        ("a.json", "3", ": must be a list of objects [{…}, {…}]"),
        ("a.json", '[\n{"output": "a"}\n{"output": "b"}]', ", line 3: not JSON: ',' or ']' is due, not '{'"),
        ("a.json", '[\n{"output": "a"}', ", line 2: not JSON: ',' or ']' is due, not the end of the file"),
        ("a.json", '[{"output": "a"}]\n]', ", line 2: not JSON: nothing after the list is due, not ']'"),
        ("a.json", '[{"output": "a"},\n]', ", line 2: not JSON: Expecting value (column 1)"),
        ("a.json", '[{"output": "a"},\n"b"]', ', line 2: must be an object such as {"input": …, "output": …}, is a text'),
        ("a.json", '[{"id": "x"}, {"id": "x"}]', ", lines 1 and 1: id 'x' stands twice; an id names one row"),
        (
            "a.csv",
            "input,output\na,b\nc,d,e\n",
            (
                ", line 3: 3 cell(s), but 2 column(s): input, output; "
                "a text that holds separators, quotes or line breaks stands in double quotes"
            ),
        ),
        (
            "a.csv",
            'input,output\n"a\nb",c\nd\n',
            (
                ", line 4: 1 cell(s), but 2 column(s): input, output; "
                "a text that holds separators, quotes or line breaks stands in double quotes"
            ),
        ),
        ("a.csv", 'input,output\na,b\n"c,d\ne,f\n', ", line 3: a quote is never closed"),
        ("a.csv", 'input,output\n"a"b,c\n', """, line 2: ',' expected after '"'"""),
        ("a.csv", "input,input\na,b\n", ": two columns are called 'input'; rename one"),
        ("a.csv", "in;out\na;b\n", ": the header is one column, 'in;out'; save the file with commas between the cells"),
        ("a.tsv", "input,output\na,b\n", ": the header is one column, 'input,output'; save the file with tabs between the cells"),
        ("a.csv", "i\0n\0,o\0\na,b\n", ": the header holds NUL characters; save the file as UTF-8"),
        ("a.jsonl", GOOD.encode() + b'{"input": "\xe4"}\n', ", line 2: not UTF-8 (byte 0xe4 at offset 41); save it as UTF-8"),
        ("a.csv", b"input,output\na,b\nc,\xff\n", ", line 3: not UTF-8 (byte 0xff at offset 19); save it as UTF-8"),
        ("a.csv", b"\xff\xfea\x00\x00", ": begins as UTF-16 but goes on as something else; save it as UTF-8"),
        ("a.jsonl", gzip.compress(GOOD.encode()), ": is packed with gzip; let its name end in .gz"),
    ],
)
def test_what_is_broken_is_named(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    assert refused(write(tmp_path, name, content)) == message


def test_broken_gzip(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(b'{"input": "a"}')
    assert refused(tmp_path / "a.jsonl.gz").startswith(": broken gzip: Not a gzipped file")
    whole = gzip.compress(os.urandom(1000) + GOOD.encode())
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress((GOOD * 1000).encode())[:-9])
    assert refused(tmp_path / "b.jsonl.gz").startswith(": broken gzip: ")
    (tmp_path / "c.jsonl.gz").write_bytes(whole[:-20])
    assert refused(tmp_path / "c.jsonl.gz")


def test_places_that_are_no_file(tmp_path: Path) -> None:
    assert refused(tmp_path) == ": is a folder; name one file in it"
    assert refused(tmp_path / "none.jsonl") == ": no such file"
    assert refused(str(tmp_path / ("x" * 300 + ".jsonl"))) == ": File name too long"
    with pytest.raises(DataError, match="null byte"):
        read_rows("a\0.jsonl")


def test_duplicate_ids_are_found_before_the_first_row_and_both_lines_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", "".join(json.dumps({"id": i, "output": "a"}) + "\n" for i in [1, 2, 3, "1"]))
    assert refused(path) == ", lines 1 and 4: id '1' stands twice; an id names one row"


def test_ids_for_all_or_none(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "id,output\nx,a\n,b\n")
    assert refused(path) == f", line 3: has no id, but {path}, line 2 has one; give every row an id, or none"
    path = write(tmp_path, "b.jsonl", '{"output": "a"}\n{"output": "a", "id": 7}\n')
    assert refused(path) == f", line 2 (id '7'): has an id, but {path}, line 1 has none; give every row an id, or none"


# rows as the folder's README counts them; the first row's level is 4·(gold − lo) ÷ (hi − lo) by hand
@pytest.mark.parametrize(
    ("name", "n", "first"),
    [
        ("saf2_en", 2981, 4.0),
        ("saf1_de", 2407, None),
        ("scientsbank_3way", 10804, 4.0),
        ("evouna_nq", 15094, 4.0),
        ("evouna_tq", 9690, 4.0),
        ("beetle_3way", 5199, 4.0),
        ("roscoe", 1512, 4.0),
        ("wmt23_zhen", 3000, 4 * 78 / 100),
        ("recipe", 312, None),
        ("llm_rubric_real", 1701, 4 * (3 - 1) / (4 - 1)),
        ("llm_rubric_synth", 1810, 4 * (3.666667 - 1) / (4 - 1)),
    ],
)
def test_the_shared_sets_read(shared_data: Path, name: str, n: int, first: float | None) -> None:
    rows = read_rows(shared_data / f"{name}.jsonl.gz")
    row = next(iter(rows))
    assert (rows.n, rows.n_unlabelled, rows.has_gold) == (n, 0, True)
    assert first is None or row.gold == pytest.approx(first)
    assert "gold" not in row.item.metadata
    if name.startswith("llm_rubric"):
        assert (row.item.input, row.item.output) == (None, None)


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_spreadsheet_that_writes_no_commas(tmp_path, mark):
    table = [('"id"', "output", "note"), ("a", '"x, y"', "1,5"), ("b", f'"x{mark}y"', "")]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(mark.join(cells) for cells in table), encoding="utf-8-sig")
    read = [(row.key, row.item.output, row.item.metadata["note"], row.line) for row in read_rows(path)]
    assert read == [("a", "x, y", "1,5", 2), ("b", f"x{mark}y", "", 3)]


def test_commas_come_first(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,input;output,output\na,b,c\n", encoding="utf-8")
    assert [row.item.output for row in read_rows(path)] == ["c"]
