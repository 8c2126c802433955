"""A calibrated graded-rubric judge.

Asks a language model one rubric question with ordered levels about an answer and reads the token logprobs of one answer token
into a probability per level.
"""

from isograde._version import __version__
from isograde.correctness import AnswerCorrectness, Correctness, CorrectnessFailure
from isograde.errors import DataError, IsogradeError, RubricError, ServerError, UserError
from isograde.evaluators import evaluate
from isograde.judge import Judge
from isograde.logprobs import read_response
from isograde.records import Grade, GradeFailure, Item, LevelDistribution
from isograde.rubric import Level, Rubric, load_rubric

__all__ = [
    "AnswerCorrectness",
    "Correctness",
    "CorrectnessFailure",
    "DataError",
    "Grade",
    "GradeFailure",
    "IsogradeError",
    "Item",
    "Judge",
    "Level",
    "LevelDistribution",
    "Rubric",
    "RubricError",
    "ServerError",
    "UserError",
    "__version__",
    "evaluate",
    "load_rubric",
    "read_response",
]
