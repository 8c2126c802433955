"""The report of two systems beside one another."""

from __future__ import annotations

from itertools import groupby
from typing import Literal

from isograde._version import __version__
from isograde.calibration.comparison import MeanComparison
from isograde.calibration.estimation import MeanInterval
from isograde.report import markdown_parts as md
from isograde.report.models import Report
from isograde.report.parts import Answer, Count, Estimate, Finite, Model, Shown
from isograde.report.text import in_markdown, number, percent, plural
from isograde.report.wording import with_interval

__all__ = [
    "ChangedItem",
    "ComparedSlice",
    "ComparisonReport",
    "Pairing",
    "comparison_report",
    "gold_change",
    "signed",
    "signed_interval",
]

NOT_DEBIASED = "Judge difference, not debiased"


class Pairing(Model):
    """Rows of both systems, and what became of them.

    Attributes
    ----------
    name_a, name_b : str
        The systems, for people.
    n_a, n_b : int
        Rows.
    only_a, only_b : int
        Rows that the other system has not.
    failed_a, failed_b : int
        Rows of both that the judge could not grade on this side; a row may be in both counts.
    n_lost : int
        Rows of either system that are in no pair, each counted once.
    n_gold_a, n_gold_b : int
        Pairs with a gold label on this side.
    """

    name_a: Shown
    name_b: Shown
    n_a: Count
    n_b: Count
    only_a: Count
    only_b: Count
    failed_a: Count
    failed_b: Count
    n_lost: Count
    n_gold_a: Count
    n_gold_b: Count


class ComparedSlice(Model):
    """B − A on a part of the pairs; ``p_adjusted`` by Holm over all slices."""

    column: Shown
    value: Shown
    n_pairs: Count
    n_labelled: Count
    difference: Estimate
    p_adjusted: Finite | None
    shown: bool


class ChangedItem(Model):
    """A pair that changed much, by the judge; gold as a score where there is any."""

    id: Shown
    score_a: Finite
    score_b: Finite
    gold_a: Finite | None
    gold_b: Finite | None


class ComparisonReport(Report):
    """Whether B is better than A; made by :func:`comparison_report`. All differences are B − A, in scores: 1 is the whole scale.

    Attributes
    ----------
    debiased : bool
        Whether gold labels of both systems stand behind the difference; else it is the judge's, bias and all.
    answer : Answer
    difference : Estimate
    p_value, detectable : float
        Of no difference; and the difference that had 80 % power to be shown.
    bounds : pair of float
        What the difference would be if every lost pair were as bad, or as good, for B as can be.
    label_only, judge_only : Estimate or None
        The labelled pairs alone, and the raw judge alone.
    """

    kind: Literal["comparison"] = "comparison"
    title: Shown
    library_version: Shown
    judge: tuple[tuple[Shown, Shown], ...]
    pairing: Pairing
    debiased: bool
    answer: Answer
    n_pairs: Count
    n_labelled: Count
    n_groups: Count
    difference: Estimate
    p_value: Finite
    detectable: Finite
    bounds: tuple[Finite, Finite]
    method: Shown
    label_only: Estimate | None
    judge_only: Estimate | None
    trust: Finite
    effective_n: Finite
    slices: tuple[ComparedSlice, ...]
    changed: tuple[ChangedItem, ...]

    def figures(self) -> list[tuple[str, Estimate, float | None]]:
        """Name each difference, with its p-value where it has one."""
        found: list[tuple[str, Estimate, float | None]] = [(_METHODS[self.method], self.difference, self.p_value)]
        if self.label_only is not None and self.label_only != self.difference:
            found.append(("labelled pairs alone", self.label_only, None))
        if self.debiased and self.judge_only is not None:
            found.append(("judge alone, not debiased", self.judge_only, None))
        return found

    def facts(self) -> list[tuple[str, str]]:
        """Counts behind the figures."""
        of = self.pairing
        lost = [
            ("lost: in one file only", f"{of.only_a:,} in A, {of.only_b:,} in B"),
            ("lost: not graded", f"{of.failed_a:,} in A, {of.failed_b:,} in B"),
        ]
        return [
            ("A", f"{of.name_a}, {plural(of.n_a, 'row')}"),
            ("B", f"{of.name_b}, {plural(of.n_b, 'row')}"),
            ("pairs", f"{self.n_pairs:,}, of them {self.n_labelled:,} with gold labels on both sides"),
            ("figures rest on", plural(self.n_groups, "group")),
            *(lost if of.n_lost else []),
            *self.judge,
        ]

    def to_markdown(self) -> str:
        """Write the report as Markdown."""
        rows = [[name, signed_interval(each), p_value(p)] for name, each, p in self.figures()]
        parts = [
            f"# {in_markdown(self.title)}",
            *md.answer(self.answer),
            md.table(["B − A", "difference", "p"], rows),
            md.facts(self.facts()),
        ]
        for column, own in groupby(self.slices, key=lambda each: each.column):
            cells = [
                [s.value, f"{s.n_pairs:,}", f"{s.n_labelled:,}", signed_interval(s.difference), p_value(s.p_adjusted)]
                for s in own
            ]
            parts.append(md.table([column, "pairs", "labelled", "B − A", "adjusted p"], cells))
        if self.changed:
            items = [
                [i.id, number(i.score_a, 3), number(i.score_b, 3), signed(i.score_b - i.score_a), gold_change(i)]
                for i in self.changed
            ]
            parts += ["## What changed most", md.table(["item", "A", "B", "B − A", "gold, A → B"], items)]
        return md.joined([*parts, "## How this was measured", METHOD], self.library_version)

    def to_html(self) -> str:
        """Write the report as one self-contained HTML file.

        Raises
        ------
        UserError
            Jinja2 is missing.
        """
        from isograde.report.html import comparison_html

        return comparison_html(self)


