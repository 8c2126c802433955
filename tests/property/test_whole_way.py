"""Whatever stands in a row, a rubric or a server's body: a Grade, a GradeFailure or an isograde error, and nothing else."""

import asyncio
import csv
import io
import json
import re
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from isograde import Grade, GradeFailure, IsogradeError, Judge, Rubric
from isograde.backends.base import Reply
from isograde.report.run import RunCollector
from isograde.runs.results import safe_cell
from isograde.runs.show import plain
from servers.stub import LEVELS, completion

RECORDED = [
    case["response"]
    for case in json.loads((Path(__file__).parents[1] / "recorded" / "answer_token.json").read_text(encoding="utf-8"))
]
DECISION = {
    "answers": {"level": {"type": "score", "probabilities": dict.fromkeys("01234", 0.2), "legend": dict.fromkeys("01234", "x")}}
}
WORDS = {"choices": [{"message": {"content": text}} for text in ("4", "3", "no")]}

odd = st.sampled_from(
    [None, True, 0, 1, -1, 2**70, float("nan"), float("inf"), -9999, "", "4", "</think>", "<think>", "Level:", "\ud800", [], {}]
)
scalars = odd | st.text(max_size=5) | st.floats() | st.integers()


class Answering:
    """A backend that answers with one body, by one of the methods."""

    model, server, concurrency, prompt_fingerprint = "fake", None, 4, "none"

    def __init__(self, body, method="answer_token"):
        self.body, self.methods = body, (method,)

    def adapter(self, rubric):
        return None

    def caveat(self, rubric):
        return None

    def request(self, prompt, labels):
        return {"prompt": prompt.user, "system": prompt.system}

    async def ask(self, prompt, labels):
        return Reply(body=self.body, usage=None, latency_s=0.0)

    async def aclose(self):
        pass


def judged(body, fields, *, method="answer_token", rubric="answer_correctness", samples=None):
    """Grade one item; an isograde error is a result too."""
    try:
        judge = Judge(
            backend=Answering(body, method), rubric=rubric, method=None if method == "decision_model" else method, samples=samples
        )
        return asyncio.run(judge.ascore(fields))
    except IsogradeError as error:
        return error


def check(result):
    assert isinstance(result, Grade | GradeFailure | IsogradeError)
    if isinstance(result, Grade):
        assert result.score is None or 0 <= result.score <= 1
        assert abs(sum(result.probabilities.values()) - 1) < 1e-6
    if isinstance(result, IsogradeError):
        assert "\n" not in str(result)


@st.composite
def mutated(draw, value):
    """A body with something changed in one to three places."""
    value = json.loads(json.dumps(value))
    for _ in range(draw(st.integers(1, 3))):
        at, parent, key = value, None, None
        while isinstance(at, dict | list) and at and draw(st.integers(0, 4)):
            parent, key = at, draw(st.sampled_from(sorted(at))) if isinstance(at, dict) else draw(st.integers(0, len(at) - 1))
            at = at[key]
        changed = draw(scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(max_size=6), scalars, max_size=3))
        if parent is None:
            value = changed
        elif draw(st.booleans()):
            parent[key] = changed
        else:
            del parent[key]
    return value


bodies = st.sampled_from([*RECORDED, DECISION, WORDS, completion(LEVELS)]).flatmap(mutated)
texts = st.text(max_size=30) | st.sampled_from(
    ["", " ", "\u200b", "</answer>", "<|im_end|>", "\x00", "\ud800", "{output}", "🙂", "=1+1"]
)


@settings(deadline=None)  # a busy machine
@given(bodies, st.sampled_from(["answer_token", "sampling", "reasoning_first", "decision_model"]))
def test_whatever_a_server_sends(body, method):
    samples = {"sampling": 3, "reasoning_first": 2}.get(method)
    check(judged(body, {"input": "q", "output": "a", "expected": "e"}, method=method, samples=samples))


@settings(deadline=None)
@given(st.dictionaries(
    st.sampled_from(["input", "output", "expected", "context", "id", "group", "metadata", "question", "answer", "ground_truth", "x", ""]),
    texts | scalars | st.lists(texts | scalars, max_size=3),
    max_size=6,
))  # fmt: skip
@example({"output": "a", "answer": "b", "input": "q", "expected": "e"})
def test_whatever_a_row_holds(row):
    check(judged(completion(LEVELS), row))


levels = st.lists(
    st.fixed_dictionaries(
        {"label": texts | st.integers(0, 12) | st.sampled_from("0123"), "description": texts}, optional={"credit": st.floats()}
    ),
    max_size=12,
)


@settings(deadline=None)
@given(st.fixed_dictionaries({
    "name": st.sampled_from(["r", "R", "a_b", ""]), "description": texts, "scale": st.sampled_from(["ordered", "choice", "x"]),
    "fields": st.lists(st.sampled_from(["input", "output", "k", "K", ""]), max_size=3) | st.dictionaries(st.sampled_from(["input", "output"]), texts),
    "instructions": texts, "levels": levels, "item": st.sampled_from(["{input} {output}", "{output}", "{input}{k}", "", "{{output}} {output}"]),
    "blank_output": st.sampled_from(["level_0", "ask", "fail", "x"]),
}), texts)  # fmt: skip
def test_whatever_a_rubric_says(fields, output):
    try:
        rubric = Rubric.model_validate(fields)
    except ValueError:  # pydantic's; the loader turns it into a RubricError
        return
    top = rubric.labels[-1]
    body = completion({top: 0.9, "other": 0.1})
    check(judged(body, {"input": "q", "output": output, "k": "v"}, rubric=rubric))


ANSI = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@settings(deadline=None)
@given(st.text(max_size=40) | st.sampled_from(["\x1b]8;;http://x\x07y\x1b]8;;\x07", "\x9b31m", "a\rb", "\u202eabc", "\x1b[2J"]))
def test_nothing_acts_on_a_terminal_or_in_a_spreadsheet(text):
    assert not ANSI.search(plain(text))
    cell = safe_cell(text)
    assert not cell.lstrip().startswith(("=", "+", "-", "@"))
    file = io.StringIO(newline="")
    csv.writer(file).writerow([cell, "next"])
    assert next(csv.reader(io.StringIO(file.getvalue(), newline="")))[1] == "next"


@settings(max_examples=25, deadline=None)  # a page takes a while
@given(st.sampled_from(["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script><script>x</script>", "{{ 7*7 }}", "javascript:x"]),
       st.sampled_from(["input", "output", "expected", "id", "group", "metadata"]))  # fmt: skip
def test_nothing_acts_in_a_report(hostile, where):
    from isograde.datasets import read_rows

    fields = {"input": "q", "output": "a", "expected": "e", "group": "g", "id": "i"} | (
        {where: hostile} if where != "metadata" else {hostile: hostile}
    )
    [row] = read_rows([fields], labels=tuple("01234"))
    grade = judged(completion(LEVELS), fields)
    collector = RunCollector(title=hostile)
    collector.add(row, grade)
    page = collector.report().to_html()
    for acting in ("<script>alert", "<img src=x", "</script><script>x"):
        assert acting not in page
    if "{{" in hostile:
        assert hostile in page  # as it stands, never worked out
