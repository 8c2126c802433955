"""Gold labels become level indices."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from isograde.datasets import read_rows
from isograde.errors import DataError, UserError


def levels(values: Sequence[Any], **arguments: Any) -> list[float | None]:
    return [row.gold for row in read_rows([{"output": "a", "gold": value} for value in values], **arguments)]


def refused(values: Sequence[Any], **arguments: Any) -> str:
    with pytest.raises(DataError) as caught:
        levels(values, **arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# the rubric's own numbers: 1–5 has index = value − 1; (1, 2, 4): 3 lies half way from index 1 to 2; falling labels likewise
@pytest.mark.parametrize(
    ("labels", "values", "read"),
    [
        ("01234", [0, 2.5, "4", " 3 ", "1e0", True, np.int64(2), np.float32(0.5)], [0, 2.5, 4, 3, 1, 1, 2, 0.5]),
        ("12345", [1, 3, 4.5], [0, 2, 3.5]),
        ("124", [1, 1.5, 2, 3, 4], [0, 0.5, 1, 1.5, 2]),
        ("4321", [4, 1, 2.5], [0, 3, 1.5]),
        ("01", [0, 1, 0.5], [0, 1, 0.5]),
        ("ABCDE", ["A", "E", " C "], [0, 4, 2]),
        ("312", [3, "1", 2], [0, 1, 2]),  # neither rising nor falling: names, not a scale
    ],
)
def test_without_a_scale_the_labels_are_the_scale(labels: str, values: list[Any], read: list[float]) -> None:
    assert levels(values, labels=tuple(labels)) == read


# level = (n−1)·(gold − lo) ÷ (hi − lo)
def test_a_scale() -> None:
    assert levels([0, 0.25, 1], gold_scale=(0, 1)) == [0, 1, 4]
    assert levels([1, 5], gold_scale=(1, 5), labels=("A", "B", "C")) == [0, 2]
    assert levels([50], gold_scale=(0, 100), labels=("1", "2", "3", "4", "5")) == [2]
    assert levels(["-1", "0"], gold_scale=(-1, 1)) == [0, 2]


def test_rounding_at_the_ends_is_forgiven() -> None:
    assert levels([1 + 1e-12, -1e-12], gold_scale=(0, 1)) == [4, 0]


def test_the_rows_scale_comes_before_the_argument_and_the_labels() -> None:
    records = [
        {"gold": 1, "gold_scale": [0, 2]},
        {"gold": 1, "gold_scale": "[0, 4]"},
        {"gold": 1, "gold_scale": np.array([0, 1])},
        {"gold": 1, "gold_scale": None},
        {"gold": 1, "gold_scale": " "},
        {"gold": 1},
    ]
    rows = read_rows(records, gold_scale=(0, 10), labels=("0", "1", "2"))
    assert [row.gold for row in rows] == [1, 0.5, 2, 0.2, 0.2, 0.2]
    assert next(iter(rows)).item.metadata == {}


def test_unlabelled_rows_are_counted() -> None:
    values = [None, float("nan"), "", "  ", "NaN", np.float64("nan"), 3]
    rows = read_rows([{"output": "a", "gold": value} for value in values])
    assert rows.n_unlabelled == 6
    assert [(row.gold, row.raters) for row in rows] == [(None, (None,))] * 6 + [(3, (3,))]
    assert read_rows([{"output": "a"}]).n_unlabelled == 0
    some = read_rows([{"output": "a"}, {"output": "b", "gold": 2}])
    assert (some.n_unlabelled, some.has_gold) == (1, True)


def test_several_raters_in_a_list_or_in_columns() -> None:
    (listed,) = read_rows([{"gold": [0, None, 3, "4"]}])
    assert (listed.raters, listed.gold) == ((0, None, 3, 4), 3)
    records = [{"ann": 1, "bob": "2"}, {"ann": None, "bob": 4}, {"ann": "", "bob": float("nan")}]
    rows = read_rows(records, gold=["ann", "bob"])
    assert [(row.raters, row.gold) for row in rows] == [((1, 2), 1.5), ((None, 4), 4), ((None, None), None)]
    assert (rows.n_unlabelled, next(iter(rows)).item.metadata) == (1, {})
    (array,) = read_rows([{"gold": np.array([3, 4])}])
    assert array.raters == (3, 4)
    (empty,) = read_rows([{"gold": []}])
    assert (empty.raters, empty.gold) == ((), None)


def test_the_gold_column_can_be_named() -> None:
    record = {"output": "a", "label": {"human": 2}, "gold": 4}
    (row,) = read_rows([record], gold="label.human")
    assert (row.gold, row.item.metadata) == (2, {"label": {"human": 2}, "gold": 4})
    (row,) = read_rows([record], columns={"gold": "label.human"})
    assert row.gold == 2
    (row,) = read_rows([{"gold": 1, "range": [0, 2]}], columns={"gold_scale": "range"})
    assert row.gold == 2
    assert read_rows([{"output": "a", "gold_scale": [0, 1]}]).fields == {"output", "gold_scale"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            5,
            "row 1: gold 5 is off the scale 0 … 4; if the labels stand on another scale, say gold_scale=(lo, hi) (--gold-scale LO:HI)",
        ),
        (
            -0.5,
            "row 1: gold -0.5 is off the scale 0 … 4; if the labels stand on another scale, say gold_scale=(lo, hi) (--gold-scale LO:HI)",
        ),
        pytest.param(
            10**400,
            "row 1: gold 10000000000000000000000000000000000000000000000000000000000… is off the scale 0 … 4; "
            "if the labels stand on another scale, say gold_scale=(lo, hi) (--gold-scale LO:HI)",
            id="huge",
        ),
        (
            float("inf"),
            "row 1: gold inf is off the scale 0 … 4; if the labels stand on another scale, say gold_scale=(lo, hi) (--gold-scale LO:HI)",
        ),
        ("3,5", "row 1: gold '3,5' is not a number such as 3 or 3.5"),
        ("1_0", "row 1: gold '1_0' is not a number such as 3 or 3.5"),
        ("NA", "row 1: gold 'NA' is not a number such as 3 or 3.5"),
        ("inf", "row 1: gold 'inf' is not a number such as 3 or 3.5"),
        ("٣", "row 1: gold '٣' is not a number such as 3 or 3.5"),
        (
            "[3, 4]",
            "row 1: gold '[3, 4]' is not a number such as 3 or 3.5; several raters in a text file stand in columns of their own",
        ),
        ({"a": 1}, "row 1: gold must be a number, is a mapping"),
        ([3, [4]], "row 1: gold must be a number, is a list"),
    ],
)
def test_what_is_no_level(value: Any, message: str) -> None:
    assert refused([value]) == message


def test_off_an_explicit_scale() -> None:
    assert refused([3, 12], gold_scale=(0, 10)) == "row 2: gold 12 is off the scale 0 … 10"


@pytest.mark.parametrize("value", ["F", "a", 3, True, Decimal(3), ["A", "F"]])
def test_a_gold_label_that_is_none_of_the_labels(value: Any) -> None:
    said = refused([value], labels=("A", "B", "C"))
    assert (
        "is none of the labels A, B, C; if it is a number, say on which scale: gold_scale=(lo, hi) (--gold-scale LO:HI)" in said
    )


@pytest.mark.parametrize("scale", [[1, 0], [1, 1], [], [0], [0, 1, 2], "0-1", "[0, 1", 3, [0, float("inf")], {"lo": 0}])
def test_a_rows_scale_that_is_none(scale: Any) -> None:
    with pytest.raises(DataError, match=r"^row 1: gold_scale must be two numbers \[lo, hi\]"):
        read_rows([{"gold": 1, "gold_scale": scale}])


@pytest.mark.parametrize("scale", [(1, 0), (0,), "0-1", (0, "x")])
def test_an_argument_that_is_no_scale(scale: Any) -> None:
    with pytest.raises(UserError, match=r"^gold_scale: "):
        read_rows([{"gold": 1}], gold_scale=scale)


def test_values_that_are_all_at_most_one_need_a_scale() -> None:
    said = (
        "all 3 gold values are at most 1 while the rubric's levels go to 4; "
        "is the scale 0–1? say gold_scale=(0, 1) or gold_scale=(0, 4) (--gold-scale 0:1 or 0:4); "
        "a column gold that holds no labels is left unread with gold=[] (score: --no-gold)"
    )
    assert refused([0, 1, None, 0.5]) == said
    assert levels([0, 1, 0.5], gold_scale=(0, 4)) == [0, 1, 0.5]
    assert levels([0, 1, 1.5]) == [0, 1, 1.5]
    assert levels([None, ""]) == [None, None]
    assert levels([0, 1], labels=("0", "1")) == [0, 1]
    assert [row.gold for row in read_rows([{"gold": 1, "gold_scale": [0, 1]}])] == [4]
    assert "go to 5;" in refused([1, 1], labels=tuple("12345"))


def test_a_stream_says_so_at_its_end() -> None:
    rows = iter(read_rows({"output": "a", "gold": value} for value in (0, 1)))
    assert [next(rows).gold, next(rows).gold] == [0, 1]
    with pytest.raises(DataError, match=r"^all 2 gold values are at most 1"):
        next(rows)


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ("glod", "column 'glod' (for gold) is not there; found: output, gold; did you mean 'gold'?"),
        (["gold", "gold"], "gold: must be a column's name, or several different ones, is ['gold', 'gold']"),
        (3, "gold: must be a column's name, or several different ones, is 3"),
    ],
)
def test_a_gold_column_that_is_not_there(gold: Any, message: str) -> None:
    with pytest.raises(UserError) as caught:
        levels([3], gold=gold)
    assert str(caught.value) == message


def test_gold_named_twice() -> None:
    with pytest.raises(UserError, match="named twice"):
        levels([3], gold="gold", columns={"gold": "gold"})


def test_no_column_is_read_where_none_is_asked_for():
    rows = read_rows([{"output": "a", "gold": "not a number"}], gold=[])
    [row] = rows
    assert (row.gold, row.raters, rows.has_gold) == (None, (), False)
    assert row.item.metadata == {"gold": "not a number"}


def test_a_scale_that_is_upside_down_is_named_once() -> None:
    with pytest.raises(UserError) as caught:
        read_rows([{"gold": 1}], gold_scale=(4.0, 0.0))
    assert str(caught.value) == ("gold_scale: must be two numbers [lo, hi] with lo below hi, is (4.0, 0.0) (--gold-scale LO:HI)")
