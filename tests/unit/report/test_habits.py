"""Judge habits in the calibration report."""

from __future__ import annotations

import numpy as np
import pytest

from isograde.records import Item
from isograde.report import calibration_report
from isograde.report.habits import habit_table

N = 240


def planted(*, per_doubling=0.0, german=0.0, seed=0, metadata=None):
    """A judge of plain levels with habits planted, gold, and items."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 5, N).astype(float)
    doublings = rng.integers(3, 9, N)
    language = rng.choice(["de", "en", "pl"], N)
    level = 0.8 * gold + 0.4 + per_doubling * (doublings - 6) + german * (language == "de") + 0.2 * rng.normal(size=N)
    extra = metadata or (lambda i: {})
    items = [
        Item(id=str(i), output="x" * 2 ** int(doublings[i]), metadata={"language": str(language[i]), **extra(i)})
        for i in range(N)
    ]
    return level, gold, items


def looked(level, gold, items):
    return habit_table(level, gold, np.arange(len(gold)), items, no_level="")


def test_a_planted_habit_is_found_and_said_in_words():
    found = looked(*planted(per_doubling=0.18))
    by_name = {row.name: row for row in found.rows}
    assert list(by_name) == ["answer twice as long", "language = de", "language = en", "language = pl"]
    length = by_name["answer twice as long"]
    assert length.shown
    assert length.difference.value == pytest.approx(0.18, abs=0.03)
    assert length.difference.low < 0.18 < length.difference.high
    assert found.answer.sentence.startswith("Answers twice as long get 0.1")
    assert "levels more from the judge than equally good others (0.1" in found.answer.sentence
    assert "An association in 4 looks, corrected for their number, not a cause" in found.answer.details[-1]


def test_less_is_said_with_its_interval_the_right_way_round():
    found = looked(*planted(german=-0.3))
    assert found.answer.sentence.startswith("Items of language = de get 0.3")
    assert "levels less" in found.answer.sentence
    row = next(row for row in found.rows if row.name == "language = de")
    near, far = -row.difference.high, -row.difference.low
    assert f"({near:.2f} to {far:.2f})" in found.answer.sentence


def test_no_habit_is_no_proof_of_none():
    found = looked(*planted())
    assert found.answer.sentence == "No habit is shown: nothing but quality stands out in 4 looks, corrected for their number."
    assert not any(row.shown for row in found.rows)
    assert all(row.p_value <= 1 for row in found.rows)


def test_which_columns_are_looked_at():
    def metadata(i):
        return {
            "tokens": i % 50,  # numbers: a slope by standard deviation
            "system": "a" if i % 2 else "b",  # two values: one look
            "rare": "seldom" if i < 5 else "often",  # a value of too few rows
            "name": f"name {i}",  # as many values as rows
            "nested": {"a": 1},
            "same": "x",
            "sometimes": None if i % 3 else i % 2 == 0,
        }

    level, gold, items = planted(metadata=metadata)
    found = looked(level, gold, items)
    names = [row.name for row in found.rows]
    assert names == [
        "answer twice as long",
        "language = de",
        "language = en",
        "language = pl",
        "tokens, a standard deviation more",
        "system = a",
        "sometimes = False",
    ]
    assert found.rows[-1].difference.n == N // 3
    # A standard deviation more of the number: the slope of the number times its standard deviation.
    tokens = np.arange(N) % 50
    design = np.column_stack([(gold[:, np.newaxis] == np.arange(5)).astype(float), tokens])
    slope = np.linalg.lstsq(design, level, rcond=None)[0][-1]
    assert found.rows[4].difference.value == pytest.approx(slope * tokens.std())


def test_a_column_that_gold_tells_is_no_look():
    level, gold, _ = planted()
    told = [Item(output="x", metadata={"good": bool(g >= 3)}) for g in gold]
    found = looked(level, gold, told)
    assert found.rows == ()
    assert "there is nothing to look at beside gold" in found.answer.sentence


def test_items_without_output_have_no_length():
    level, gold, items = planted()
    found = looked(level, gold, [Item(metadata=item.metadata) for item in items])
    assert [row.name for row in found.rows] == ["language = de", "language = en", "language = pl"]


def test_in_the_report():
    level, gold, items = planted(per_doubling=0.2)
    report = calibration_report(np.clip(level, 0, 4).tolist(), gold.tolist(), items=items, score_range=(0, 4), n_resamples=50)
    assert report.habits.rows[0].shown
    for text in (report.to_markdown(), report.to_html()):
        assert "Does the judge favour something beside quality?" in text
        assert report.habits.answer.sentence in text
    unnamed = calibration_report(level.tolist(), gold.tolist(), items=items, n_resamples=50)
    assert unnamed.habits.answer.sentence.startswith("Not known: plain scores without a range have no level")
