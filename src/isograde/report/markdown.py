"""Reports as Markdown: the order of the HTML, with tables in place of plots."""

from __future__ import annotations

from itertools import groupby

from isograde.report import markdown_parts as md
from isograde.report.models import CalibrationReport, RubricRun, RunReport
from isograde.report.parts import Counts, Estimate, Habits, Intervals
from isograde.report.signal_parts import SignalTable, about_signals
from isograde.report.text import in_markdown, number, percent, plural
from isograde.report.wording import label_source_name, with_interval

__all__ = ["calibration_markdown", "run_markdown", "signals_markdown"]


def calibration_markdown(report: CalibrationReport) -> str:
    """Write a calibration report."""
    title = in_markdown(report.title)
    parts = [
        f"# {title}",
        "## Can this judge be trusted on this task?",
        *md.answer(report.trust_answer),
        md.facts(_about(report)),
    ]
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
            md.table(
                ["signal: calibrated judge", "gain", "difference", "upper limit, 95 %", "beside the best in hindsight"], rows
            )
        )
    if report.human is not None:
        human = report.human
        rows = [
            ["other raters' median to the held-out rater (MAE)", with_interval(human.human_mae)],
            ["judge to the held-out rater (MAE)", with_interval(human.judge_mae)],
            ["how often the judge is nearer", md.share(human.judge_nearer)],
            ["raters that the judge may stand in for", md.share(human.winning_rate)],
            ["Krippendorff's α of the raters", with_interval(human.alpha)],
            ["α with the judge as one more rater", with_interval(human.alpha_with_judge)],
        ]
        parts.append(
            md.table([f"human yardstick: {plural(human.n_raters, 'rater')}, {plural(human.n_items, 'item')}", "figure"], rows)
        )
    parts += ["## How much does calibration help?", *md.answer(report.gain_answer), *_figures(report)]
    if report.learning is not None:
        parts += [in_markdown(report.learning.sentence)]
        rows = [[f"{point.n:,}", with_interval(point.mae)] for point in report.learning.points]
        parts.append(md.table(["labels", "calibrated MAE"], rows))
    if report.signal_table is not None:
        parts += signals_markdown(report.signal_table)
    if report.intervals is not None:
        parts += _intervals(report.intervals)
    parts += ["## Where is it wrong?", *md.answer(report.errors_answer)]
    for heat in report.heatmaps:
        rows = [[report.labels[i], *(f"{count:,}" for count in row)] for i, row in enumerate(heat.counts)]
        parts.append(md.table([f"{heat.name} ↓ gold →", *report.labels], rows))
    parts += [md.histogram(counts, report.labels) for counts in report.distributions]
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
        parts.append(md.table([column, "rows", "mean gold", "mean judge", "bias", "MAE, raw", "MAE, calibrated"], rows))
    if report.worst:
        parts.append("### The worst disagreements")
        parts += md.cases(report.worst, report.labels)
    if report.habits is not None:
        parts += _habits(report.habits)
    parts += ["## How this was measured", _METHOD, *md.failures(report.failures)]
    return md.joined(parts, report.library_version)


_METHOD = (
    "Figures of the calibrated judge, of the median and of the labels' own distribution are out of fold: each row was predicted "
    "by a calibrator fitted on other groups. Intervals are 95 % percentile bootstraps over groups; in slices and on the learning "
    "curve they are Student's t on group totals. Intervals of single grades are conformal (CV+ on ordinal sets), each from "
    "labels of other groups; they hold on average over items of new groups. Judge habits are least squares of the judge's "
    "expected level on gold, as categories, and one thing more, with CR2 standard errors by group and Student's t "
    "(Bell–McCaffrey)."
)


