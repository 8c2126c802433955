"""DataFrames, Datasets, lists, generators, items and rows."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from isograde.datasets import Row, read_rows
from isograde.errors import DataError, UserError
from isograde.records import Item


def test_a_dataframe() -> None:
    pd = pytest.importorskip("pandas", reason="isograde[data]")
    frame = pd.DataFrame(
        {
            "question": ["a", None, "c"],
            "answer": ["null", "NA", "x"],
            "gold": [3.5, float("nan"), 1],
            "n": pd.array([1, None, 3], dtype="Int64"),
            "when": [pd.Timestamp("2026-01-01"), pd.NaT, pd.NaT],
            7: [1, 2, 3],
        },
        index=[5, 5, 5],
    )
    rows = read_rows(frame)
    first, second, third = rows
    assert (rows.n, rows.n_unlabelled, rows.columns) == (3, 1, ("question", "answer", "gold", "n", "when", "7"))
    assert (first.item.input, first.item.output, first.gold, first.line) == ("a", "null", 3.5, None)
    assert first.item.metadata == {"n": 1, "when": pd.Timestamp("2026-01-01"), "7": 1}
    assert (second.item.input, second.item.output, second.gold) == (None, "NA", None)
    assert second.item.metadata == {"n": None, "when": None, "7": 2}
    assert third.item.id == "2"


def test_a_dataframe_in_error() -> None:
    pd = pytest.importorskip("pandas", reason="isograde[data]")
    with pytest.raises(DataError, match=r"^the DataFrame has no rows \(columns: input, output\)$"):
        read_rows(pd.DataFrame({"input": [], "output": []}))
    with pytest.raises(DataError, match=r"^DataFrame: two columns are called 'a'; rename one$"):
        read_rows(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(DataError, match=r"^rows 1 and 2: id 'x' stands twice"):
        read_rows(pd.DataFrame({"id": ["x", "x"], "output": ["a", "b"]}))
    records = pd.DataFrame({"output": ["a", None], "x": [1.0, float("nan")]}).to_dict("records")
    assert [row.item.metadata for row in read_rows(records)] == [{"x": 1.0}, {"x": None}]


def test_a_hugging_face_dataset() -> None:
    datasets = pytest.importorskip("datasets", reason="isograde[huggingface]")
    content = {
        "user_input": ["a", "b"],
        "response": ["c", "d"],
        "retrieved_contexts": [["e"], ["f", "g"]],
        "gold": [[3, 4], [2, 2]],
    }
    made = datasets.Dataset.from_dict(content)
    for form in (made, made.with_format("numpy")):
        rows = read_rows(form)
        assert rows.n == 2
        assert [(row.item.input, row.item.context, row.gold, row.raters) for row in rows] == [
            ("a", ("e",), 3.5, (3, 4)),
            ("b", ("f", "g"), 2, (2, 2)),
        ]
    stream = read_rows(made.to_iterable_dataset())
    assert (stream.n, stream.columns) == (None, ("user_input", "response", "retrieved_contexts", "gold"))
    assert [row.item.output for row in stream] == ["c", "d"]
    assert [row.item.output for row in stream] == ["c", "d"]
    with pytest.raises(UserError, match=r"^a DatasetDict holds several sets; choose one of train, test$"):
        read_rows(datasets.DatasetDict({"train": made, "test": made}))


def test_items_keep_what_they_have() -> None:
    items = [Item(input="a", output="b", id="x", metadata={"answer": "kept", "gold": 3}), Item(input="c", output="d", id="y")]
    rows = read_rows(items)
    assert [(row.item, row.gold, row.raters, row.index) for row in rows] == [(items[0], 3, (3,), 0), (items[1], None, (), 1)]
    assert next(iter(rows)).item is items[0]
    assert rows.fields == {"id", "input", "output", "answer", "gold"}
    assert (rows.has_gold, rows.n_unlabelled) == (True, 1)
    assert [row.item.id for row in read_rows([Item(output="a"), Item(output="b")])] == ["0", "1"]
    with pytest.raises(DataError, match=r"^row 1 \(id 'x'\): a column map is for columns; this row is an Item$"):
        read_rows(items, columns={"output": "answer"})
    with pytest.raises(DataError, match=r"^row 1 \(id 'x'\): gold 9 is off the scale"):
        read_rows([Item(output="a", id="x", metadata={"gold": 9})])


def test_rows_keep_their_gold_and_are_numbered_anew() -> None:
    rows = list(read_rows([{"output": "a", "gold": 1, "gold_scale": [0, 2]}, {"output": "b", "gold": 2, "gold_scale": [0, 2]}]))
    again = read_rows(rows[1:])
    assert list(again) == [Row(item=rows[1].item, gold=4, raters=(4,), index=0)]
    assert (again.has_gold, again.n_unlabelled) == (True, 0)
    assert list(read_rows(read_rows(iter(rows)))) == rows
    with pytest.raises(DataError, match=r"^row 1: gold 5 of a Row is a level index, 0 … 4$"):
        read_rows([Row(item=Item(output="a"), gold=5, index=0)])


def test_a_generator_is_read_row_by_row_and_once() -> None:
    taken = []

    def source() -> Iterator[dict[str, Any]]:
        for number in range(5):
            taken.append(number)
            yield {"id": number, "output": "a", "gold": [3]}

    rows = read_rows(source())
    assert taken == [0]
    assert (rows.n, rows.columns, rows.fields, rows.has_gold) == (None, ("id", "output", "gold"), {"id", "output"}, True)
    iterator = iter(rows)
    assert next(iterator).item.id == "0"
    assert taken == [0]
    assert [row.index for row in iterator] == [1, 2, 3, 4]
    with pytest.raises(UserError, match=r"^a generator can be read only once; make a list of it to read it again$"):
        iter(rows).__next__()


def test_errors_of_a_generator_come_when_met() -> None:
    records = [{"id": "a", "output": "x"}, {"id": "b", "output": "y"}, {"id": "a", "output": "z"}]
    rows = iter(read_rows(iter(records)))
    assert [next(rows).item.id, next(rows).item.id] == ["a", "b"]
    with pytest.raises(DataError, match=r"^rows 1 and 3: id 'a' stands twice; an id names one row$"):
        next(rows)


def test_what_the_first_row_of_a_generator_lacks_is_said_at_once() -> None:
    with pytest.raises(
        DataError, match=r"^column 'respnse' \(for output\) is not there; found: response; did you mean 'response'\?$"
    ):
        read_rows(iter([{"response": "a"}]), columns={"output": "respnse"})
    with pytest.raises(DataError, match=r"^column 'a.b' \(for output\): column 'a' has no such part$"):
        read_rows(iter([{"a": {"c": "x"}}]), columns={"output": "a.b"})
    with pytest.raises(DataError, match=r"^column 'human' \(for gold\) is not there; found: output$"):
        read_rows(iter([Item(output="a")]), gold="human")
    with pytest.raises(DataError, match=r"^row 1: columns 'output' and 'answer' both name"):
        read_rows(iter([{"output": "a", "answer": "b"}]))
    merged = read_rows(iter([{"output": "a", "metadata": {"topic": "x"}}]))
    assert merged.fields == {"output", "topic"}
    assert read_rows(iter([Item(output="a")])).fields == {"id", "input", "output", "expected", "context", "group"}


@pytest.mark.parametrize("row", [("a", "b"), "text", None, 3, ["a"]])
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_no_row(row: Any, stream: bool) -> None:  # noqa: FBT001 - a parametrised flag
    with pytest.raises(DataError, match=r"^row 1: a row is an Item, a Row or a mapping of columns to values, not "):
        read_rows(iter([row]) if stream else [row])


@pytest.mark.parametrize("source", [3, None, b"a.jsonl", Item(output="a"), object()])
def test_what_is_no_source(source: Any) -> None:
    with pytest.raises(UserError, match=r"^rows are read from a path, .*, not from "):
        read_rows(source)


def test_one_mapping_and_nothing() -> None:
    with pytest.raises(UserError, match=r"^a mapping is one row; put it into a list$"):
        read_rows({"output": "a"})
    for nothing in ([], iter([]), ()):
        with pytest.raises(DataError, match=r"^there are no rows$"):
            read_rows(nothing)


def test_what_is_handed_in_is_not_changed() -> None:
    record = {"output": "a", "metadata": {"x": 1}, "gold": [3], "y": float("nan")}
    kept = {"output": "a", "metadata": {"x": 1}, "gold": [3], "y": record["y"]}
    list(read_rows([record]))
    assert record == kept


def test_a_long_generator_needs_no_more_memory_than_a_short_one() -> None:
    def peak(n: int) -> int:
        tracemalloc.start()
        for _ in read_rows({"input": "a" * 500, "output": f"{i}"} for i in range(n)):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(100)
    assert peak(20_000) < peak(200) + 100_000  # 20,000 rows kept would be 10 MB and more


def test_the_import_loads_no_heavy_library() -> None:
    code = "import sys, isograde.datasets; print({'pandas', 'pyarrow', 'datasets', 'scipy', 'sklearn'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"
