"""The adapter that ships belongs to the rubric, the prompt and the weights that are used today."""

import hashlib
import warnings

import pytest

from isograde import Judge, load_rubric
from isograde.backends import adapters
from isograde.backends.embedded import EmbeddedBackend
from isograde.backends.weights import FINGERPRINT
from isograde.errors import CaveatWarning
from isograde.prompt import prompt_fingerprint

RUBRIC = load_rubric("answer_correctness")
ITEM = {"input": "What is the capital of France?", "output": "Paris.", "expected": "Paris"}


def test_what_ships_fits_what_is_asked():
    adapter = adapters.shipped_adapter(FINGERPRINT)
    assert adapter.rubric == RUBRIC.fingerprint, "the rubric has changed since the adapter was trained"
    assert adapter.prompt == prompt_fingerprint(system_role=True, prefill=True), "the prompt has changed since"
    content = adapter.path.read_bytes()
    assert hashlib.sha256(content).hexdigest() == adapter.sha256
    assert len(content) <= 12_000_000
    assert content[:4] == b"GGUF"


def test_only_the_default_weights_have_it(tmp_path):
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF of another kind")
    backend = EmbeddedBackend(own)
    assert backend.adapter(RUBRIC) is None
    assert backend.caveat(RUBRIC) is None  # nothing is known of a model of one's own


@pytest.mark.embedded
def test_trained_for_one_rubric_and_says_so_of_the_others():
    with Judge() as judge:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            right, wrong = judge.score(ITEM), judge.score({**ITEM, "output": "It is Berlin."})
        assert right.adapter == judge.backend.adapter(RUBRIC)
        assert right.caveat is None
        assert right.expected_level > wrong.expected_level + 1  # a capital right and wrong is the least it must tell apart
        other = judge.with_rubric("relevance")
        with pytest.warns(CaveatWarning, match="not trained for the rubric relevance"):
            grade = other.score(ITEM)
        assert grade.adapter is None
        assert "not trained" in grade.caveat
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            other.score(ITEM)  # said once
