"""Reports as one HTML file that asks for nothing outside itself."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from isograde.report import plots, text
from isograde.report.models import CalibrationReport, RunReport, RunSlice
from isograde.report.parts import Case, IntervalSlice, Slice
from isograde.report.signal_parts import about_signals
from isograde.report.wording import label_source_name, with_interval

if TYPE_CHECKING:
    from jinja2 import Environment

    from isograde.report.comparison import ComparisonReport
    from isograde.report.drift import DriftReport
    from isograde.report.mean import MeanReport

__all__ = ["calibration_html", "comparison_html", "drift_html", "mean_html", "run_html"]


def calibration_html(report: CalibrationReport) -> str:
    """Render a calibration report."""
    plots.need()
    drawn = {
        "mae": plots.error_bars(report) if report.point_figures[0].calibrated.value is not None else "",
        "curve": plots.curve(report.curve, report.labels) if report.curve is not None else "",
        "levels": plots.bars(report.distributions, report.labels) if report.distributions else "",
        "learning": plots.learning(report.learning, report) if report.learning is not None else "",
        "reliability": [plots.reliability(each, report.labels) for each in report.reliability],
    }
    return _render("calibration.html.j2", report=report, plots=_safe(drawn), slices=_by_column(report.slices))


def run_html(report: RunReport) -> str:
    """Render a run report."""
    plots.need()
    drawn = [
        plots.histogram(run.score_histogram, str(i), threshold=None if run.threshold is None else run.threshold.at)
        if any(run.score_histogram)
        else ""
        for i, run in enumerate(report.rubrics)
    ]
    slices = [_by_column(run.slices) for run in report.rubrics]
    return _render("run.html.j2", report=report, plots=_safe(drawn), slices=slices)


def drift_html(report: DriftReport) -> str:
    """Render a drift check."""
    return _render("drift.html.j2", report=report)


def comparison_html(report: ComparisonReport) -> str:
    """Render a comparison of two systems."""
    from isograde.report.comparison import METHOD, gold_change, p_value, signed

    return _render("comparison.html.j2", report=report, method=METHOD, signed=signed, gold_change=gold_change, p_value=p_value)


def mean_html(report: MeanReport) -> str:
    """Render a run's estimated mean."""
    from isograde.report.mean import METHOD

    return _render("mean.html.j2", report=report, method=METHOD)


def _safe(drawn: Any) -> Any:
    """Mark plots, the one HTML that is not made by a template; matplotlib escapes the text in them."""
    from markupsafe import Markup

    if isinstance(drawn, dict):
        return {name: _safe(each) for name, each in drawn.items()}
    if isinstance(drawn, list):
        return [_safe(each) for each in drawn]
    return Markup(drawn)  # noqa: S704 - see above


def _by_column(
    slices: Sequence[Slice | RunSlice | IntervalSlice],
) -> list[tuple[str, list[Slice | RunSlice | IntervalSlice]]]:
    """Slices of each column together."""
    return [(column, list(own)) for column, own in groupby(slices, key=lambda each: each.column)]


def _choices(cases: Sequence[Case]) -> list[tuple[str, list[str]]]:
    """Columns and values that cases can be filtered by."""
    found: dict[str, dict[str, None]] = {}
    for case in cases:
        for column, value in case.slices:
            found.setdefault(column, {})[value] = None
    return [(column, sorted(values)) for column, values in found.items() if len(values) > 1]


@lru_cache(maxsize=1)
def _environment() -> Environment:
    """Templates with everything that is written into them escaped, and nothing undefined."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("isograde.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        number=text.number,
        percent=text.percent,
        interval=with_interval,
        level=text.level_name,
        source=label_source_name,
        by_column=_by_column,
        choices=_choices,
        shade=plots.shade,
        about_signals=about_signals,
    )
    environment.globals.update(plural=text.plural)
    return environment


def _render(name: str, **values: Any) -> str:
    """Fill in a template; the page's policy lets only the page's own script run."""
    environment = _environment()
    loader = environment.loader
    assert loader is not None  # noqa: S101 - set above
    style, script = (loader.get_source(environment, part)[0] for part in ("style.css", "filter.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    from markupsafe import Markup

    inlined = {"style": Markup(style), "script": Markup(script)}  # noqa: S704 - the package's own files
    return environment.get_template(name).render(**values, **inlined, script_hash=f"sha256-{digest}")
