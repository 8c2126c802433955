"""The labelling sheet: drawn by group, blind, safe in a spreadsheet, and the same when it comes back."""

import csv

import pytest

from isograde import Item, load_rubric
from isograde.datasets import read_rows
from isograde.errors import DataError
from isograde.runs.sample import draw, labelled, unguarded, write_sheet

RUBRIC = load_rubric("answer_correctness")
HOSTILE = ["=1+1", "'=1+1", "''", "'", "-5", "+x", "@x", "\t=x", " =x", "plain", "a\nb", "🙂", "'plain", '"q"']


def rows_of(n, groups):
    return read_rows([Item(id=str(i), group=f"g{i % groups}", input="q", output=f"a{i}", expected="e") for i in range(n)])


@pytest.mark.parametrize(("n", "expected"), [(3, 1), (5, 1), (8, 2), (10, 2), (100, 20)])
def test_groups_give_in_turn(n, expected):
    drawn = [row for row, _ in draw(rows_of(100, 5), n)]
    assert len(drawn) == n
    per_group = [sum(row.item.group == f"g{g}" for row in drawn) for g in range(5)]
    assert max(per_group) == expected
    assert max(per_group) - min(per_group) <= 1
    assert [row.index for row in drawn] == sorted(row.index for row in drawn)


def test_the_draw_is_fixed_by_its_seed_and_every_row_can_be_drawn():
    rows = rows_of(12, 4)
    assert draw(rows, 4, rng=1) == draw(rows, 4, rng=1)
    seen = {row.index for rng in range(60) for row, _ in draw(rows, 4, rng=rng)}
    assert seen == set(range(12))


def test_each_row_s_probability_is_known():
    # groups of 1, 2 and 5 rows, four drawn: one of each in a first round, the fourth from one of the two with more
    rows = read_rows([Item(id=str(i), group="abbccccc"[i], input="q", output="a", expected="e") for i in range(8)])
    counts, drawn = [0] * 8, {}
    for rng in range(2000):
        for row, probability in draw(rows, 4, rng=rng):
            counts[row.index] += 1
            drawn[row.index] = probability
    expected = [1.0, 0.75, 0.75, *[1.5 / 5] * 5]
    assert [drawn[i] for i in range(8)] == pytest.approx(expected)
    # 2,000 draws: the standard error of a share is at most 0.011
    assert [count / 2000 for count in counts] == pytest.approx(expected, abs=0.045)


def test_more_than_there_are():
    assert len(draw(rows_of(3, 3), 50)) == 3


def test_a_sheet_comes_back_as_it_was(tmp_path):
    path = tmp_path / "sheet.csv"
    items = [
        Item(id=f"{i}{text}", group=text, input=text or "q", output=text, expected=(text, "other") if i % 2 else text)
        for i, text in enumerate(HOSTILE)
    ]
    write_sheet([(row, 1.0) for row in read_rows(items)], RUBRIC, path, n_raters=2)
    with path.open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    assert not any(cell.lstrip(" ").startswith(("=", "+", "-", "@")) for row in table for cell in row.values())
    assert {"rater_1", "rater_2"} <= set(table[0])
    assert "score" not in table[0]
    back = [row.item for row in unguarded(read_rows(path, gold=["rater_1", "rater_2"]))]
    for one, other in zip(items, back, strict=True):
        assert (other.id, other.group, other.input, other.output) == (one.id, one.group, one.input, one.output)
        assert other.references == one.references


def test_labels_are_read_back_on_the_rubrics_scale(tmp_path):
    path = tmp_path / "sheet.csv"
    write_sheet(draw(rows_of(4, 4), 4), RUBRIC, path, n_raters=2)
    text = path.read_text(encoding="utf-8-sig").splitlines()
    filled = [text[0]] + [
        line.replace(",,,", f",{a},{b},", 1) for line, (a, b) in zip(text[1:], [(1, 0), (1, 1), ("", 1), ("", "")], strict=True)
    ]
    path.write_text("\n".join(filled) + "\n", encoding="utf-8")
    rows = labelled(read_rows(path, gold=["rater_1", "rater_2"]))
    # medians of the raters on 0–4; a sheet of ones is not taken for a 0–1 scale
    assert [row.gold for row in rows] == [0.5, 1.0, 1.0]
    assert rows[2].raters == (None, 1.0)


def test_a_sheet_that_nobody_filled_in_is_named(tmp_path):
    path = tmp_path / "sheet.csv"
    write_sheet([(row, 1.0) for row in rows_of(3, 1)], RUBRIC, path, n_raters=2)
    with pytest.raises(DataError) as caught:
        labelled(read_rows(path, gold=["rater_1", "rater_2"]))
    assert str(caught.value) == (
        f"{path}: rater_1, rater_2 hold no label yet; fill them in, or name another column with --gold COLUMN"
    )
    with pytest.raises(DataError, match=r"^gold holds no label yet; fill it in"):
        labelled(read_rows([{"output": "a", "gold": None}]))
