"""A call shaped like the hosted evaluators': evaluators, input, output and expected in, a mapping out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from isograde.errors import UserError
from isograde.judge import Judge
from isograde.records import GradeFailure

__all__ = ["evaluate"]


def evaluate(request: Mapping[str, Any], *, judge: Judge | None = None) -> dict[str, dict[str, Any]]:
    """Grade one item by several rubrics.

    Parameters
    ----------
    request : mapping
        ``evaluators``: names or paths of rubrics; beside it the item's fields (``input``, ``output``, ``expected``, ``context``,
        or a neighbour's names for them).
    judge : Judge or None
        Whose model is asked; None is the embedded one.

    Returns
    -------
    dict
        For each evaluator ``score``, ``label``, ``level``, ``confidence``, ``probabilities`` and ``passed``; for one that
        could not grade, ``status`` and ``message`` in place of them.

    Raises
    ------
    UserError
        If there is no evaluator, or a field cannot be read.
    ServerError
        If the model cannot be used.

    Examples
    --------
    >>> judge = Judge(model="gpt-4.1-mini", api_key="sk-…")
    >>> evaluate({"evaluators": ["relevance"], "input": "Who wrote it?", "output": ""}, judge=judge)["relevance"]["level"]
    0
    """
    evaluators = request.get("evaluators") if isinstance(request, Mapping) else None
    if not isinstance(evaluators, list | tuple) or not evaluators:
        raise UserError('evaluate: "evaluators" must be a list of rubric names, for instance ["answer_correctness"]')
    fields = {name: value for name, value in request.items() if name != "evaluators"}
    judge = judge or _embedded()
    results: dict[str, dict[str, Any]] = {}
    for name in evaluators:
        grade = judge.with_rubric(name).score(fields)
        if isinstance(grade, GradeFailure):
            results[name] = {"status": grade.status, "message": grade.message}
        else:
            shown = ("score", "label", "level", "confidence", "probabilities", "passed")
            results[name] = {key: getattr(grade, key) for key in shown}
    return results


@lru_cache(maxsize=1)
def _embedded() -> Judge:
    """Keep one embedded judge for all calls, so that the model is loaded once."""
    return Judge()