_METHODS = {
    "prediction-powered": "debiased",
    "label-only": "labelled pairs",
    "bounded": "labelled pairs",
    "census": "labelled pairs",
    "judge": "judge, not debiased",
}

METHOD = (
    "Debiased: the difference of gold labels, corrected by how far the labelled pairs are from all pairs in the judge's eyes "
    "(prediction-powered inference); the judge is calibrated out of fold, and weighs as much as it explains. Intervals are 95 %, "
    "Student's t on group totals, or bounded-mean intervals where too few pairs differ for that; p-values come from random signs "
    "of whole groups where there are fewer than 20. In slices p is adjusted for the number of slices (Holm)."
)


def comparison_report(
    found: MeanComparison,
    pairing: Pairing,
    *,
    slices: tuple[ComparedSlice, ...] = (),
    changed: tuple[ChangedItem, ...] = (),
    judge: tuple[tuple[str, str], ...] = (),
) -> ComparisonReport:
    """Put a comparison into words.

    Parameters
    ----------
    found : MeanComparison
    pairing : Pairing
    slices : tuple of ComparedSlice
    changed : tuple of ChangedItem
        The most changed first.
    judge : tuple of (name, value)
        Who graded.

    Returns
    -------
    ComparisonReport

    Examples
    --------
    >>> from isograde.calibration.comparison import compare_judged
    >>> found = compare_judged([0.2, 0.4, 0.6, 0.5], [0.4, 0.5, 0.6, 0.9], score_range=(0, 1))
    >>> counts = dict.fromkeys(["only_a", "only_b", "failed_a", "failed_b", "n_lost", "n_gold_a", "n_gold_b"], 0)
    >>> comparison_report(found, Pairing(name_a="old", name_b="new", n_a=4, n_b=4, **counts)).title
    'Judge difference, not debiased: old (A) and new (B)'
    """
    names = f"{pairing.name_a} (A) and {pairing.name_b} (B)"
    total = found.n_pairs + pairing.n_lost
    kept, lost = found.n_pairs / total * found.difference, pairing.n_lost / total
    return ComparisonReport(
        title=f"Is B better than A? {names}" if found.debiased else f"{NOT_DEBIASED}: {names}",
        library_version=__version__,
        judge=judge,
        pairing=pairing,
        debiased=found.debiased,
        answer=_answer(found, pairing, (kept - lost, kept + lost)),
        n_pairs=found.n_pairs,
        n_labelled=found.n_labelled if found.debiased else 0,
        n_groups=found.n_groups,
        difference=estimate_of(found),
        p_value=found.p_value,
        detectable=found.detectable,
        bounds=(kept - lost, kept + lost),
        method=found.method if found.debiased else "judge",
        label_only=_interval(found.label_only, found.n_labelled),
        judge_only=_interval(found.judge_only, found.n_pairs),
        trust=found.trust,
        effective_n=found.effective_n,
        slices=slices,
        changed=changed,
    )


