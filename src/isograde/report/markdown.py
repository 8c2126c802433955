"""Reports as Markdown: the order of the HTML, with tables in place of plots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from isograde.report.models import CalibrationReport, RubricRun, RunReport
from isograde.report.parts import Answer, Case, Counts, Estimate, Failure
from isograde.report.text import in_markdown, level_name, number, percent, plural
from isograde.report.wording import label_source_name, with_interval

__all__ = ["calibration_markdown", "run_markdown"]

WIDTH = 24  # characters of the longest bar
N_CASES = 10  # cases with their texts; the rest are in the JSON and the HTML


def calibration_markdown(report: CalibrationReport) -> str:
    """Write a calibration report."""
    title = in_markdown(report.title)
    parts = [f"# {title}", "## Can this judge be trusted on this task?", *_answer(report.trust_answer), _facts(_about(report))]
    if report.signal:
        rows = [
            [
                test.name,
                "yes" if test.claimed else "not shown",
                number(test.mean, 3),
                number(test.upper, 3),
                number(test.hindsight_upper, 3),
            ]
            for test in report.signal
        ]
        parts.append(
            _table(["signal: calibrated judge", "gain", "difference", "upper limit, 95 %", "beside the best in hindsight"], rows)
        )
    if report.human is not None:
        human = report.human
        rows = [
            ["other raters' median to the held-out rater (MAE)", with_interval(human.human_mae)],
            ["judge to the held-out rater (MAE)", with_interval(human.judge_mae)],
            ["how often the judge is nearer", _share(human.judge_nearer)],
            ["raters that the judge may stand in for", _share(human.winning_rate)],
            ["Krippendorff's α of the raters", with_interval(human.alpha)],
            ["α with the judge as one more rater", with_interval(human.alpha_with_judge)],
        ]
        parts.append(
            _table([f"human yardstick: {plural(human.n_raters, 'rater')}, {plural(human.n_items, 'item')}", "figure"], rows)
        )
    parts += ["## How much does calibration help?", *_answer(report.gain_answer), *_figures(report)]
    if report.learning is not None:
        parts += [in_markdown(report.learning.sentence)]
        rows = [[f"{point.n:,}", with_interval(point.mae)] for point in report.learning.points]
        parts.append(_table(["labels", "calibrated MAE"], rows))
    parts += ["## Where is it wrong?", *_answer(report.errors_answer)]
    for heat in report.heatmaps:
        rows = [[report.labels[i], *(f"{count:,}" for count in row)] for i, row in enumerate(heat.counts)]
        parts.append(_table([f"{heat.name} ↓ gold →", *report.labels], rows))
    parts += [_histogram(counts, report.labels) for counts in report.distributions]
    for column, own in groupby(report.slices, key=lambda each: each.column):
        rows = [
            [
                s.value,
                f"{s.n:,}",
                number(s.mean_gold),
                number(s.mean_judge),
                *map(with_interval, (s.bias, s.mae_raw, s.mae_calibrated)),
            ]
            for s in own
        ]
        parts.append(_table([column, "rows", "mean gold", "mean judge", "bias", "MAE, raw", "MAE, calibrated"], rows))
    if report.worst:
        parts.append("### The worst disagreements")
        parts += _cases(report.worst, report.labels)
    parts += ["## How this was measured", _METHOD, *_failures(report.failures)]
    return _joined(parts, report.library_version)


_METHOD = (
    "Figures of the calibrated judge, of the median and of the labels' own distribution are out of fold: each row was predicted "
    "by a calibrator fitted on other groups. Intervals are 95 % percentile bootstraps over groups; in slices and on the learning "
    "curve they are Student's t on group totals."
)


def run_markdown(report: RunReport) -> str:
    """Write a run report."""
    parts = [f"# {in_markdown(report.title)}"]
    for run in report.rubrics:
        parts += _run(run)
    return _joined(parts if report.rubrics else [*parts, "There are no rows."], report.library_version)


def _run(run: RubricRun) -> list[str]:
    """One rubric of a run."""
    facts = [("rows", f"{run.n:,}"), ("graded", f"{run.n_graded:,}"), ("failed", f"{run.n_failed:,}")]
    calibrated = "calibrated " if run.calibrated else ""
    if run.mean_score_bounds is not None and run.pass_rate_bounds is not None:
        low, high = run.mean_score_bounds
        facts.append(
            (f"{calibrated}mean score", f"{number(run.mean_score, 3)} ({number(low, 3)} to {number(high, 3)} with failures)")
        )
        low, high = run.pass_rate_bounds
        facts.append((f"{calibrated}pass rate", f"{percent(run.pass_rate)} ({percent(low)} to {percent(high)} with failures)"))
    parts = [f"## {in_markdown(run.rubric)}", *_answer(run.answer), _facts([*facts, *run.judge])]
    if run.levels:
        parts.append(_histogram(Counts(name="most probable level", counts=run.levels), run.labels))
    if run.threshold is not None:
        cut = run.threshold
        parts.append(
            f"{plural(cut.n_pass, 'row')} score {cut.at:g} or more, {plural(cut.n_fail, 'row')} less, "
            f"{plural(run.n_failed, 'row')} failed and are in neither."
        )
    parts += _failures(run.failures)
    for column, own in groupby(run.slices, key=lambda each: each.column):
        rows = [
            [s.value, f"{s.n:,}", f"{s.n_failed:,}", number(s.mean_score, 3), percent(s.pass_rate), _bounds(s.pass_rate_bounds)]
            for s in own
        ]
        parts.append(_table([column, "rows", "failed", "mean score", "pass rate", "with failures"], rows))
    if run.lowest:
        parts += ["### The lowest scores", *_cases(run.lowest, run.labels)]
    return parts


def _about(report: CalibrationReport) -> list[tuple[str, str]]:
    """What the report is of."""
    facts = [
        ("measured on", f"{plural(report.n_used, 'row')} with label and grade"),
        ("groups", f"{report.n_groups:,}"),
        ("label source", label_source_name(report.label_source)),
        ("rows in all", f"{report.n:,}"),
        ("without label", f"{report.n_unlabelled:,}"),
        ("failed", f"{report.n_failed:,}"),
        ("levels", ", ".join(report.labels)),
    ]
    if report.n_by_rule:
        facts.append(("blank, graded by rule", f"{report.n_by_rule:,}"))
    return [*facts, *report.judge]


def _figures(report: CalibrationReport) -> list[str]:
    """The tables of figures."""
    if not report.n_used:
        return []
    points = [
        [
            f.name,
            *(
                _share(e) if f.unit == "share" else with_interval(e)
                for e in (f.calibrated, f.calibrated_mean, f.expected_level, f.most_probable, f.constant)
            ),
        ]
        for f in report.point_figures
    ]
    spreads = [
        [f.name, *(with_interval(e, 3) for e in (f.calibrated, f.raw, f.constant, f.climatology))] for f in report.spread_figures
    ]
    thresholds = [
        [
            report.labels[f.level],
            _share(f.event_rate),
            *(with_interval(e, 3) for e in (f.brier_calibrated, f.brier_raw, f.brier_climatology, f.ece_calibrated, f.ece_raw)),
        ]
        for f in report.threshold_figures
    ]
    all_points = [
        e for f in report.point_figures for e in (f.calibrated, f.calibrated_mean, f.expected_level, f.most_probable, f.constant)
    ]
    reasons = dict.fromkeys(e.reason for e in all_points if e.reason is not None)
    return [
        _table(
            [
                "measure",
                "calibrated level",
                "calibrated mean",
                "judge, expected level",
                "judge, most probable",
                "always the median",
            ],
            points,
        ),
        *([f"Not there: {in_markdown('; '.join(reasons))}."] if reasons else []),
        _table(["measure", "calibrated", "raw judge", "always the median", "the labels' own distribution"], spreads),
        _table(
            [
                "gold is at least",
                "how often",
                "Brier, calibrated",
                "Brier, raw",
                "Brier, labels' own",
                "ECE, calibrated",
                "ECE, raw",
            ],
            thresholds,
        ),
    ]


def _answer(answer: Answer) -> list[str]:
    """A section's first sentence and what stands behind it."""
    details = "\n".join(f"- {in_markdown(detail)}" for detail in answer.details)
    return [f"**{in_markdown(answer.sentence)}**", *([details] if details else [])]


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    """Names and values as a list."""
    return "\n".join(f"- {in_markdown(name)}: {in_markdown(value)}" for name, value in facts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; every cell is made harmless here."""
    lines = [head, *rows]
    written = ["| " + " | ".join(in_markdown(cell) for cell in line) + " |" for line in lines]
    return "\n".join([written[0], "|" + " --- |" * len(head), *written[1:]])


def _histogram(counts: Counts, labels: Sequence[str]) -> str:
    """Rows by level, drawn in characters."""
    most = max(counts.counts, default=0) or 1
    rows = [
        [labels[i], f"{count:,}", "█" * round(WIDTH * count / most) or ("▏" if count else "")]
        for i, count in enumerate(counts.counts)
    ]
    return _table([counts.name, "rows", " "], rows)


def _cases(cases: Sequence[Case], labels: Sequence[str]) -> list[str]:
    """The first few cases with their texts."""
    parts = []
    for case in cases[:N_CASES]:
        shown = [
            None if case.gold is None else f"gold {level_name(case.gold, labels)}",
            None if case.predicted is None else f"calibrated {level_name(case.predicted, labels)}",
            None if case.expected_level is None else f"expected level {number(case.expected_level)}",
            None if case.score is None else f"score {number(case.score, 3)}",
            case.direction,
            " ".join(f"{label}: {100 * p:.0f} %" for label, p in zip(labels, case.probabilities, strict=False)) or None,
        ]
        lines = [f"- {in_markdown(case.id)}: {in_markdown('; '.join(part for part in shown if part))}"]
        lines += [f"  - {in_markdown(name)}: {in_markdown(text)}" for name, text in case.texts]
        parts.append("\n".join(lines))
    more = len(cases) - N_CASES
    return [*parts, *([f"{plural(more, 'more case')} in the JSON and the HTML."] if more > 0 else [])]


def _failures(failures: Sequence[Failure]) -> list[str]:
    """Failures by status."""
    rows = [[f.status, f"{f.count:,}", "; ".join(f"{name}: {message}" for name, message in f.examples)] for f in failures]
    return [_table(["failed", "rows", "examples"], rows)] if rows else []


def _share(estimate: Estimate) -> str:
    """A share and its interval."""
    if estimate.value is None or estimate.low is None:
        return percent(estimate.value)
    return f"{percent(estimate.value)} ({percent(estimate.low)} to {percent(estimate.high)})"


def _bounds(bounds: tuple[float, float] | None) -> str:
    """Two shares."""
    return "–" if bounds is None else f"{percent(bounds[0])} to {percent(bounds[1])}"


def _joined(parts: Sequence[str], version: str) -> str:
    """The whole text."""
    return "\n\n".join([*parts, f"Made by isograde {version}."]) + "\n"
