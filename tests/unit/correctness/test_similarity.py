"""Similarity: the cosine, what is asked for once, and what has none."""

import asyncio
import math

import numpy as np
import pytest
from scipy.spatial.distance import cosine as scipy_distance

from isograde import UserError
from isograde.backends.loop import on_loop, run
from isograde.backends.vectors import Embedded, as_vector
from isograde.correctness.asking import Ledger, PartFailed
from isograde.correctness.similarity import Similarity, cosine
from isograde.records import GradeFailure, Usage


class Counting:
    """Embeds by a table, slowly, and counts what it is asked."""

    name = "counting"

    def __init__(self, table=None, *, fails=()):
        self.table, self.fails, self.asked = table or {}, list(fails), []

    async def embed(self, texts):
        self.asked.append(list(texts))
        await asyncio.sleep(0.01)
        vectors = tuple(self.fails.pop(0) if self.fails else as_vector(self.table.get(text, [len(text), 1.0])) for text in texts)
        return Embedded(vectors=vectors, usage=Usage(input_tokens=10 * len(texts)))

    async def aclose(self):
        pass


def both(similarity, pairs):
    """Compare pairs at once, each with a ledger of its own."""

    async def one(pair, ledger):
        try:
            return await similarity(*pair, ledger)
        except PartFailed as failed:
            return failed

    async def all_of_them():
        ledgers = [Ledger() for _ in pairs]
        found = await asyncio.gather(*(one(pair, ledger) for pair, ledger in zip(pairs, ledgers, strict=True)))
        return found, ledgers

    return run(on_loop(all_of_them()))


@pytest.mark.parametrize("seed", range(20))
def test_cosine_equals_scipy(seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=16) * 10.0 ** rng.integers(-5, 6)
    b = a * rng.uniform(0, 1) + rng.normal(size=16)
    assert cosine(a, b) == pytest.approx(max(0.0, 1 - scipy_distance(a, b)), abs=1e-12)


def test_cosine_by_hand():
    # (1·2 + 2·1 + 2·2) ÷ (3 · 3) = 8 ÷ 9
    assert cosine([1, 2, 2], [2, 1, 2]) == pytest.approx(8 / 9, abs=1e-15)
    assert cosine([5], [3]) == 1.0
    assert cosine([1, 0], [0, 4]) == 0.0


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1.0, 1e200, 1e308])
def test_no_scale_is_too_large_or_too_small(scale):
    # one part of (3, 4) and (4, 3) in 5 × 5 is 24 ÷ 25; 1e-320 has few digits left
    assert cosine([3 * (scale / 4), scale], [scale, 3 * (scale / 4)]) == pytest.approx(24 / 25, abs=1e-3)


@pytest.mark.parametrize("other", [[-1.0, 0.0], [-1.0, 0.2], [-1e-9, 1.0]])
def test_a_negative_cosine_is_zero(other):
    assert cosine([1.0, 0.0], other) == 0.0


def test_equal_vectors_never_exceed_one():
    rng = np.random.default_rng(0)
    for _ in range(200):
        vector = rng.normal(size=384)
        assert 1 - 1e-12 < cosine(vector, vector) <= 1.0


def test_lengths_must_agree():
    with pytest.raises(UserError, match="embeddings of 2 and of 3 numbers cannot be compared"):
        cosine([1, 2], [1, 2, 3])


def test_the_issues_figures():
    # Similarity 0.72 and 0.938 as unit vectors (c, √(1 − c²)) against (1, 0)
    for c in (0.72, 0.938):
        similarity = Similarity(Counting({"response": [c, math.sqrt(1 - c * c)], "reference": [1.0, 0.0]}))
        assert similarity.of("response", "reference") == pytest.approx(c, abs=1e-15)


def test_a_text_is_embedded_once_even_while_it_is_under_way():
    embeddings = Counting()
    similarity = Similarity(embeddings)
    found, ledgers = both(
        similarity, [("answer one", "the reference"), ("answer two", "the reference"), ("answer one", "answer two")]
    )
    assert sorted(text for texts in embeddings.asked for text in texts) == ["answer one", "answer two", "the reference"]
    assert [ledger.total and ledger.total.input_tokens for ledger in ledgers] == [20, 10, None]
    assert all(ledger.seconds["similarity"] > 0 for ledger in ledgers)
    again, _ = both(similarity, [("answer two", "answer one")])
    assert again[0] == found[2]
    assert len(embeddings.asked) == 2


def test_the_same_text_on_both_sides_is_one():
    embeddings = Counting()
    assert Similarity(embeddings).of("same", "same") == 1.0
    assert embeddings.asked == [["same"]]


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (GradeFailure(status="no_answer", message="the embedding is all zeros"), "no_similarity"),
        (GradeFailure(status="invalid_item", message="the text is blank; it has no embedding"), "no_similarity"),
        (GradeFailure(status="timeout", message="no answer in time"), "timeout"),
        (GradeFailure(status="too_long", message="it does not fit"), "too_long"),
    ],
)
def test_a_text_without_embedding_fails_the_part_and_is_asked_again_for_the_next_item(failure, status):
    embeddings = Counting(fails=[failure])
    similarity = Similarity(embeddings)
    [failed], _ = both(similarity, [("response", "reference")])
    assert (failed.part, failed.status, str(failed)) == ("similarity", status, f"the response: {failure.message}")
    assert similarity.of("response", "reference") > 0
    assert embeddings.asked == [["response", "reference"], ["response"]]


def test_blanks_have_no_similarity():
    with pytest.raises(PartFailed, match="the reference: the text is blank"):
        Similarity(lambda texts: [[1.0, 2.0] for _ in texts]).of("a", " ")


def test_two_lengths_have_no_similarity():
    with pytest.raises(PartFailed, match="2 and 3 numbers"):
        Similarity(Counting({"a": [1, 2], "b": [1, 2, 3]})).of("a", "b")


def test_an_item_that_is_given_up_does_not_take_the_others_with_it():
    embeddings = Counting()
    similarity = Similarity(embeddings)

    async def give_up_one():
        given_up = asyncio.create_task(similarity("one", "shared", Ledger()))
        other = asyncio.create_task(similarity("two", "shared", Ledger()))
        await asyncio.sleep(0.001)
        given_up.cancel()
        return await other

    assert run(give_up_one()) > 0
    assert embeddings.asked == [["one", "shared"], ["two"]]


def test_the_oldest_texts_are_forgotten(monkeypatch):
    monkeypatch.setattr("isograde.correctness.similarity._REMEMBERED", 2)
    embeddings = Counting()
    similarity = Similarity(embeddings)
    similarity.of("a", "b")
    similarity.of("a", "c")  # b is the oldest
    similarity.of("a", "c")
    assert embeddings.asked == [["a", "b"], ["c"]]
    similarity.of("a", "b")
    assert embeddings.asked[-1] == ["b"]


def test_what_is_none_is_told():
    with pytest.raises(UserError, match="is a str"):
        Similarity("text-embedding-3-small")
