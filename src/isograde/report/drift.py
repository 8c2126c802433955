"""The report of a drift check."""

from __future__ import annotations

from typing import Literal

from isograde._version import __version__
from isograde.calibration.drift import Drift, DriftTest
from isograde.report import markdown_parts as md
from isograde.report.models import Report
from isograde.report.parts import Answer, Count, Estimate, Failure, Finite, Model, Shown
from isograde.report.text import in_markdown, number, percent, plural
from isograde.report.wording import with_interval

__all__ = ["DriftReport", "Look", "drift_report"]

_MEANING: dict[str, tuple[str, str]] = {
    "judge: level": ("mean level", "how much higher or lower the judge grades the same gold items now, in levels"),
    "judge: MAE": ("distance from the humans", "change of the raw expected level's mean absolute error, in levels"),
    "judge: distribution": ("how often each level is given", "share of probability that lies on other levels than then"),
    "data: distribution": ("levels of the new rows", "share of probability that lies on other levels than for the gold items"),
    "data: outside range": ("outside the calibrated range", "share of new rows that the judge puts where no gold item was"),
}


class Look(Model):
    """One of the check's looks; ``estimate`` in levels, or a share."""

    about: Literal["judge", "data"]
    name: Shown
    meaning: Shown
    unit: Literal["levels", "share"]
    estimate: Estimate
    p_adjusted: Finite
    n_groups: Count
    moved: bool


class DriftReport(Report):
    """Whether a judge, or the data, has moved since a calibrator was fitted; made by :func:`drift_report`.

    Attributes
    ----------
    alarm : bool
        Something moved, gold items can no longer be graded, or it is another judge by name.
    judge_answer, data_answer : Answer
    looks : tuple of Look
    alpha, tolerance : float
        False alarms come in at most this share of the checks; smaller changes than the tolerance are none.
    differences : tuple of str
        In what the judge's name differs from the one that the calibrator was fitted on.
    n_gold, n_regraded, n_missing, n_new : int
        Gold items kept, of them graded again, of them without a new grade, and new rows.
    failures : tuple of Failure
        Gold items that could not be graded again.
    share_changed : float or None
        Gold items whose most probable level is another.
    """

    kind: Literal["drift"] = "drift"
    title: Shown
    library_version: Shown
    alarm: bool
    judge_answer: Answer
    data_answer: Answer
    looks: tuple[Look, ...]
    alpha: Finite
    tolerance: Finite
    differences: tuple[Shown, ...]
    n_gold: Count
    n_regraded: Count
    n_missing: Count
    n_new: Count
    failures: tuple[Failure, ...]
    share_changed: Finite | None

    def to_markdown(self) -> str:
        """Write the report as Markdown."""
        rows = [
            [
                look.about,
                look.name,
                look.meaning,
                percent(look.estimate.value) if look.unit == "share" else with_interval(look.estimate),
                number(look.p_adjusted, 3),
                "moved" if look.moved else "not shown",
            ]
            for look in self.looks
        ]
        facts = [
            ("gold items", f"{self.n_gold:,}"),
            ("graded again", f"{self.n_regraded:,}"),
            ("without a new grade", f"{self.n_missing:,}"),
            ("new rows", f"{self.n_new:,}"),
            ("false alarms", f"in at most {percent(self.alpha)} of the checks"),
            ("smallest change that counts", f"{self.tolerance:g} levels, or {percent(self.tolerance)} of the rows"),
            *(("another judge", difference) for difference in self.differences),
        ]
        parts = [
            f"# {in_markdown(self.title)}",
            "## Has the judge moved?",
            *md.answer(self.judge_answer),
            "## Has the data moved?",
            *md.answer(self.data_answer),
            *([md.table(["of", "look", "meaning", "change", "adjusted p", "verdict"], rows)] if rows else []),
            md.facts(facts),
        ]
        return md.joined(parts, self.library_version)

    def to_html(self) -> str:
        """Write the report as one self-contained HTML file.

        Raises
        ------
        UserError
            Jinja2 is missing.
        """
        from isograde.report.html import drift_html

        return drift_html(self)


