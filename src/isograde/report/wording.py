"""The sentences that a reader who reads no other takes away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isograde.report.parts import Answer, Estimate, Human, Learning, PointFigure, SignalTest, Slice, Trust
from isograde.report.text import level_name, number, percent, plural

if TYPE_CHECKING:
    from isograde.calibration import Signal

__all__ = ["errors_answer", "gain_answer", "label_source_name", "signal_tests", "trust_answer", "with_interval"]

TOO_FEW = 10  # labels below which nothing is claimed
FEW = 50  # labels or groups below which «no signal» means «not enough labels»
FEW_GROUPS = 20
_MORE = {
    "pays": "more would pay",
    "may pay": "more may pay",
    "pays little": "enough: more would pay little",
    "cannot be told": "no telling whether more would pay",
}
LITTLE = 0.1  # share of the constant's error below which a gain is small


def with_interval(estimate: Estimate, digits: int = 2) -> str:
    """A figure and its interval."""
    if estimate.value is None:
        return "not defined"
    text = number(estimate.value, digits)
    return text if estimate.low is None else f"{text} ({number(estimate.low, digits)} to {number(estimate.high, digits)})"


def label_source_name(label_source: str | None) -> str:
    """Who gave the labels, for people who do not know what «authored» means."""
    if label_source == "authored":
        return "authored: written with the items, not given by independent raters"
    return label_source or "not said"


def signal_tests(signal: Signal) -> tuple[SignalTest, ...]:
    """The two tests of the judge against ignoring the judge."""
    named = (("MAE beside always the median level", signal.mae), ("RPS beside the labels' own distribution", signal.rps))
    return tuple(
        SignalTest(
            name=name,
            mean=gain.out_of_fold.mean,
            upper=gain.out_of_fold.upper,
            hindsight_upper=gain.hindsight.upper,
            claimed=gain.claimed,
            reason=gain.out_of_fold.reason,
        )
        for name, gain in named
    )


def trust_answer(
    *,
    mae: PointFigure,
    tests: Sequence[SignalTest],
    human: Human | None,
    learning: Learning | None,
    n: int,
    n_groups: int,
    top: int,
    label_source: str | None,
    same: bool,
) -> tuple[Trust, Answer]:
    """Can the judge be trusted on this task?"""
    calibrated, constant = mae.calibrated, mae.constant
    if calibrated.value is None or constant.value is None:
        return "not known", Answer(sentence=f"Not known: {calibrated.reason}.")
    distance = f"calibrated, it is {with_interval(calibrated)} levels from the humans on average, on levels 0 to {top}"
    blind = f"always answering the median level is {number(constant.value)} off"
    labels = plural(n, "authored label" if label_source == "authored" else "label") + (
        f" in {plural(n_groups, 'group')}" if n_groups < n else ""
    )
    details = [] if learning is None else [learning.sentence]
    if n_groups < FEW_GROUPS:
        details.append(
            f"The labels are in {n_groups} groups only, so every interval here is rough; label other questions rather than more "
            "answers to the same."
        )
    trust: Trust
    if n < TOO_FEW:
        trust, opening = "not known", f"Not known yet: {labels} are too few to tell; label {FEW} or more"
    elif any(test.claimed for test in tests):
        small = constant.value - calibrated.value < LITTLE * constant.value
        trust = "a little" if small else "yes"
        if small and not tests[0].claimed:
            opening = "A little: the judge has signal in its probabilities, but hardly moves the most likely level"
        else:
            opening = "A little: the judge has signal, but it is weak" if small else "Yes: the judge has signal on this task"
    elif same:
        trust = "not known"
        opening = f"Not known: all {labels} are the same level, so nothing shows whether the judge tells levels apart"
    elif n_groups < FEW:
        trust = "not known"
        opening = f"Not known yet: {labels} do not show whether the judge tells good from bad; label {FEW} or more"
    else:
        trust = "no"
        opening = f"No: on {labels} the judge tells no more than a judge that always gives the same answer"
    more = "" if learning is None or trust == "not known" else f"; {_MORE[learning.more]}"
    sentence = f"{opening}; {distance}, where {blind} ({labels}{more})."
    if human is not None and human.human_mae.value is not None and human.judge_mae.value is not None:
        nearer = "nearer than" if human.judge_mae.value < human.human_mae.value else "further than"
        details.insert(
            0,
            f"Human yardstick: a rater is {number(human.human_mae.value)} levels from the other raters' median; the calibrated "
            f"judge is {number(human.judge_mae.value)} from the same rater, {nearer} the other raters are.",
        )
    return trust, Answer(sentence=sentence, details=tuple(details))


def gain_answer(mae: PointFigure, gain: Estimate | None) -> Answer:
    """How much does calibration help? ``gain`` is MAE(raw) − MAE(calibrated), paired."""
    calibrated, raw = mae.calibrated, mae.expected_level
    if calibrated.value is None:
        return Answer(sentence=f"Not known: {calibrated.reason}.")
    if gain is None or gain.value is None or raw.value is None:
        return Answer(
            sentence=f"The calibrated error is {with_interval(calibrated)} levels; there is no raw one to compare: {raw.reason}."
        )
    change = f"from {number(raw.value)} (the raw expected level) to {number(calibrated.value)} levels"
    interval = "" if gain.low is None else f", a gain of {with_interval(gain)}"
    details = []
    constant, most_probable = mae.constant.value, mae.most_probable.value
    if constant is not None and constant - calibrated.value < LITTLE * constant:
        details.append(f"Always answering the median level would do about as well ({number(constant)}).")
    if most_probable is not None and most_probable <= calibrated.value:
        details.append(f"The judge's most probable level, uncalibrated, is as near to the humans ({number(most_probable)}).")
    if gain.low is not None and gain.low > 0:
        share = percent(gain.value / raw.value)
        sentence = f"Calibration helps: it brings the mean error {change}{interval}, {share} of the raw error."
    elif gain.high is not None and gain.high < 0:
        sentence = f"Calibration does harm with these few labels: it takes the error {change}{interval}; use the raw level."
    else:
        sentence = f"Calibration makes no difference that these labels can show: the mean error goes {change}{interval}."
    return Answer(sentence=sentence, details=tuple(details))


def errors_answer(
    bias: Estimate,
    slices: Sequence[Slice],
    *,
    named: tuple[str, str],
    n: int,
    far: tuple[int, int],
    labels: Sequence[str],
    worst_gold: float | None,
) -> Answer:
    """Where is the judge wrong? ``named``: whose bias, whose rows; ``far``: how many rows are off by how many levels or more."""
    if bias.value is None:
        return Answer(sentence=f"Not known: {bias.reason}.")
    if bias.low is not None and bias.low > 0:
        lean = f"on average too lenient by {number(bias.value)} levels ({number(bias.low)} to {number(bias.high)})"
    elif bias.high is not None and bias.high < 0:
        lean = f"on average too strict by {number(-bias.value)} levels ({number(-bias.high)} to {number(-(bias.low or 0))})"
    else:
        lean = "on average neither too lenient nor too strict"
    count, levels = far
    off = f"{'is' if count == 1 else 'are'} off by {plural(levels, 'level')} or more"
    sentence = f"The {named[0]} judge is {lean}; {named[1]}, {count:,} of {plural(n, 'row')} ({percent(count / n)}) {off}."
    details = []
    rated = [each for each in slices if each.mae_calibrated.value is not None and each.mae_calibrated.n >= 10]
    if rated:
        worst = max(rated, key=lambda each: each.mae_calibrated.value or 0)
        details.append(
            f"Worst slice of ten rows or more: {worst.column} = {worst.value}, {with_interval(worst.mae_calibrated)} levels off "
            f"({plural(worst.n, 'row')}). The worst of many slices looks bad by chance too."
        )
    if worst_gold is not None:
        details.append(f"The calibrated judge errs most on rows whose gold level is {level_name(worst_gold, labels)}.")
    return Answer(sentence=sentence, details=tuple(details))
