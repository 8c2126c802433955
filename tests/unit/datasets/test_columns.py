"""Which column feeds which field."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from isograde.datasets import read_rows
from isograde.errors import UserError
from isograde.records import Item


def item_of(record: Mapping[str, Any], **arguments: Any) -> Item:
    (row,) = read_rows([record], **arguments)
    return row.item


def refused(*records: Mapping[str, Any], **arguments: Any) -> str:
    with pytest.raises(UserError) as caught:
        read_rows(list(records), **arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# column names as each tool's documentation gives them
@pytest.mark.parametrize(
    ("names", "context"),
    [
        (("input", "output", "expected"), "context"),
        (("user_input", "response", "reference"), "retrieved_contexts"),  # RAGAS
        (("question", "answer", "ground_truth"), "contexts"),  # RAGAS v1
        (("question", "answer", "ground_truths"), "contexts"),
        (("query", "response", "expected_response"), "context"),  # Athina
        (("query", "response", "ground_truth"), "context"),  # Azure
        (("inputs", "outputs", "reference_outputs"), "context"),  # openevals
        (("input", "actual_output", "expected_output"), "retrieval_context"),  # DeepEval
    ],
)
def test_the_neighbours_names_are_known(names: tuple[str, str, str], context: str) -> None:
    asked, given, wanted = names
    rows = read_rows([{asked: "a", given: "b", wanted: ["c", "d"], context: ["e"], "lang": "de", "id": "x", "group": 7}])
    (row,) = rows
    assert row.item == Item(
        input="a", output="b", expected=("c", "d"), context=("e",), id="x", group="7", metadata={"lang": "de"}
    )
    assert rows.fields == {"input", "output", "expected", "context", "id", "group", "lang"}
    assert rows.columns == (asked, given, wanted, context, "lang", "id", "group")


def test_two_columns_for_one_field_need_a_choice() -> None:
    record = {"input": "a", "output": "b", "response": "c"}
    said = "row 1: columns 'output' and 'response' both name the field 'output'; choose one, "
    assert refused(record) == said + "as in --column output=response (columns={'output': 'response'})"
    item = item_of(record, columns={"output": "response"})
    assert (item.output, item.metadata) == ("c", {"output": "b"})


def test_two_columns_for_one_field_in_different_rows_need_a_choice_too() -> None:
    said = refused({"input": "a", "output": "b"}, {"input": "a", "answer": "c"})
    assert said.startswith("row 2: columns 'output' and 'answer' both name the field 'output'")


def test_paths_literal_names_and_functions() -> None:
    record = {"q": {"text": "a", "parts": [{"t": "b"}, {"t": "c"}]}, "q.text": "literal", "n": 3}
    item = item_of(
        record,
        columns={
            "input": "q.text",
            "output": "q.parts.1.t",
            "expected": lambda row: f"n={row['n']}",
            "topic": "q.parts.0.t",
            "size": "n",
        },
    )
    assert (item.input, item.output, item.expected) == ("literal", "c", "n=3")
    assert item.metadata == {"q": {"text": "a", "parts": [{"t": "b"}, {"t": "c"}]}, "topic": "b", "size": 3}


def test_a_part_that_one_row_lacks_is_none() -> None:
    rows = read_rows([{"q": {"t": "a"}}, {"q": None}, {"q": {}}, {}], columns={"input": "q.t"})
    assert [row.item.input for row in rows] == ["a", None, None, None]


def test_a_column_that_one_row_lacks_is_none() -> None:
    rows = read_rows([{"output": "a"}, {"input": "b", "output": None}])
    assert [(row.item.input, row.item.output) for row in rows] == [(None, "a"), ("b", None)]
    assert rows.fields == {"input", "output"}
    assert "expected" not in rows.fields


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"output": "respnse"}, "column 'respnse' (for output) is not there; found: input, response; did you mean 'response'?"),
        ({"output": "zzz"}, "column 'zzz' (for output) is not there; found: input, response"),
        ({"output": "response.txt"}, "column 'response.txt' (for output): column 'response' has no such part"),
        ({"output": 3}, "columns: 'output': 3: must be a field and a column's name, a path or a function"),
        ({"output": ""}, "columns: 'output': '': must be a field and a column's name, a path or a function"),
        ("output=response", "columns: must be a mapping of fields to columns, is a text"),
        ({"expected": lambda row: row["x"]}, "row 1: field 'expected': the column map's function raised KeyError: \"'x'\""),
    ],
)
def test_a_map_that_does_not_fit(columns: Any, message: str) -> None:
    assert refused({"input": "a", "response": "b"}, columns=columns) == message


def test_a_column_given_to_one_text_does_not_feed_another_unasked() -> None:
    rows = read_rows([{"input": "a", "response": "b", "model": "c"}], columns={"expected": "response"})
    assert next(iter(rows)).item == Item(input="a", expected="b", id="0", metadata={"model": "c"})
    assert "output" not in rows.fields
    rows = read_rows([{"input": "a", "output": "b", "ground_truth": 3}], gold="ground_truth")
    assert (next(iter(rows)).item.expected, next(iter(rows)).gold) == (None, 3)


def test_a_column_can_be_a_text_and_a_group() -> None:
    item = item_of({"question": "a", "answer": "b"}, columns={"group": "question"})
    assert (item.input, item.group, item.metadata) == ("a", "a", {})


def test_metadata_is_merged_and_a_column_wins() -> None:
    rows = read_rows([{"output": "a", "metadata": {"topic": "x", "lang": "de"}, "lang": "en"}])
    assert next(iter(rows)).item.metadata == {"topic": "x", "lang": "en"}
    assert rows.fields == {"output", "topic", "lang"}
    assert item_of({"output": "a", "metadata": "note"}).metadata == {"metadata": "note"}
    assert item_of({"output": "a", "metadata": None}).metadata == {}
    assert item_of({"output": "a", "more": {"x": 1}}, columns={"metadata": "more"}).metadata == {"x": 1}


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (42, "42"),
        (True, "true"),
        (1.5, "1.5"),
        (1e22, "1e+22"),
        (Decimal("1.50"), "1.50"),
        (np.int64(7), "7"),
        (np.bool_(False), "false"),  # noqa: FBT003 - NumPy's constructor
        (np.float32(0.5), "0.5"),
        (np.float32("nan"), None),
        (float("nan"), None),
        (None, None),
        (" a ", " a "),
    ],
)
def test_numbers_and_booleans_become_their_json_text(value: Any, read: str | None) -> None:
    assert item_of({"output": value, "x": 1}).output == read


def test_lists_of_texts() -> None:
    item = item_of({"output": "a", "expected": [42, "x", True], "context": np.array(["c", "d"])})
    assert (item.expected, item.context) == (("42", "x", "true"), ("c", "d"))
    assert item_of({"output": "a", "expected": []}).expected is None


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (
            {"id": "q", "outputs": {"text": "a", "n": 1}},
            (
                "row 1 (id 'q'): field 'output': must be text, is a mapping with the keys text, n; "
                "name a part of it, as in --column output=outputs.text (columns={'output': 'outputs.text'})"
            ),
        ),
        (
            {"input": ["a"]},
            (
                "row 1: field 'input': must be text, is a list; "
                "name a part of it, as in --column input=input.0 (columns={'input': 'input.0'})"
            ),
        ),
        ({"output": datetime(2026, 1, 1, tzinfo=UTC)}, "row 1: field 'output': must be text, is of type datetime"),
        ({"output": b"a"}, "row 1: field 'output': must be text, is of type bytes"),
        ({"output": float("inf")}, "row 1: field 'output': must be text, is inf"),
        ({"output": 10**5000}, "row 1: field 'output': must be text, is a number of thousands of digits"),
        ({"output": {}}, "row 1: field 'output': must be text, is a mapping"),
        (
            {"expected": ["a", {"b": 1}]},
            (
                "row 1: field 'expected': entry 1 of the list: must be text, is a mapping; "
                "name a part of it, as in --column expected=expected.0 (columns={'expected': 'expected.0'})"
            ),
        ),
        ({"expected": ["a", None]}, None),
        ({1: "a"}, "row 1: a column's name must be text: 1"),
    ],
)
def test_what_is_no_text_is_named_with_the_way_out(record: Mapping[str, Any], message: str | None) -> None:
    said = refused(record)
    assert said == message if message else "entry 1 of the list is null; leave it out" in said


def test_many_columns_are_not_all_listed() -> None:
    said = refused({f"c{i}": "a" for i in range(50)}, columns={"output": "zzz"})
    assert said.endswith("c28, c29 and 20 more")


def test_rows_of_ever_new_columns_do_not_pile_up() -> None:
    rows = read_rows([{"output": "a", f"c{i}": i} for i in range(2500)])
    assert [row.item.metadata for row in rows][2400] == {"c2400": 2400}
    assert len(rows._columns._plans) <= 1000
