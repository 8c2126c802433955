"""The pieces that Markdown reports are written with; every text in them is made harmless here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isograde.report.parts import Answer, Case, Counts, Estimate, Failure
from isograde.report.text import in_markdown, level_name, number, percent, plural

__all__ = ["answer", "bounds", "cases", "facts", "failures", "histogram", "joined", "share", "table"]

WIDTH = 24  # characters of the longest bar
N_CASES = 10  # cases with their texts; the rest are in the JSON and the HTML


def answer(answer: Answer) -> list[str]:
    """A section's first sentence and what stands behind it."""
    details = "\n".join(f"- {in_markdown(detail)}" for detail in answer.details)
    return [f"**{in_markdown(answer.sentence)}**", *([details] if details else [])]


def facts(facts: Iterable[tuple[str, str]]) -> str:
    """Names and values as a list."""
    return "\n".join(f"- {in_markdown(name)}: {in_markdown(value)}" for name, value in facts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; every cell is made harmless here."""
    lines = [head, *rows]
    written = ["| " + " | ".join(in_markdown(cell) for cell in line) + " |" for line in lines]
    return "\n".join([written[0], "|" + " --- |" * len(head), *written[1:]])


def histogram(counts: Counts, labels: Sequence[str]) -> str:
    """Rows by level, drawn in characters."""
    most = max(counts.counts, default=0) or 1
    rows = [
        [labels[i], f"{count:,}", "█" * round(WIDTH * count / most) or ("▏" if count else "")]
        for i, count in enumerate(counts.counts)
    ]
    return table([counts.name, "rows", " "], rows)


def cases(cases: Sequence[Case], labels: Sequence[str]) -> list[str]:
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


def failures(failures: Sequence[Failure]) -> list[str]:
    """Failures by status."""
    rows = [[f.status, f"{f.count:,}", "; ".join(f"{name}: {message}" for name, message in f.examples)] for f in failures]
    return [table(["failed", "rows", "examples"], rows)] if rows else []


def share(estimate: Estimate) -> str:
    """A share and its interval."""
    if estimate.value is None or estimate.low is None:
        return percent(estimate.value)
    return f"{percent(estimate.value)} ({percent(estimate.low)} to {percent(estimate.high)})"


def bounds(bounds: tuple[float, float] | None) -> str:
    """Two shares."""
    return "–" if bounds is None else f"{percent(bounds[0])} to {percent(bounds[1])}"


def joined(parts: Sequence[str], version: str) -> str:
    """The whole text."""
    return "\n\n".join([*parts, f"Made by isograde {version}."]) + "\n"