def run_markdown(report: RunReport) -> str:
    """Write a run report."""
    parts = [f"# {in_markdown(report.title)}"]
    for run in report.rubrics:
        parts += _run(run)
    return md.joined(parts if report.rubrics else [*parts, "There are no rows."], report.library_version)


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
    parts = [f"## {in_markdown(run.rubric)}", *md.answer(run.answer), md.facts([*facts, *run.judge])]
    if run.levels:
        parts.append(md.histogram(Counts(name="most probable level", counts=run.levels), run.labels))
    if run.threshold is not None:
        cut = run.threshold
        parts.append(
            f"{plural(cut.n_pass, 'row')} score {cut.at:g} or more, {plural(cut.n_fail, 'row')} less, "
            f"{plural(run.n_failed, 'row')} failed and are in neither."
        )
    parts += md.failures(run.failures)
    for column, own in groupby(run.slices, key=lambda each: each.column):
        rows = [
            [s.value, f"{s.n:,}", f"{s.n_failed:,}", number(s.mean_score, 3), percent(s.pass_rate), md.bounds(s.pass_rate_bounds)]
            for s in own
        ]
        parts.append(md.table([column, "rows", "failed", "mean score", "pass rate", "with failures"], rows))
    if run.lowest:
        parts += ["### The lowest scores", *md.cases(run.lowest, run.labels)]
    return parts


def _intervals(intervals: Intervals) -> list[str]:
    """How sure a single grade is."""
    parts = ["## How sure is a single grade?", *md.answer(intervals.answer)]
    for column, own in groupby(intervals.slices, key=lambda each: each.column):
        rows = [[s.value, f"{s.n:,}", md.share(s.coverage), with_interval(s.width)] for s in own]
        hold = f"{100 * intervals.confidence_level:g} % intervals hold gold"
        parts.append(md.table([column, "rows", hold, "mean width, levels"], rows))
    return parts


def _habits(habits: Habits) -> list[str]:
    """What the judge favours beside quality."""
    rows = [
        [row.name, f"{row.difference.n:,}", with_interval(row.difference), number(row.p_value, 3), "yes" if row.shown else "no"]
        for row in habits.rows
    ]
    head = ["at equal gold", "rows", "judge's level, difference", "p, corrected (Holm)", "shown"]
    return [
        "## Does the judge favour something beside quality?",
        *md.answer(habits.answer),
        *([md.table(head, rows)] if rows else []),
    ]


def signals_markdown(signals: SignalTable) -> list[str]:
    """Write what each signal is worth."""
    rows = [
        [
            row.name,
            "" if row.share is None else f"{100 * row.share:.0f} %",
            *(_or_blank(estimate) for estimate in (row.mae, row.mae_difference, row.rps, row.rps_difference)),
            {"nearer": "nearer", "further": "further", None: "" if row.rps_difference is None else "not shown"}[row.shown],
            *(_or_blank(estimate) for estimate in (row.spearman, row.spearman_difference)),
            "–" if row.tokens is None else number(row.tokens, 0),
            number(row.seconds, 3),
        ]
        for row in signals.rows
    ]
    head = ["signal", "share", "MAE", "Δ MAE", "RPS", "Δ RPS", "shown", "Spearman ρ", "Δ ρ"]
    return [
        "## What is each signal worth?",
        *md.answer(signals.answer),
        *([md.table([*head, "tokens", "seconds"], rows), in_markdown(about_signals(signals))] if rows else []),
    ]


def _or_blank(estimate: Estimate | None) -> str:
    """A figure with its interval, or nothing."""
    return "" if estimate is None else with_interval(estimate)


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
                md.share(e) if f.unit == "share" else with_interval(e)
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
            md.share(f.event_rate),
            *(with_interval(e, 3) for e in (f.brier_calibrated, f.brier_raw, f.brier_climatology, f.ece_calibrated, f.ece_raw)),
        ]
        for f in report.threshold_figures
    ]
    all_points = [
        e for f in report.point_figures for e in (f.calibrated, f.calibrated_mean, f.expected_level, f.most_probable, f.constant)
    ]
    reasons = dict.fromkeys(e.reason for e in all_points if e.reason is not None)
    return [
        md.table(
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
        md.table(["measure", "calibrated", "raw judge", "always the median", "the labels' own distribution"], spreads),
        md.table(
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
