"""Answer correctness over a file: what ``isograde score --metric claim_f1`` does."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import Any

from isograde.backends.loop import run
from isograde.correctness import AnswerCorrectness, Correctness, CorrectnessFailure
from isograde.correctness.scorer import FIELDS
from isograde.datasets import Row, Rows
from isograde.errors import DataError
from isograde.runs.correctness_lines import CorrectnessWriter
from isograde.runs.correctness_summary import CorrectnessSummary, CorrectnessTally
from isograde.runs.score import check_field

__all__ = ["check_fields", "plan", "score"]


def check_fields(rows: Rows) -> None:
    """Refuse rows that cannot be scored.

    Raises
    ------
    DataError
        If there are no rows, or no column feeds a field that is needed; the message lists the columns.
    """
    if rows.n == 0:
        raise DataError("there are no rows to score")
    for name in FIELDS:
        check_field(rows, name, of="claim_f1")


def score(
    rows: Rows,
    metric: AnswerCorrectness,
    *,
    writer: CorrectnessWriter | None = None,
    limit: int | None = None,
    threshold: float | None = None,
    stopped: Callable[[], bool] = lambda: False,
    on_result: Callable[[Row, Correctness | CorrectnessFailure], Any] = lambda _row, _result: None,
) -> CorrectnessSummary:
    """Score every row, write each in input order, and sum up.

    Parameters
    ----------
    rows : Rows
    metric : AnswerCorrectness
    writer : CorrectnessWriter or None
    limit : int or None
        Score only so many rows.
    threshold : float or None
        Value from which the summary counts a row as a pass.
    stopped : callable
        Once it says True no further row is begun; what is under way is finished.
    on_result : callable
        Told of every row and result, in input order.

    Returns
    -------
    CorrectnessSummary

    Raises
    ------
    DataError
        If the rows cannot be scored.
    ServerError
        If the model cannot be used; what was finished has been written.
    """
    check_fields(rows)
    tally = CorrectnessTally(threshold=threshold)
    started = time.perf_counter()
    wanted: Iterable[Row] = rows if limit is None else itertools.islice(rows, limit)

    async def work() -> None:
        async with aclosing(metric.results(wanted, ordered=True, stopped=stopped)) as results:
            async for row, result in results:
                if writer is not None:
                    writer.write(row, result)
                tally.add(row, result)
                on_result(row, result)

    run(work())
    return tally.summary(time.perf_counter() - started)


def plan(rows: Rows, metric: AnswerCorrectness, *, limit: int | None = None) -> dict[str, Any]:
    """Say what a run would send, without sending it.

    Returns
    -------
    dict
        ``server``; ``request``: the first request for claims, or the rubric's where claims are sentences; ``n_rows``;
        ``n_references``: different ones, each split into claims once; ``calls``: how many a row takes, in words, since the
        number of claims is not known before.
    """
    check_fields(rows)
    n_rows, references = 0, set[tuple[str, tuple[str, ...]]]()
    request: dict[str, Any] | None = None
    for row in itertools.islice(rows, limit):
        n_rows += 1
        references.add((row.item.input or "", row.item.references))
        request = request or metric.first_request(row.item)
    each = "one a claim" if metric.verdicts == "logprobs" else "one a reference"
    return {
        "server": metric.judge.backend.server or "in process",
        "request": request,
        "n_rows": n_rows,
        "n_references": len(references),
        "calls": f"a row: 1 for the rubric, {'1 for its claims, ' if metric.writes else ''}{each} for verdicts"
        + ("; a reference: 1 for its claims" if metric.writes else ""),
    }