def estimate_of(found: MeanComparison) -> Estimate:
    """A comparison as a figure of a report."""
    return Estimate(value=found.difference, low=found.low, high=found.high, n=found.n_labelled)


def signed(value: float) -> str:
    """A difference with its sign.

    Examples
    --------
    >>> signed(0.0614), signed(-0.5), signed(0.0)
    ('+0.061', '−0.500', '0.000')
    """
    text = number(value, 3)
    return text if text.startswith("−") or not text.strip("0.") else f"+{text}"


def signed_interval(estimate: Estimate) -> str:
    """A difference with its sign and its interval."""
    text = with_interval(estimate, 3)
    return text if estimate.value is None else text.replace(number(estimate.value, 3), signed(estimate.value), 1)


def p_value(p: float | None) -> str:
    """A p-value for people.

    Examples
    --------
    >>> p_value(0.0213), p_value(0.00002), p_value(None)
    ('0.021', '< 0.001', '–')
    """
    return "< 0.001" if p is not None and p < 0.001 else number(p, 3)


def _interval(found: MeanInterval | None, n: int) -> Estimate | None:
    """An interval as a figure of a report."""
    return None if found is None else Estimate(value=found.mean, low=found.low, high=found.high, n=n)


def gold_change(item: ChangedItem) -> str:
    """Gold scores of both sides."""
    return "–" if item.gold_a is None and item.gold_b is None else f"{number(item.gold_a)} → {number(item.gold_b)}"


def _answer(found: MeanComparison, pairing: Pairing, bounds: tuple[float, float]) -> Answer:
    """Which system is better, in a sentence."""
    interval = f"B − A is {signed(found.difference)} (95 % interval {signed(found.low)} to {signed(found.high)})"
    shown = found.low > 0 or found.high < 0
    details = []
    if not found.debiased:
        sentence = f"{NOT_DEBIASED}: {interval}."
        sides = f"{pairing.n_gold_a:,} pairs have a gold label on A's side, {pairing.n_gold_b:,} on B's, none on both. "
        details.append(
            (sides if pairing.n_gold_a or pairing.n_gold_b else "There are no gold labels. ")
            + "A judge that favours one system would give such figures; to know, label both systems' answers to the same inputs."
        )
    elif found.low > 0:
        sentence = f"B is better than A: {interval}."
    elif found.high < 0:
        sentence = f"B is worse than A: {interval}."
    else:
        sentence = f"No difference between A and B is shown: {interval}."
    if found.debiased and found.method == "prediction-powered":
        pairs = plural(found.n_labelled, "labelled pair")
        details.append(f"{pairs} and the judge tell as much as {found.effective_n:,.0f} labelled pairs alone.")
    elif found.debiased:
        details.append(f"The interval rests on {plural(found.n_labelled, 'labelled pair')} alone: {found.reason}.")
    if not shown:
        details.append(f"A difference of {number(found.detectable, 3)} would have been shown with 80 % power.")
    if pairing.n_lost:
        share = percent(pairing.n_lost / (found.n_pairs + pairing.n_lost))
        details.append(
            f"{plural(pairing.n_lost, 'row')} ({share}) are in no pair; whatever they deserve, B − A lies between "
            f"{signed(bounds[0])} and {signed(bounds[1])} on all rows, before sampling error."
        )
    return Answer(sentence=sentence, details=tuple(details))
