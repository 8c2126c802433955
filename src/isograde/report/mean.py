"""The report of a run's mean and pass rate, estimated from the judge and few gold labels."""

from __future__ import annotations

from typing import Literal

from isograde._version import __version__
from isograde.calibration.estimation import MeanEstimate, MeanInterval
from isograde.report import markdown_parts as md
from isograde.report.models import Report
from isograde.report.parts import Answer, Count, Estimate, Finite, Shown
from isograde.report.text import in_markdown, number, percent, plural
from isograde.report.wording import with_interval

__all__ = ["METHOD", "MeanReport", "mean_report"]

METHOD = (
    "The labels' mean is corrected by how far the labelled rows are from all rows in the judge's eyes (prediction-powered "
    "inference); the judge is calibrated out of fold, and weighs as much as it explains. Intervals are 95 %, Student's t on "
    "group totals, or bounded-mean intervals of the labels alone where too few labels differ for that. Labels that were drawn "
    "with unequal, known probabilities are weighted by their inverse."
)


class MeanReport(Report):
    """How good a run's answers are; made by :func:`mean_report`. Means are scores: 1 is the whole scale.

    Attributes
    ----------
    mean_answer, pass_answer : Answer
    mean, pass_rate : Estimate
    mean_label_only, pass_label_only : Estimate
        The labels alone.
    judge_mean, judge_pass_rate : float or None
        The raw judge alone.
    rogan_gladen : Estimate or None
        The textbook correction of the judge's pass rate.
    mean_bounds, pass_bounds : pair of float or None
        What the rows that could not be graded allow; None where there are none.
    """

    kind: Literal["mean"] = "mean"
    title: Shown
    library_version: Shown
    judge: tuple[tuple[Shown, Shown], ...]
    estimand: Literal["population", "set"]
    pass_at: Finite
    n: Count
    n_failed: Count
    n_labelled: Count
    n_groups: Count
    weighted: bool
    mean_answer: Answer
    pass_answer: Answer
    mean: Estimate
    pass_rate: Estimate
    mean_label_only: Estimate
    pass_label_only: Estimate
    judge_mean: Finite | None
    judge_pass_rate: Finite | None
    rogan_gladen: Estimate | None
    mean_bounds: tuple[Finite, Finite] | None
    pass_bounds: tuple[Finite, Finite] | None
    effective_n: Finite

    def figures(self) -> list[tuple[str, str, str]]:
        """Name each figure: mean score and pass rate, as text."""
        found = [
            ("estimate", with_interval(self.mean, 3), md.share(self.pass_rate)),
            ("labels alone", with_interval(self.mean_label_only, 3), md.share(self.pass_label_only)),
            ("judge alone, raw", number(self.judge_mean, 3), percent(self.judge_pass_rate)),
        ]
        return found if self.rogan_gladen is None else [*found, ("Rogan–Gladen, textbook", "–", md.share(self.rogan_gladen))]

    def facts(self) -> list[tuple[str, str]]:
        """Counts behind the figures."""
        of = "the population that the rows were drawn from" if self.estimand == "population" else "these very rows"
        return [
            ("mean of", of),
            ("rows", f"{self.n:,}, of them {self.n_failed:,} not graded"),
            ("gold labels", f"{self.n_labelled:,} in {plural(self.n_groups, 'group')}{', weighted' if self.weighted else ''}"),
            ("passes from", f"a score of {self.pass_at:g}"),
            *self.judge,
        ]

    def to_markdown(self) -> str:
        """Write the report as Markdown."""
        parts = [
            f"# {in_markdown(self.title)}",
            *md.answer(self.mean_answer),
            *md.answer(self.pass_answer),
            md.table(["", "mean score", "pass rate"], self.figures()),
            md.facts(self.facts()),
            "## How this was measured",
            METHOD,
        ]
        return md.joined(parts, self.library_version)

    def to_html(self) -> str:
        """Write the report as one self-contained HTML file.

        Raises
        ------
        UserError
            Jinja2 is missing.
        """
        from isograde.report.html import mean_html

        return mean_html(self)


