"""The report of a judge beside human gold labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isograde._version import __version__
from isograde.calibration import (
    Calibrator,
    CrossFit,
    alternative_annotator_test,
    cross_fit,
    human_yardstick,
    krippendorff_alpha,
    signal,
)
from isograde.calibration.metrics import bootstrap_figure
from isograde.records import Grade, GradeFailure, Item
from isograde.report import measures, pictures, wording
from isograde.report.habits import habit_table
from isograde.report.inputs import Cases, collect
from isograde.report.intervals import interval_table
from isograde.report.learning import learning_curve
from isograde.report.models import CalibrationReport
from isograde.report.parts import Answer, Estimate, Human, IsotonicCurve, Learning, PointFigure, Slice
from isograde.report.signal_parts import SignalTable
from isograde.report.text import plural
from isograde.report.wrong import slice_table, worst_cases

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.intp]

__all__ = ["calibration_report"]

MAX_RATED = 2_000  # rows up to which the human yardstick gets an interval


def calibration_report(
    grades: Sequence[Grade | GradeFailure] | ArrayLike,
    gold: Sequence[float | None],
    *,
    raters: Sequence[Sequence[float | None]] | None = None,
    label_source: str | None = None,
    items: Sequence[Item] | None = None,
    n_levels: int | None = None,
    score_range: tuple[float, float] | None = None,
    labels: Sequence[str] | None = None,
    title: str = "Calibration report",
    signals: SignalTable | None = None,
    rng: np.random.Generator | int | None = None,
    n_resamples: int = 1000,
) -> CalibrationReport:
    """Measure a judge against human gold labels.

    Every calibrated figure is out of fold, split by the items' ``group``; intervals are percentile bootstraps over groups.

    Parameters
    ----------
    grades : sequence of Grade or GradeFailure, or array_like of float, shape (n_items,)
        By one judge and one ordered rubric; or any judge's plain scores, None or NaN where it gave none.
    gold : sequence of float or None, length n_items
        In level indices 0 … n_levels − 1; None where a row is unlabelled.
    raters : sequence of sequence of (float or None), optional
        Each row's ratings in level indices, a place a rater; with two or more the report has the human yardstick.
    label_source : str, optional
        Who gave the labels, shown beside the figures.
    items : sequence of Item, optional
        Texts, groups and metadata; the grades' own items where not given.
    n_levels : int, optional
        For plain scores: levels of the gold scale, 5 unless given.
    score_range : pair of float, optional
        For plain scores: those that stand for the lowest and the highest level.
    labels : sequence of str, optional
        For plain scores: the levels' labels.
    title : str
        Heading of the report.
    signals : SignalTable, optional
        The judge beside other signals, from :func:`~isograde.report.signal_table`.
    rng : numpy.random.Generator or int, optional
        None is a fixed stream: the same input gives the same report.
    n_resamples : int, default 1000
        Of the bootstrap.

    Returns
    -------
    CalibrationReport

    Raises
    ------
    CalibrationError
        There are no rows, or the parts do not fit together; the message names the row.

    Examples
    --------
    >>> scores = [0.1, 0.2, 0.4, 0.5, 0.7, 0.9] * 10
    >>> report = calibration_report(scores, [0, 1, 1, 2, 3, 4] * 10, score_range=(0, 1), label_source="authored", n_resamples=200)
    >>> report.trust, report.point_figures[0].name, report.point_figures[0].calibrated.value
    ('yes', 'MAE', 0.0)
    >>> CalibrationReport.from_json(report.to_json()) == report
    True
    """
    generator = np.random.default_rng(0 if rng is None else rng)
    seed = int(generator.integers(2**62))
    cases = collect(grades, gold, raters=raters, items=items, n_levels=n_levels, score_range=score_range, labels=labels)
    used = np.flatnonzero(np.isfinite(cases.gold))
    calibrator = Calibrator(
        n_levels=len(cases.labels), score_range=cases.score_range if cases.values.ndim == 1 else None, label_source=label_source
    )
    forecasts = _forecasts(cases, used, calibrator, generator)
    found = _figures(forecasts, n_resamples=n_resamples, seed=seed)
    human = _human(cases, used, forecasts, n_resamples=n_resamples, seed=seed)
    learning = _learning(cases, used, forecasts, calibrator, generator)
    slices, n_left_out, member = slice_table(forecasts, [cases.items[i] for i in used])
    worst, n_disagreements = worst_cases(forecasts, cases, used, member)
    mae = found.points[0]
    n_groups = len(np.unique(forecasts.group))
    tests = () if forecasts.cross is None else wording.signal_tests(signal(forecasts.cross, groups=forecasts.group))
    trust, trusted = wording.trust_answer(
        mae=mae,
        tests=tests,
        human=human,
        learning=learning,
        n=len(used),
        n_groups=n_groups,
        top=len(cases.labels) - 1,
        label_source=label_source,
        same=len(used) > 0 and bool((forecasts.gold == forecasts.gold[0]).all()),
    )
    n_failed = sum(failure.count for failure in cases.failures)
    return CalibrationReport(
        title=title,
        labels=cases.labels,
        label_source=label_source,
        judge=cases.judge,
        library_version=__version__,
        n=cases.n,
        n_graded=len(cases.row),
        n_failed=n_failed,
        n_by_rule=cases.n_by_rule,
        n_labelled=cases.n_labelled,
        n_unlabelled=cases.n - cases.n_labelled,
        n_used=len(used),
        n_groups=n_groups,
        failures=cases.failures,
        trust=trust,
        trust_answer=trusted,
        gain_answer=wording.gain_answer(mae, found.gain),
        errors_answer=_errors(found, forecasts, slices, cases.labels),
        signal=tests,
        human=human,
        point_figures=found.points,
        spread_figures=measures.spread_figures(forecasts, found.estimates),
        threshold_figures=measures.threshold_table(forecasts, found.estimates) if len(used) else (),
        reliability=pictures.reliability_curves(forecasts),
        curve=_curve(cases, used, calibrator, generator),
        learning=learning,
        heatmaps=pictures.heatmaps(forecasts) if len(used) else (),
        distributions=pictures.distributions(forecasts, cases),
        slices=slices,
        n_columns_left_out=n_left_out,
        worst=worst,
        n_disagreements=n_disagreements,
        signal_table=signals,
        intervals=interval_table(
            cases.values[used],
            forecasts.gold,
            forecasts.group,
            calibrator=calibrator,
            slices=slices,
            member=member,
            no_rows=_no_rows(cases, len(used)),
            rng=generator,
        ),
        habits=habit_table(
            forecasts.raw, forecasts.gold, forecasts.group, [cases.items[i] for i in used], no_level=forecasts.no_raw
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    """All bootstrapped figures, the table of point figures, and the paired gain of calibration."""

    estimates: dict[tuple[str, ...], Estimate]
    points: tuple[PointFigure, ...]
    gain: Estimate | None


def _forecasts(cases: Cases, used: IntArray, calibrator: Calibrator, rng: np.random.Generator) -> measures.Forecasts:
    """Predict the labelled rows, out of fold where there are two groups or more."""
    gold, group, values = cases.gold[used], cases.group[used], cases.values[used]
    n_groups = len(np.unique(group))
    cross: CrossFit | None = None
    if n_groups > 1:
        cross = cross_fit(values, gold, calibrator=calibrator, groups=group, rng=rng)
    plain = values.ndim == 1
    proba = None if plain or not len(used) else values
    raw = None
    if len(used):
        raw = _raw(values, cases.score_range, len(cases.labels)) if cross is None else cross.raw
    return measures.Forecasts(
        gold=gold,
        # numbered anew, so that no group is empty
        group=np.unique(group, return_inverse=True)[1],
        n_levels=len(cases.labels),
        cross=cross,
        raw=raw,
        proba=proba,
        most_probable=None if proba is None else proba.argmax(axis=1).astype(np.float64),
        no_cross=_no_cross(cases, len(used), n_groups),
        no_raw=_no_rows(cases, len(used)) or "plain scores without a range have no level; give score_range",
        no_proba=_no_rows(cases, len(used)) or "plain scores have no level probabilities",
    )


def _raw(values: FloatArray, score_range: tuple[float, float] | None, n_levels: int) -> FloatArray | None:
    """The judge's own level where nothing could be fitted."""
    if values.ndim == 2:
        expected: FloatArray = values @ np.arange(n_levels, dtype=np.float64)
        return expected
    if score_range is None:
        return None
    low, high = score_range
    return np.clip((values - low) / (high - low), 0, 1) * (n_levels - 1)


