"""Answer correctness: claims, F-beta, similarity, and the rubric beside them.

::

    response, reference ─┬─ claims ─ verdicts ─▶ counts ─▶ F-beta ─┬─▶ value
                         └─ embeddings ─▶ similarity ──────────────┘
    the item ─ the judge's own rubric ─▶ grade, alongside
"""

from __future__ import annotations

from isograde.correctness.batch import Scores
from isograde.correctness.counts import Counts, expected_f_beta, f_beta
from isograde.correctness.metric import AnswerCorrectness
from isograde.correctness.results import Claim, Correctness, CorrectnessFailure

__all__ = [
    "AnswerCorrectness",
    "Claim",
    "Correctness",
    "CorrectnessFailure",
    "Counts",
    "Scores",
    "expected_f_beta",
    "f_beta",
]
