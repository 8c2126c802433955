"""Plots as inline SVG. Their colours are the page's, so that they follow its light and dark."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from isograde.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isograde.report.models import CalibrationReport
    from isograde.report.parts import Counts, Estimate, IsotonicCurve, Learning, Reliability

__all__ = ["bars", "curve", "error_bars", "histogram", "learning", "need", "reliability", "shade"]

# Stand-ins for the page's colours; the page's own are Okabe & Ito's, lightened for a dark page.
_COLOURS = {"ink": "#010101", "faint": "#020202", "one": "#030303", "two": "#040404", "three": "#050505", "paper": "#060606"}
_INK, _FAINT, _ONE, _TWO, _THREE, _PAPER = _COLOURS.values()
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": _INK,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": _FAINT,
    "grid.linewidth": 0.5,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
# Viridis at eleven steps; a cell's own text says the count, so colour is never alone.
_VIRIDIS = ("440154", "482475", "414487", "355f8d", "2a788e", "21918c", "22a884", "44bf70", "7ad151", "bddf26", "fde725")
_DARK_STEPS = 6  # below this step white text is read better


def need() -> None:
    """Raise UserError where what a report needs is not installed."""
    try:
        import jinja2  # noqa: F401 - looked for
        import matplotlib as mpl  # noqa: F401 - looked for
    except ImportError as error:
        raise UserError(f'an HTML report needs {error.name}: pip install "isograde[report]"') from None


def shade(count: int, most: int) -> str:
    """Background and text colour of a heatmap's cell, as CSS; nothing for an empty cell."""
    if not count:
        return ""
    step = round((len(_VIRIDIS) - 1) * (count / most) ** 0.5)
    return f"background:#{_VIRIDIS[step]};color:{'#fff' if step < _DARK_STEPS else '#000'}"


def _svg(name: str, draw: Callable[[Axes], None], *, size: tuple[float, float]) -> str:
    """Draw on axes of that size in inches; ``name`` keeps the ids of a page's plots apart."""
    from io import StringIO

    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style: Any = {**_STYLE, "svg.hashsalt": name}
    with mpl.rc_context(style):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.add_subplot())
        file = StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r' (xmlns|xmlns:xlink|version|width|height)="[^"]*"', "", text.split(">", 1)[0]) + ">" + text.split(">", 1)[1]
    # A page may hold several plots: ids that matplotlib numbers, as against hashes, are no use outside it.
    text = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", text)
    for variable, colour in _COLOURS.items():
        text = text.replace(colour, f"var(--{variable})")
    text = re.sub(r"font-family: [^;]*; ", "", text)
    return re.sub(r"\n\s*", "\n", text).replace("<svg", '<svg class="plot" aria-hidden="true" focusable="false"', 1)


def error_bars(report: CalibrationReport) -> str:
    """MAE of each forecast with its interval, the best on top."""
    mae = report.point_figures[0]
    rows: list[tuple[str, Estimate, str]] = [
        ("calibrated", mae.calibrated, _ONE),
        ("judge, expected level", mae.expected_level, _TWO),
        ("judge, most probable", mae.most_probable, _TWO),
        ("always the median", mae.constant, _FAINT),
    ]
    rows = [row for row in rows if row[1].value is not None]

    def draw(axes: Axes) -> None:
        for place, (_, estimate, colour) in enumerate(rows):
            axes.barh(place, estimate.value or 0, color=colour, height=0.6)
            if estimate.low is not None and estimate.high is not None:
                axes.plot([estimate.low, estimate.high], [place, place], color=_INK, linewidth=2, solid_capstyle="butt")
        axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("mean distance from gold, in levels (MAE)")
        axes.set_xlim(left=0)

    return _svg("mae", draw, size=(5.2, 0.42 * len(rows) + 0.8))


def curve(shown: IsotonicCurve, labels: Sequence[str]) -> str:
    """The calibrated mean and median along the judge's axis, over the labels."""

    def draw(axes: Axes) -> None:
        most = max((count for *_, count in shown.points), default=1)
        axes.scatter(
            [x for x, *_ in shown.points],
            [y for _, y, _ in shown.points],
            s=[12 + 160 * count / most for *_, count in shown.points],
            facecolor=_TWO,
            alpha=0.45,
            edgecolor="none",
            label="labels",
        )
        axes.plot(shown.score, shown.mean, color=_ONE, linewidth=2.4, label="calibrated mean")
        axes.plot(shown.score, shown.median, color=_INK, linewidth=1.4, linestyle="--", label="calibrated median")
        axes.set_xlabel(shown.score_name)
        axes.set_ylabel("gold level")
        axes.set_yticks(range(len(labels)), labels)
        if "expected" in shown.score_name:
            axes.set_xticks(range(len(labels)), labels)
        axes.set_ylim(-0.2, len(labels) - 0.8)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.17), ncols=3, fontsize=9.5, handlelength=1.6, columnspacing=1)

    return _svg("curve", draw, size=(5.2, 3.9))