def _no_rows(cases: Cases, n_used: int) -> str:
    """Why nothing can be measured at all; empty where something can."""
    if n_used:
        return ""
    if not cases.n_labelled:
        return f"none of the {plural(cases.n, 'row')} has a gold label"
    if not len(cases.row):
        return f"the judge graded none of the {plural(cases.n, 'row')}"
    return "no row with a gold label was graded by the judge"


def _no_cross(cases: Cases, n_used: int, n_groups: int) -> str:
    """Why nothing could be measured out of fold."""
    if missing := _no_rows(cases, n_used):
        return missing
    if n_used > 1 and n_groups == 1:
        return f"all {plural(n_used, 'label')} are in one group, so none can be held out; label items of other groups"
    return f"{plural(n_used, 'label')} cannot be split into a part to fit and a part to test; label 50 or more"


def _figures(forecasts: measures.Forecasts, *, n_resamples: int, seed: int) -> _Figures:
    """Bootstrap all figures together."""
    resampling = measures.Resampling(forecasts.group, n_resamples=n_resamples, seed=seed)
    if len(forecasts.gold):
        measures.ask_points(resampling, forecasts)
        measures.ask_spreads(resampling, forecasts)
    cross, raw, gold = forecasts.cross, forecasts.raw, forecasts.gold
    if cross is not None and raw is not None:
        resampling.ask(("gain",), [np.abs(raw - gold) - np.abs(cross.median - gold)])
    estimates = resampling.estimates()
    points = measures.point_figures(forecasts, estimates, n_resamples=n_resamples, seed=seed)
    return _Figures(estimates=estimates, points=points, gain=estimates.get(("gain",)))


