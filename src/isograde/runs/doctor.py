"""Look at a judge's model before anything is spent on it: what ``isograde doctor`` does."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from isograde.backends.loop import run
from isograde.backends.probe import Finding, examined
from isograde.errors import ServerError
from isograde.judge import Judge
from isograde.methods import Way
from isograde.records import GradeFailure, Item
from isograde.rubric import ITEM_FIELDS, Rubric
from isograde.runs.show import plain

__all__ = ["Diagnosis", "diagnosed", "diagnosis_view", "example_of"]

_EXAMPLE = {
    "input": "In which year did the first human walk on the Moon, and who was it?",
    "output": "Neil Armstrong, in 1969.",
    "expected": "Neil Armstrong walked on the Moon in July 1969.",
    "context": "Apollo 11 landed on 20 July 1969. Neil Armstrong was the first to step onto the surface.",
}
_MARKS = {"fine": "✓", "note": "!", "problem": "✗"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was found out about a judge's model.

    Attributes
    ----------
    model : str
    server : str or None
        Address without credentials; None in process.
    rubric : str
        Whose question the example was asked by.
    findings : tuple of Finding
    usable : bool
        Whether the model can judge by this rubric.
    """

    model: str
    server: str | None
    rubric: str
    findings: tuple[Finding, ...]
    usable: bool

    @property
    def verdict(self) -> str:
        """Whether it can be used, in one sentence."""
        if not self.usable:
            wrong = ", ".join(each.name for each in self.findings if each.verdict == "problem")
            return f"cannot judge as it is: {wrong}"
        notes = [each.name for each in self.findings if each.verdict == "note"]
        return "can judge" + (f"; mind: {', '.join(notes)}" if notes else "")

    def as_json(self) -> dict[str, Any]:
        """Give everything as JSON has it."""
        return {**asdict(self), "findings": [asdict(each) for each in self.findings], "verdict": self.verdict}


def example_of(rubric: Rubric) -> Item:
    """Give an item that has every field of a rubric, with a right answer.

    Examples
    --------
    >>> from isograde import load_rubric
    >>> example_of(load_rubric("relevance")).output
    'Neil Armstrong, in 1969.'
    """
    own = [name for name in rubric.fields if name not in ITEM_FIELDS]
    return Item(**_EXAMPLE, metadata=dict.fromkeys(own, "an example"))


def diagnosed(judge: Judge) -> Diagnosis:
    """Examine the model of a judge by its rubric.

    Raises
    ------
    ServerError
        If nothing answers, or the key or the model is refused.
    """
    rubric = judge.rubric
    own = Way(method=judge.backend.methods[0])
    prompt = own.prompt(rubric, example_of(rubric))
    findings = run(examined(judge.backend, prompt, rubric.labels, min_mass=judge.min_mass))
    if judge.way.method != own.method:
        findings = [*(_aside(each) for each in findings), run(_by_method(judge))]
    usable = all(each.verdict != "problem" for each in findings)
    return Diagnosis(
        model=judge.backend.model, server=judge.backend.server, rubric=rubric.name, findings=tuple(findings), usable=usable
    )


def _aside(finding: Finding) -> Finding:
    """Turn what would keep the answer token from being read into a note: another method was chosen."""
    return replace(finding, verdict="note", advice=None) if finding.verdict == "problem" else finding


async def _by_method(judge: Judge) -> Finding:
    """Grade the example by the method that was chosen."""
    try:
        grade = await judge.grade(example_of(judge.rubric))
    except ServerError as error:
        grade = GradeFailure(status="server_error", message=str(error))
    name = judge.way.method.replace("_", " ")
    if isinstance(grade, GradeFailure):
        return Finding(
            name=name, value=grade.status, said=grade.message, verdict="problem", advice="choose another method or model"
        )
    counted = grade.samples
    said = f"the example gets {grade.label}" + (
        "" if counted is None else f"; {counted.n_invalid} of {counted.n} answers invalid"
    )
    return Finding(
        name=name, value=grade.label, said=said, verdict="note" if counted is not None and counted.n_invalid else "fine"
    )


def diagnosis_view(diagnosis: Diagnosis) -> RenderableType:
    """Lay out a diagnosis as a table with a verdict and advice."""
    where = "in process" if diagnosis.server is None else f"at {diagnosis.server}"
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for each in diagnosis.findings:
        table.add_row(Text(_MARKS[each.verdict]), Text(each.name), Text(plain(each.said)))
    advice = dict.fromkeys(plain(each.advice) for each in diagnosis.findings if each.advice is not None)
    parts: list[RenderableType] = [
        Text(f"{plain(diagnosis.model)} {plain(where)}, rubric {diagnosis.rubric}", style="bold"),
        table,
    ]
    parts.append(Text(f"verdict: {diagnosis.verdict}", style="bold"))
    parts += [Text(f"advice: {line}") for line in advice]
    return Group(*parts)