def reliability(shown: Reliability, labels: Sequence[str]) -> str:
    """One threshold's reliability diagram, with the forecasts' histogram along the bottom."""

    def draw(axes: Axes) -> None:
        most = max(shown.histogram) or 1
        axes.bar(
            [0.05 + 0.1 * i for i in range(10)], [0.25 * c / most for c in shown.histogram], width=0.09, color=_FAINT, alpha=0.5
        )
        axes.plot([0, 1], [0, 1], color=_INK, linewidth=0.8, linestyle=":")
        if shown.raw:
            axes.plot(*zip(*shown.raw, strict=True), color=_TWO, linewidth=1.8, linestyle="--", label="raw judge")
        axes.plot(*zip(*shown.calibrated, strict=True), color=_ONE, linewidth=2.4, marker="o", markersize=3.5, label="calibrated")
        axes.set_xlabel(f"forecast: gold is {labels[shown.level]} or more")
        axes.set_ylabel("came true")
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
        axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=2, fontsize=9.5, handlelength=2)

    return _svg(f"reliability{shown.level}", draw, size=(3.4, 3.5))


def bars(shown: Sequence[Counts], labels: Sequence[str]) -> str:
    """Rows by level, side by side, as shares."""
    fills: list[dict[str, Any]] = [{"color": _THREE}, {"color": _TWO, "hatch": "///", "edgecolor": _PAPER}, {"color": _ONE}]

    def draw(axes: Axes) -> None:
        width = 0.8 / len(shown)
        for i, counts in enumerate(shown):
            total = sum(counts.counts) or 1
            places = [level + (i - (len(shown) - 1) / 2) * width for level in range(len(labels))]
            axes.bar(
                places, [100 * count / total for count in counts.counts], width * 0.94, label=counts.name, linewidth=0, **fills[i]
            )
        axes.set_xticks(range(len(labels)), labels)
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("level")
        axes.set_ylabel("% of rows")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.17), ncols=3, fontsize=9.5)

    return _svg("levels", draw, size=(5.2, 3.1))


def learning(shown: Learning, report: CalibrationReport) -> str:
    """Calibrated MAE as labels grow, beside what needs no labels."""
    mae = report.point_figures[0]

    def draw(axes: Axes) -> None:
        held, last = shown.points[:-1], shown.points[-1]
        x = [point.n for point in held]
        axes.fill_between(
            x,
            [_or(p.mae.low, p.mae.value) for p in held],
            [_or(p.mae.high, p.mae.value) for p in held],
            color=_ONE,
            alpha=0.2,
            linewidth=0,
        )
        axes.plot(x, [point.mae.value or 0 for point in held], color=_ONE, marker="o", label="calibrated, groups held out")
        axes.plot(
            [last.n],
            [last.mae.value or 0],
            color=_ONE,
            marker="D",
            markersize=7,
            linestyle="none",
            label="all labels, out of fold",
        )
        for estimate, name, colour, style in (
            (mae.expected_level, "raw expected level", _TWO, "--"),
            (mae.constant, "always the median", _INK, ":"),
        ):
            if estimate.value is not None:
                axes.axhline(estimate.value, color=colour, linestyle=style, linewidth=1.6, label=name)
        axes.set_xscale("log")
        ticks = [point.n for point in shown.points]
        # the last two may lie too near one another to label both
        shown_ticks = [*[n for n in ticks[:-1] if n < ticks[-1] / 1.35], ticks[-1]]
        axes.set_xticks(shown_ticks, [f"{n:,}" for n in shown_ticks])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_xlabel("labels fitted to")
        axes.set_ylabel("MAE, in levels")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.26), ncols=2, fontsize=9.5)

    return _svg("learning", draw, size=(5.2, 3.6))


def histogram(counts: Sequence[int], name: str, *, threshold: float | None = None) -> str:
    """Rows by score in [0, 1]."""

    def draw(axes: Axes) -> None:
        width = 1 / len(counts)
        axes.bar([(i + 0.5) * width for i in range(len(counts))], counts, width * 0.92, color=_ONE, linewidth=0)
        if threshold is not None:
            axes.axvline(threshold, color=_INK, linestyle="--", linewidth=1.4)
            axes.annotate(
                f"threshold {threshold:g}", (threshold, 1), (4, -2), ("data", "axes fraction"), "offset points", va="top"
            )
        axes.set_xlim(0, 1)
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("score")
        axes.set_ylabel("rows")

    return _svg(f"scores{name}", draw, size=(5.2, 2.8))


def _or(value: float | None, other: float | None) -> float:
    """The first that is there."""
    return value if value is not None else other if other is not None else 0.0