def _human(cases: Cases, used: IntArray, forecasts: measures.Forecasts, *, n_resamples: int, seed: int) -> Human | None:
    """The raters' own distance, where there are several."""
    judge = forecasts.predicted
    if cases.raters is None or judge is None:
        return None
    ratings = cases.raters[used]
    if not (np.isfinite(ratings).sum(axis=1) >= 2).any():
        return None
    whole = human_yardstick(ratings, judge)

    def figure(name: str) -> Estimate:
        if len(judge) > MAX_RATED:
            return measures.from_figure(getattr(whole, name))
        resamples = min(n_resamples, measures.RANK_RESAMPLES)
        return measures.from_figure(
            bootstrap_figure(
                lambda rated, predicted: getattr(human_yardstick(rated, predicted), name),
                ratings,
                judge,
                groups=forecasts.group,
                n_resamples=resamples,
                rng=seed,
            )
        )

    return Human(
        human_mae=figure("human_mae"),
        judge_mae=figure("judge_mae"),
        judge_nearer=figure("judge_nearer"),
        alpha=measures.from_figure(krippendorff_alpha(ratings)),
        alpha_with_judge=measures.from_figure(krippendorff_alpha(np.column_stack([ratings, judge]))),
        winning_rate=measures.from_figure(alternative_annotator_test(ratings, judge).winning_rate),
        n_items=whole.n_items,
        n_raters=whole.n_raters,
    )


def _learning(
    cases: Cases, used: IntArray, forecasts: measures.Forecasts, calibrator: Calibrator, rng: np.random.Generator
) -> Learning | None:
    """How the error falls with labels."""
    if forecasts.cross is None:
        return None
    final = np.abs(forecasts.cross.median - forecasts.gold)
    blind = float(np.abs(forecasts.cross.constant - forecasts.gold).mean())
    return learning_curve(
        cases.values[used],
        forecasts.gold,
        forecasts.group,
        calibrator=calibrator,
        final=final,
        blind=blind,
        rng=rng,
    )


def _curve(cases: Cases, used: IntArray, calibrator: Calibrator, rng: np.random.Generator) -> IsotonicCurve | None:
    """The calibrator fitted to all labels."""
    if not len(used):
        return None
    values, gold = cases.values[used], cases.gold[used]
    fitted = calibrator.unfitted().fit(values, gold, groups=cases.group[used], rng=rng)
    plain = values.ndim == 1
    score = values if plain else values @ np.arange(len(cases.labels), dtype=np.float64)
    return pictures.isotonic_curve(fitted, score, gold, len(cases.labels), plain=plain)


def _errors(found: _Figures, forecasts: measures.Forecasts, slices: Sequence[Slice], labels: Sequence[str]) -> Answer:
    """Where the judge is wrong, in a sentence."""
    bias = found.points[2]
    raw = bias.expected_level if forecasts.raw is not None else bias.calibrated
    named = (
        "raw" if forecasts.raw is not None else "calibrated",
        "without calibration" if forecasts.cross is None else "after calibration",
    )
    predicted, gold = forecasts.predicted, forecasts.gold
    n = len(gold)
    levels = 2 if len(labels) > 3 else 1
    if predicted is None or not n:
        return wording.errors_answer(raw, slices, named=named, n=n, far=(0, levels), labels=labels, worst_gold=None)
    error = np.abs(predicted - gold)
    kinds, counts = np.unique(gold, return_counts=True)
    means = {
        level: error[gold == level].mean() for level, count in zip(kinds.tolist(), counts.tolist(), strict=True) if count >= 5
    }
    worst = max(means, key=lambda level: means[level]) if len(means) > 1 else None
    return wording.errors_answer(
        raw, slices, named=named, n=n, far=(int((error >= levels).sum()), levels), labels=labels, worst_gold=worst
    )
