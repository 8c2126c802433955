"""Several signals of the labelled rows, with what each costs: what ``isograde calibrate --signals`` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isograde.backends.loop import run
from isograde.correctness.calibrated import CLAIM_SIGNALS, SIGNALS, part_signal
from isograde.correctness.results import Correctness, CorrectnessFailure
from isograde.datasets import Row
from isograde.errors import CalibrationError, DataError, UserError
from isograde.records import Grade, GradeFailure, Usage

if TYPE_CHECKING:
    from isograde.calibration import JudgeFingerprint, SignalCalibrator
    from isograde.correctness.metric import AnswerCorrectness
    from isograde.report import CalibrationReport, Cost, SignalTable

__all__ = [
    "GRADED",
    "Signals",
    "fitted_mae",
    "fitted_signals",
    "measured",
    "needs_metric",
    "signal_names",
    "signals_of",
    "table_of",
]

GRADED: Mapping[str, tuple[str, ...]] = {name: ("claims", "verdicts") if name in CLAIM_SIGNALS else (name,) for name in SIGNALS}
"""Signals that isograde makes itself, and the parts of the work that each needs; any other name is a column of the data."""

_PARTS = (*CLAIM_SIGNALS, "similarity")

Result = Correctness | CorrectnessFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """Signals of labelled rows.

    Attributes
    ----------
    values : mapping of str to tuple of (float or None)
        In [0, 1], one a row; None where a row lacks the signal.
    by_rule : tuple of bool
        Rows whose output is blank: what the rubric gives them by rule says nothing about a signal, so they are left out.
    costs : mapping of str to mapping of str to Cost
        Of the signals that isograde made: each part of the work, a row on average.
    settings : mapping of str to str
        How they were made, apart from the judge.
    blend : mapping of str to float
        Weights of the blend that stands beside them.
    """

    values: Mapping[str, tuple[float | None, ...]]
    by_rule: tuple[bool, ...]
    costs: Mapping[str, Mapping[str, Cost]]
    settings: Mapping[str, str]
    blend: Mapping[str, float]


def signal_names(text: str) -> tuple[str, ...]:
    """Read names between commas.

    Raises
    ------
    UserError
        If there are fewer than two, or one stands twice.

    Examples
    --------
    >>> signal_names("rubric, claim_f1,similarity")
    ('rubric', 'claim_f1', 'similarity')
    """
    names = tuple(name for name in (part.strip() for part in text.split(",")) if name)
    if len(set(names)) < len(names):
        raise UserError(f"--signals {text}: {next(name for name in names if names.count(name) > 1)!r} stands twice")
    if len(names) < 2:
        raise UserError(f"--signals {text}: name two signals or more, of {', '.join(GRADED)} and columns with scores in 0 … 1")
    return names


def needs_metric(names: Sequence[str]) -> bool:
    """Whether claims or similarity are asked for."""
    return any(name in _PARTS for name in names)


def measured(
    metric: AnswerCorrectness,
    rows: Sequence[Row],
    *,
    on_grade: Callable[[Row, Grade | GradeFailure], Any] = lambda _row, _grade: None,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[list[Grade | GradeFailure], list[Result]]:
    """Grade the labelled rows by the rubric, and make their claims and similarities; only as far as ``stopped`` lets it come.

    Parameters
    ----------
    metric : AnswerCorrectness
    rows : sequence of Row
    on_grade : callable
        Told of every row and rubric grade, in order.
    stopped : callable
        Once it says True no further row is begun; what is under way is finished.

    Returns
    -------
    grades : list of Grade or GradeFailure
    results : list of Correctness or CorrectnessFailure
    """

    async def collect() -> tuple[list[Grade | GradeFailure], list[Result]]:
        grades: list[Grade | GradeFailure] = []
        results: list[Result] = []
        async with aclosing(metric.results(rows, ordered=True, stopped=stopped)) as found:
            async for row, result in found:
                # an answer that equals its reference is known to be right, but what the rubric says of it is not
                grade = result.rubric or await metric.judge.grade(row.item, index=row.index)
                on_grade(row, grade)
                grades.append(grade)
                results.append(result)
        return grades, results

    return run(collect())


def signals_of(
    rows: Sequence[Row],
    names: Sequence[str],
    *,
    grades: Sequence[Grade | GradeFailure] | None,
    results: Sequence[Result] | None,
    settings: Mapping[str, str] | None = None,
    weights: tuple[float, float] = (0.75, 0.25),
) -> Signals:
    """Bring signals of different origin together.

    Parameters
    ----------
    rows : sequence of Row
    names : sequence of str
        Of signals that isograde makes, and of columns.
    grades, results : sequence, one a row, or None
        Rubric grades; claims and similarities.
    settings : mapping of str to str, optional
        How claims and similarities were made.
    weights : tuple of float
        Of claim F-beta and similarity in the blend.

    Returns
    -------
    Signals

    Raises
    ------
    DataError
        If a column is missing or holds what is no score in [0, 1]; the row is named.
    """
    from isograde.report import Cost

    given: Sequence[Grade | GradeFailure | None] = [None] * len(rows) if grades is None else grades
    by_rule = tuple(isinstance(grade, Grade) and grade.method == "blank_output" for grade in given)
    values: dict[str, tuple[float | None, ...]] = {}
    for name in names:
        if name == "rubric":
            values[name] = tuple(grade.score if isinstance(grade, Grade) else None for grade in grades or ())
        elif name in _PARTS:
            values[name] = tuple(
                part_signal(result, name) if isinstance(result, Correctness) else None for result in results or ()
            )
        else:
            values[name] = _column(rows, name)
    asked = [i for i, ruled in enumerate(by_rule) if not ruled]
    ledgers = [_ledger(given[i], None if results is None else results[i]) for i in asked]
    parts = {part for name in names for part in GRADED.get(name, ())}
    costs = {part: Cost(tokens=_tokens(ledgers, part), seconds=_seconds(ledgers, part)) for part in parts}
    return Signals(
        values=values,
        by_rule=by_rule,
        costs={name: {part: costs[part] for part in GRADED[name]} for name in names if name in GRADED},
        settings=settings or {},
        blend=dict(zip(("claim_f1", "similarity"), weights, strict=True)),
    )


def fitted_signals(
    rows: Sequence[Row],
    signals: Signals,
    *,
    n_levels: int,
    judge: JudgeFingerprint | None,
    label_source: str | None,
    rng: int | None = None,
) -> SignalCalibrator:
    """Fit a calibrator of signals to the labelled rows that have them all.

    Raises
    ------
    CalibrationError
        If no row has them all.
    """
    from isograde.calibration import SignalCalibrator

    kept = [i for i in _judged(signals) if all(column[i] is not None for column in signals.values.values())]
    if not kept:
        raise CalibrationError(f"no labelled row has all signals ({', '.join(signals.values)}), so there is nothing to fit")
    calibrator = SignalCalibrator(n_levels=n_levels, judge=judge, settings=signals.settings, label_source=label_source)
    return calibrator.fit(
        {name: [column[i] or 0.0 for i in kept] for name, column in signals.values.items()},
        [rows[i].gold or 0.0 for i in kept],
        groups=[rows[i].item.group for i in kept],
        rng=rng,
    )


def table_of(rows: Sequence[Row], signals: Signals, *, n_levels: int, rng: int | None = None) -> SignalTable:
    """Measure every signal, the blend and the index, out of fold."""
    from isograde.report import signal_table

    kept = _judged(signals)
    return signal_table(
        {name: [column[i] for i in kept] for name, column in signals.values.items()},
        [rows[i].gold or 0.0 for i in kept],
        groups=[rows[i].item.group for i in kept],
        n_levels=n_levels,
        costs=signals.costs,
        blend=signals.blend,
        rng=rng,
    )


def fitted_mae(report: CalibrationReport) -> float | None:
    """MAE, out of fold, of what was fitted: the index where there is one, else the judge."""
    if report.signal_table is None:
        return report.point_figures[0].calibrated.value
    return next((row.mae.value for row in report.signal_table.rows if row.kind == "index"), None)


def _judged(signals: Signals) -> list[int]:
    """Rows that were not graded by rule."""
    return [i for i, ruled in enumerate(signals.by_rule) if not ruled]


def _column(rows: Sequence[Row], name: str) -> tuple[float | None, ...]:
    """Scores of a column; None where a cell is empty."""
    values: list[float | None] = []
    for row in rows:
        if name not in row.item.metadata:
            raise DataError(
                f"--signals: {name!r} is neither one of {', '.join(GRADED)} nor a column of {row.place}; columns found: "
                f"{', '.join(row.item.metadata) or 'none'}"
            )
        value = row.item.metadata[name]
        if value is None or value == "" or value != value:  # noqa: PLR0124 - NaN is how data frames write None
            values.append(None)
            continue
        try:
            score = None if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            score = None
        if score is None or not 0 <= score <= 1:
            raise DataError(f"{row.place} (id {row.key!r}), column {name!r}: holds {value!r}; a signal is a number in 0 … 1")
        values.append(score)
    return tuple(values)


@dataclass(frozen=True, slots=True)
class _Ledger:
    """What a row cost, by part."""

    usage: Mapping[str, Usage]
    seconds: Mapping[str, float]


def _ledger(grade: Grade | GradeFailure | None, result: Result | None) -> _Ledger:
    """Tokens and seconds of a row; the rubric's from its grade where the metric did not ask for one."""
    usage = {} if result is None else dict(result.usage_by_part)
    seconds = {} if result is None else dict(result.seconds_by_part)
    if isinstance(grade, Grade) and "rubric" not in seconds:
        if grade.usage is not None:
            usage["rubric"] = grade.usage
        if grade.latency_s is not None:
            seconds["rubric"] = grade.latency_s
    return _Ledger(usage, seconds)


def _tokens(ledgers: Sequence[_Ledger], part: str) -> float | None:
    """Tokens of a part, a row on average; None where no server counted any although it was asked."""
    counted = [usage for each in ledgers if (usage := each.usage.get(part)) is not None]
    if not counted:
        # claims that are sentences are made without a model
        return 0.0 if part == "claims" and ledgers else None
    return sum((usage.input_tokens or 0) + (usage.output_tokens or 0) for usage in counted) / len(ledgers)


def _seconds(ledgers: Sequence[_Ledger], part: str) -> float | None:
    """Seconds of a part, a row on average."""
    spent = [each.seconds[part] for each in ledgers if part in each.seconds]
    return sum(spent) / len(ledgers) if spent else None
