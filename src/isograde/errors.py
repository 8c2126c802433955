"""The exceptions that isograde raises.

::

    IsogradeError
    ├── UserError                what was asked for cannot be done as asked (exit code 2)
    │   ├── RubricError          a rubric file or name
    │   ├── DataError            a row, a column, a file
    │   └── CalibrationError     labels, scores or a calibrator that do not fit together
    ├── ServerError              the model cannot be used (exit code 4); ``retryable`` tells whether waiting helps
    │   ├── UnreachableError     nothing answers at the address
    │   └── NoLogprobsError      the server answers, but shows no distribution over tokens
    └── StatisticsError          a figure that these numbers do not define

A :class:`CaveatWarning` says, once a process, what is known to speak against a judge that was asked all the same.

A single item that could not be graded is no exception: it is a :class:`~isograde.records.GradeFailure`.
"""

from __future__ import annotations

__all__ = [
    "CalibrationError",
    "CaveatWarning",
    "DataError",
    "IsogradeError",
    "NoLogprobsError",
    "RubricError",
    "ServerError",
    "StatisticsError",
    "UnreachableError",
    "UserError",
]


class IsogradeError(Exception):
    """Base of every exception that isograde raises on purpose."""


class UserError(IsogradeError):
    """What was asked for cannot be done as asked; the message says what to change."""


class RubricError(UserError):
    """A rubric is unknown or its file breaks a rule."""


class DataError(UserError):
    """A row, a column or a file cannot be read as items."""


class CalibrationError(UserError):
    """Labels, scores or a calibrator that do not fit together."""


class ServerError(IsogradeError):
    """The model cannot be used.

    Parameters
    ----------
    message : str
        One line: what happened and the way out.
    retryable : bool, default False
        Whether the same request may succeed later.
    """

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class UnreachableError(ServerError):
    """Nothing answers at the address."""


class NoLogprobsError(ServerError):
    """The server answers, but shows no distribution over tokens."""


class StatisticsError(IsogradeError):
    """A figure that these numbers do not define."""


class CaveatWarning(UserWarning):
    """Something is known to speak against this judge for this rubric."""