def drift_report(
    drift: Drift,
    *,
    n_gold: int,
    n_missing: int = 0,
    n_new: int = 0,
    failures: tuple[Failure, ...] = (),
    differences: tuple[str, ...] = (),
    share_changed: float | None = None,
    title: str = "Drift check",
) -> DriftReport:
    """Put a check into words.

    Parameters
    ----------
    drift : Drift
    n_gold, n_missing, n_new : int
        Gold items kept, of them without a new grade where others have one, and new rows.
    failures : tuple of Failure
        Gold items that could not be graded again.
    differences : tuple of str
        In what the judge's name differs from the calibrator's.
    share_changed : float or None
    title : str

    Returns
    -------
    DriftReport

    Examples
    --------
    >>> drift_report(Drift.of([]), n_gold=10).judge_answer.sentence
    'Whether the judge has moved was not tested.'
    """
    looks = tuple(_look(test) for test in drift.tests)
    n_failed = sum(failure.count for failure in failures)
    judge = _judge_answer(drift, n_failed, n_missing, share_changed, differences)
    return DriftReport(
        title=title,
        library_version=__version__,
        alarm=bool(differences or drift.judge_moved or drift.data_moved or n_failed > drift.tolerance * n_gold),
        judge_answer=judge,
        data_answer=_data_answer(drift, n_new),
        looks=looks,
        alpha=drift.alpha,
        tolerance=drift.tolerance,
        differences=differences,
        n_gold=n_gold,
        n_regraded=next((test.n for test in drift.tests if test.name == "judge: level"), 0),
        n_missing=n_missing,
        n_new=n_new,
        failures=failures,
        share_changed=share_changed,
    )


def _look(test: DriftTest) -> Look:
    """A test with its name for people."""
    name, meaning = _MEANING[test.name]
    return Look(
        about="judge" if test.name.startswith("judge") else "data",
        name=name,
        meaning=meaning,
        unit="levels" if test.name in {"judge: level", "judge: MAE"} else "share",
        estimate=Estimate(value=test.estimate, low=test.low, high=test.high, n=test.n),
        p_adjusted=test.p_adjusted,
        n_groups=test.n_groups,
        moved=test.moved,
    )


def _judge_answer(
    drift: Drift, n_failed: int, n_missing: int, share_changed: float | None, differences: tuple[str, ...]
) -> Answer:
    """Whether the judge has moved, in a sentence."""
    details = [f"It is another judge by name ({each}): the calibrator will refuse it." for each in differences]
    if n_failed:
        details.append(f"{plural(n_failed, 'gold item')} can no longer be graded.")
    if n_missing:
        details.append(f"{plural(n_missing, 'gold item')} have no new grade and are left out.")
    tests = {test.name: test for test in drift.tests}
    level, error = tests.get("judge: level"), tests.get("judge: MAE")
    if level is None or error is None:
        return Answer(sentence="Whether the judge has moved was not tested.", details=tuple(details))
    # of 2^G sign patterns two reach the largest sum, and a look is one of several
    if len(drift.tests) * 2.0 ** (1 - level.n_groups) > drift.alpha:
        details.append(f"Of {plural(level.n_groups, 'group')} no check can tell a move from chance; grade more gold items again.")
    if share_changed is not None:
        details.append(f"{percent(share_changed)} of the gold items got another most probable level.")
    figures = f"mean level {_signed(level.estimate)}, distance from the humans {_signed(error.estimate)} levels"
    if drift.judge_moved:
        sentence = f"The judge has moved: on the same {plural(level.n, 'gold item')} {figures}."
    else:
        sentence = f"No move of the judge is shown on {plural(level.n, 'gold item')}: {figures}."
    return Answer(sentence=sentence, details=tuple(details))


def _data_answer(drift: Drift, n_new: int) -> Answer:
    """Whether the data has moved, in a sentence."""
    tests = {test.name: test for test in drift.tests}
    outside = tests.get("data: outside range")
    if outside is None:
        return Answer(sentence="Whether the data has moved was not tested: there are no new rows.")
    share = f"{percent(outside.estimate)} of the {plural(n_new, 'new row')} lie outside the calibrated range"
    if not drift.data_moved:
        return Answer(sentence=f"No move of the data is shown: {share}.")
    apart = tests["data: distribution"]
    return Answer(
        sentence=f"The data has moved: {share}, and {percent(apart.estimate)} of the probability lies on other levels than for "
        "the gold items.",
        details=("Label some of the new rows and calibrate again before you trust calibrated figures on them.",),
    )


def _signed(value: float) -> str:
    """A change with its sign."""
    text = number(value)
    return text if text.startswith("−") or value == 0 else f"+{text}"
