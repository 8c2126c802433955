"""The table of signals as a report keeps it, and its sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from isograde.report.parts import Answer, Count, Estimate, Finite, Model, Shown
from isograde.report.text import number, plural
from isograde.report.wording import FEW, FEW_GROUPS, TOO_FEW, with_interval

__all__ = ["Cost", "SignalRow", "SignalTable", "about_signals", "cost_text", "signals_answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a part of the work takes, a row on average; None where it is not known."""

    tokens: float | None
    seconds: float | None


class SignalRow(Model):
    """One way to grade.

    Attributes
    ----------
    name : str
    kind : {"signal", "blend", "index"}
        A signal alone, a blend with fixed weights, or the index with weights fitted to other groups.
    share : float or None
        Of a signal: how much of the index's movement is its own, when fitted to all labels.
    mae, rps : Estimate
        Of the calibrated level and distribution, out of fold, in levels.
    spearman : Estimate
        Of the score itself, which needs no calibration; the index's is out of fold.
    mae_difference, rps_difference, spearman_difference : Estimate or None
        From the first signal, on the same rows; None for the first signal itself.
    shown : {"nearer", "further"} or None
        Whether the difference in RPS is shown, with the interval widened for the number of looks (Bonferroni).
    tokens, seconds : float or None
        A row on average; None where they are not known.
    """

    name: Shown
    kind: Literal["signal", "blend", "index"]
    share: Finite | None
    mae: Estimate
    rps: Estimate
    spearman: Estimate
    mae_difference: Estimate | None = None
    rps_difference: Estimate | None = None
    spearman_difference: Estimate | None = None
    shown: Literal["nearer", "further"] | None = None
    tokens: Finite | None
    seconds: Finite | None


class SignalTable(Model):
    """Every signal, blend and index on the same rows; made by :func:`signal_table`.

    Attributes
    ----------
    answer : Answer
        Which to use, or that no difference is shown.
    n, n_groups : int
        Rows with every signal, on which all is measured, and their groups.
    missing : tuple of (str, int)
        Rows that lack a signal, by signal; they are left out of every line.
    n_left_out : int
        Rows that lack any.
    rows : tuple of SignalRow
        The first is what the others are compared with.
    """

    answer: Answer
    n: Count
    n_groups: Count
    missing: tuple[tuple[Shown, Count], ...]
    n_left_out: Count
    rows: tuple[SignalRow, ...]


def cost_text(tokens: float | None, seconds: float | None) -> str:
    """What a row costs, for people; empty where nothing is known."""
    known = []
    if tokens is not None:
        known.append(plural(round(tokens), "token"))
    if seconds is not None:
        known.append(f"{number(seconds, 2)} s")
    return " and ".join(known)


def signals_answer(rows: Sequence[SignalRow], n: int, n_groups: int) -> Answer:
    """Which to use, in one sentence."""
    first, *others = rows
    if not others:
        return Answer(sentence=f"There is one signal only, {first.name}; name others to compare it with.")
    if n < TOO_FEW:
        return Answer(sentence=f"Not known yet: {plural(n, 'label')} are too few to compare signals; label {FEW} or more.")
    on = f"on these {plural(n, 'row')}" + (f" in {plural(n_groups, 'group')}" if n_groups < n else "")
    price = cost_text(first.tokens, first.seconds)
    nearer = [row for row in others if row.shown == "nearer"]
    details = []
    if nearer:
        best = min(nearer, key=lambda row: row.rps.value or 0.0)
        own = cost_text(best.tokens, best.seconds)
        paid = f", at {own} a row in place of {price}" if own and price else ""
        sentence = f"Use {_named(best)}: it is nearer to the humans than {first.name} by {_gain(best)} levels of RPS {on}{paid}."
        details += [f"Shown to be nearer than {first.name} too: {_named(row)}." for row in nearer if row is not best]
    else:
        if not any(row.shown for row in others):
            sentence = f"No difference is shown {on}; stay with {first.name}"
        elif all(row.shown for row in others):
            sentence = f"Use {first.name}: all else is shown to be further from the humans {on}"
        else:
            sentence = f"Use {first.name}: nothing is shown to be nearer to the humans {on}"
        sentence += f", at {price} a row" if price else ""
        known = [row for row in others if row.shown is None and row.tokens is not None and first.tokens is not None]
        if cheaper := [row for row in known if (row.tokens or 0) < (first.tokens or 0)]:
            best = min(cheaper, key=lambda row: row.tokens or 0)
            sentence += (
                f", or take {_named(best)}, the cheapest not shown to be further, at {cost_text(best.tokens, best.seconds)}"
            )
            names = ", ".join(map(_named, cheaper))
            details.append(f"Fewer tokens and not shown to be further, which is no proof of being as good: {names}.")
        sentence += "."
    moved = [f"{row.name} {100 * row.share:.0f} %" for row in rows if row.share]
    details.append(f"What moves the index, fitted to all labels: {', '.join(moved)}.")
    if n_groups < FEW_GROUPS:
        details.append(f"The labels are in {n_groups} groups only, so every interval here is rough.")
    return Answer(sentence=sentence, details=tuple(details))


def about_signals(table: SignalTable) -> str:
    """How the table was measured, and what is not in it."""
    text = (
        f"Measured on the same {plural(table.n, 'row')}, out of fold: every line is calibrated, and the index weighed, on other "
        "groups; ρ is of the score itself. Δ is the difference from the first line; one in RPS is shown where its interval, "
        f"widened for {plural(len(table.rows) - 1, 'look')}, leaves out 0. Intervals are 95 %, by group. Share is how much of "
        "the index's movement is a signal's; tokens and seconds are what a row takes."
    )
    if table.n_left_out:
        lacking = ", ".join(f"{name} ({count:,})" for name, count in table.missing)
        text += f" {plural(table.n_left_out, 'row')} left out of every line for want of a signal: {lacking}."
    return text


def _named(row: SignalRow) -> str:
    """A line's name within a sentence."""
    return row.name if row.kind == "signal" else f"the {row.name}"


def _gain(row: SignalRow) -> str:
    """How much lower a line's RPS is than the first's, with its interval."""
    change = row.rps_difference
    if change is None or change.value is None or change.low is None or change.high is None:
        return "–"
    return with_interval(Estimate(value=-change.value, low=-change.high, high=-change.low, n=change.n))