def mean_report(
    mean: MeanEstimate,
    pass_rate: MeanEstimate,
    *,
    n_levels: int,
    pass_at: float,
    n_failed: int = 0,
    weighted: bool = False,
    title: str = "How good are the answers?",
    judge: tuple[tuple[str, str], ...] = (),
) -> MeanReport:
    """Put a run's estimates into words.

    Parameters
    ----------
    mean, pass_rate : MeanEstimate
        Of the graded rows.
    n_levels : int
    pass_at : float
        Score from which an answer passes.
    n_failed : int
        Rows that could not be graded.
    weighted : bool
        Whether the labels were drawn with unequal probabilities.
    title : str
    judge : tuple of (name, value)
        Who graded.

    Returns
    -------
    MeanReport

    Examples
    --------
    >>> from isograde.calibration.estimation import estimate_mean, estimate_pass_rate
    >>> score, gold = [0.0, 0.5, 1.0] * 40, [0.0, 2.0, 4.0] * 5 + [None] * 105
    >>> mean, rate = (f(score, gold, score_range=(0, 1)) for f in (estimate_mean, estimate_pass_rate))
    >>> mean_report(mean, rate, n_levels=5, pass_at=0.75).mean_answer.sentence
    'The mean score is 0.500 (95 % interval 0.399 to 0.601).'
    """
    top = n_levels - 1
    share = _scaled(pass_rate, 1)
    score = _scaled(mean, top)
    n = mean.n_items + n_failed
    return MeanReport(
        title=title,
        library_version=__version__,
        judge=judge,
        estimand=mean.estimand,
        pass_at=pass_at,
        n=n,
        n_failed=n_failed,
        n_labelled=mean.n_labelled,
        n_groups=mean.n_groups,
        weighted=weighted,
        mean_answer=_answer(mean, score, n_failed, top),
        pass_answer=Answer(
            sentence=f"{percent(share.value)} would pass (95 % interval {percent(share.low)} to {percent(share.high)})."
        ),
        mean=score,
        pass_rate=share,
        mean_label_only=_scaled(mean.label_only, top, mean.n_labelled),
        pass_label_only=_scaled(pass_rate.label_only, 1, mean.n_labelled),
        judge_mean=None if mean.judge_mean is None else mean.judge_mean / top,
        judge_pass_rate=pass_rate.judge_mean,
        rogan_gladen=None if pass_rate.rogan_gladen is None else _scaled(pass_rate.rogan_gladen, 1, mean.n_labelled),
        mean_bounds=_bounds(mean.mean / top, mean.n_items, n_failed),
        pass_bounds=_bounds(pass_rate.mean, mean.n_items, n_failed),
        effective_n=mean.effective_n,
    )


def _scaled(found: MeanEstimate | MeanInterval, unit: float, n: int | None = None) -> Estimate:
    """A mean as a figure of a report."""
    n_used = found.n_labelled if isinstance(found, MeanEstimate) else n or 0
    return Estimate(value=found.mean / unit, low=found.low / unit, high=found.high / unit, n=n_used)


def _bounds(mean: float, n_graded: int, n_failed: int) -> tuple[float, float] | None:
    """Mean of all rows if those that could not be graded are the worst, and the best."""
    total = n_graded + n_failed
    return None if not n_failed else (mean * n_graded / total, (mean * n_graded + n_failed) / total)


def _answer(mean: MeanEstimate, score: Estimate, n_failed: int, top: int) -> Answer:
    """How good the answers are, in a sentence."""
    details = []
    labels = plural(mean.n_labelled, "gold label")
    if mean.method == "prediction-powered":
        details.append(f"{labels} and the judge tell as much as {mean.effective_n:,.0f} labels alone.")
    else:
        details.append(f"The interval rests on {labels} alone: {mean.reason}.")
    raw = None if mean.judge_mean is None else mean.judge_mean / top
    if raw is not None and score.low is not None and score.high is not None and not score.low <= raw <= score.high:
        way = "lenient" if score.high < raw else "strict"
        details.append(f"The judge alone says {number(raw, 3)}: it is too {way}.")
    bounds = _bounds(mean.mean / top, mean.n_items, n_failed)
    if bounds is not None:
        details.append(
            f"{plural(n_failed, 'row')} could not be graded; whatever they deserve, the mean of all rows lies between "
            f"{number(bounds[0], 3)} and {number(bounds[1], 3)}, before sampling error."
        )
    return Answer(
        sentence=f"The mean score is {with_interval(score, 3).replace('(', '(95 % interval ')}.", details=tuple(details)
    )
