"""Many results: a list that can become a table, a histogram, or verdicts by a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isograde.correctness.results import Correctness, CorrectnessFailure
from isograde.errors import UserError
from isograde.records import Grade, Item

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = ["Scores"]


class Scores(list[Correctness | CorrectnessFailure]):
    """Results in the order of the items."""

    @property
    def values(self) -> list[float | None]:
        """Each item's value; None where it failed or is not defined."""
        return [result.value if isinstance(result, Correctness) else None for result in self]

    def to_pandas(self) -> pd.DataFrame:
        """Give a table, one row an item: the item's texts, the value and its parts, and what went wrong.

        Returns
        -------
        pandas.DataFrame
            A failure has its ``status`` and ``message``, and nothing that could be taken for a score.

        Raises
        ------
        UserError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise UserError('a table needs pandas: pip install "isograde[data]"') from None
        table = pd.DataFrame([_row(result) for result in self], columns=_COLUMNS)
        return table.astype(dict.fromkeys([*_FIGURES, "rubric"], float))

    to_df = to_pandas

    def histogram(self, bins: int = 10) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Count the values in equal bins over [0, 1].

        Returns
        -------
        counts : ndarray of int, shape (bins,)
        edges : ndarray of float, shape (bins + 1,)
            As :func:`numpy.histogram` gives them; failures and items without a value are not counted.
        """
        import numpy as np

        return np.histogram([value for value in self.values if value is not None], bins=bins, range=(0.0, 1.0))

    def binary(self, threshold: float = 0.5) -> list[bool | None]:
        """Tell which values reach a threshold; None where there is no value.

        Examples
        --------
        >>> from isograde.correctness.counts import Counts
        >>> counts = Counts(tp_response=1, fp=0, tp_reference=1, fn=0)
        >>> Scores([Correctness(value=0.5, counts=counts), CorrectnessFailure(status="timeout", message="…")]).binary(0.5)
        [True, None]
        """
        return [None if value is None else value >= threshold for value in self.values]


_TEXTS = ("id", "input", "output", "expected")
_FIGURES = ("value", "f_beta", "precision", "recall", "expected_f_beta", "f_beta_spread", "similarity")
_COUNTS = ("tp_response", "fp", "tp_reference", "fn")
_COLUMNS = [
    *_TEXTS,
    *_FIGURES,
    "rubric",
    *_COUNTS,
    "response_claims",
    "reference_claims",
    "refused",
    "identical",
    "reason",
    "status",
    "message",
    "input_tokens",
    "output_tokens",
]


def _row(result: Correctness | CorrectnessFailure) -> dict[str, Any]:
    """Flatten a result."""
    item, rubric, usage = result.item or Item(), result.rubric, result.usage
    row: dict[str, Any] = {name: getattr(item, name) for name in _TEXTS}
    if isinstance(item.expected, tuple):
        row["expected"] = list(item.expected)
    row["rubric"] = rubric.score if isinstance(rubric, Grade) else None
    row |= {"input_tokens": usage and usage.input_tokens, "output_tokens": usage and usage.output_tokens}
    if isinstance(result, CorrectnessFailure):
        return {**row, "status": result.status, "message": result.message}
    row |= {name: getattr(result, name) for name in (*_FIGURES, "refused", "identical", "reason")}
    row |= {name: getattr(result.counts, name) for name in _COUNTS}
    for side in ("response_claims", "reference_claims"):
        row[side] = [{"text": c.text, "supported": c.supported, "probability": c.probability} for c in getattr(result, side)]
    return {**row, "status": "scored"}
