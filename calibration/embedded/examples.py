"""Examples from the human-graded sets: the training parts, what is made of them, and the parts kept apart to evaluate on."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from generated import EMPTY, HELD_OUT, LATER_MAKERS, LEADS, MAKERS, TEMPLATES, Makers, fact
from targets import CONTRADICTORY, CORRECT, INCORRECT, RIGHT, WRONG, Example, graded

SHARED = Path(os.environ.get("ISOGRADE_SHARED", Path(__file__).resolve().parents[2] / ".." / "shared")) / "data"
HELD_OUT_QUESTIONS = 400
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Mix:
    """Share of each source among what is trained on: human-graded sets, what is made of them, what is made by program.

    `compared` is the share of the makers in `comparing.py`, of the second run.
    """

    human: dict[str, float]
    derived: float
    generated: float
    makers: Makers
    seed: int
    n: int
    compared: float = 0.0


# The first figures on the parts kept apart said: more of Beetle, less of EVOUNA, points in other languages. The second mix takes
# over after the first `n` examples.
FIRST = Mix(
    human={
        "scientsbank_3way": 0.19,
        "beetle_3way": 0.11,
        "evouna_nq": 0.13,
        "evouna_tq": 0.06,
        "saf2_en": 0.10,
        "roscoe": 0.02,
        "wmt23_zhen": 0.05,
    },
    derived=0.14,
    generated=0.20,
    makers=MAKERS,
    seed=4,
    n=8600,
)
SECOND = Mix(
    human={
        "scientsbank_3way": 0.20,
        "beetle_3way": 0.16,
        "evouna_nq": 0.08,
        "evouna_tq": 0.05,
        "saf2_en": 0.11,
        "roscoe": 0.02,
        "wmt23_zhen": 0.03,
    },
    derived=0.15,
    generated=0.20,
    makers=LATER_MAKERS,
    seed=5,
    n=20_000,
)
HUMAN = tuple(FIRST.human)


def rows(name: str) -> list[Row]:
    with gzip.open(SHARED / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def held_out_groups(nq: list[Row]) -> set[str]:
    """The questions of `evouna_nq` with the lowest hashes; never trained on."""
    return set(sorted({row["group"] for row in nq}, key=digest)[:HELD_OUT_QUESTIONS])


def _level(row: Row) -> float:
    low, high = row["gold_scale"]
    return 4 * (row["gold"] - low) / (high - low)


def _target(name: str, row: Row) -> Any:
    if name in {"saf2_en", "roscoe", "wmt23_zhen"}:
        return graded(_level(row), smoothing=0.08 if name == "saf2_en" else 0.15)
    if row["gold"] == 1:
        return RIGHT if name.startswith("evouna") else CORRECT
    return {"incorrect": INCORRECT, "contradictory": CONTRADICTORY}.get(row.get("label3", ""), WRONG)


def training_rows() -> dict[str, list[Row]]:
    """Rows that may be trained on, by set. A question whose text stands in an evaluation part is left out whole."""
    sets = {name: rows(name) for name in HUMAN}
    kept_apart = held_out_groups(sets["evouna_nq"])
    asked = {row["input"].strip().lower() for row in sets["evouna_nq"] if row["group"] in kept_apart}
    sets["evouna_nq"] = [row for row in sets["evouna_nq"] if row["input"].strip().lower() not in asked]
    sets["evouna_tq"] = [row for row in sets["evouna_tq"] if row["input"].strip().lower() not in asked]
    for name in ("scientsbank_3way", "beetle_3way"):
        sets[name] = [row for row in sets[name] if row["split"] == "training"]
    sets["saf2_en"] = [row for row in sets["saf2_en"] if row["split"] != "unseen_questions"]
    sets["roscoe"] = [row for row in sets["roscoe"] if row["criterion"] == "Overall Quality"]
    return sets


def _best_alternatives(rng: random.Random, row: Row) -> str:
    """Golden answers joined by «/», as they come or shortened to those that fit the answer best, whatever the verdict."""
    golden = [text.strip() for text in row["expected"].split("/") if text.strip()]
    if len(golden) < 2 or rng.random() < 0.35:
        return row["expected"]
    answer = set(row["output"].lower().split())
    golden.sort(key=lambda text: -len(answer & set(text.lower().split())) / len(text.split()))
    golden = golden[: rng.choice((1, 2, 3))]
    rng.shuffle(golden)
    return rng.choice((" / ", " or ", "/", "; ")).join(golden)


_TRANSLATE = (
    "Translate the Chinese sentence into English.",
    "What does the sentence say in English?",
    "Give the meaning of the text.",
)


class Pool:
    """Human rows, drawn so that none of a set's levels dominates and none comes back before its class is used up."""

    def __init__(self, seed: int, *, withheld: Collection[str] = ()) -> None:
        self.sets = {name: [r for r in members if r["group"] not in withheld] for name, members in training_rows().items()}
        self._seed = seed
        self._classes = {name: defaultdict(list) for name in self.sets}
        self.correct: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for name, members in self.sets.items():
            for row in members:
                self._classes[name][row.get("label3") or round(_level(row))].append(row)
                if name in {"scientsbank_3way", "beetle_3way"} and row["gold"] == 1:
                    self.correct[name, row["group"]].append(row)
        self._queues: dict[tuple[str, Any], list[Row]] = {}

    def row(self, rng: random.Random, name: str) -> Row:
        classes = self._classes[name]
        (key,) = rng.choices(list(classes), [len(members) ** 0.5 for members in classes.values()])
        queue = self._queues.get((name, key))
        if not queue:
            queue = self._queues[name, key] = rng.sample(classes[key], len(classes[key]))
        return queue.pop()

    def human(self, rng: random.Random, name: str) -> Example:
        row = self.row(rng, name)
        question, expected = row["input"], row["expected"]
        if name.startswith("evouna"):
            expected = _best_alternatives(rng, row)
            if rng.random() < 0.3:
                question = question[0].upper() + question[1:].rstrip("?") + "?"
        elif name == "wmt23_zhen":
            question = rng.choice(_TRANSLATE)
        elif len(row.get("references") or ()) > 1 and rng.random() < 0.5:
            expected = rng.choice(row["references"])
        return Example(source=name, input=question, expected=expected, output=row["output"], target=_target(name, row))


def _binary(pool: Pool, rng: random.Random) -> tuple[str, Row]:
    name = rng.choice(("scientsbank_3way", "beetle_3way", "evouna_nq", "evouna_tq"))
    return name, pool.row(rng, name)


def identical(pool: Pool, rng: random.Random) -> Example:
    """The reference itself, perhaps in other capitals or after a lead."""
    name = rng.choice(list(HUMAN))
    example = pool.human(rng, name)
    text = example.expected
    output = rng.choice((text, text, text.lower(), text.rstrip("."), rng.choice(LEADS) + text))
    return replace(example, source="identical", output=output, target=RIGHT)


def empty(pool: Pool, rng: random.Random) -> Example:
    """Refusal, empty talk, or the question said again."""
    example = pool.human(rng, rng.choice(list(HUMAN)))
    kind = rng.random()
    again = rng.choice(("{}", "You ask: {}", "The question is: {}", "To answer: {} one has to know the facts."))
    output = rng.choice(EMPTY) if kind < 0.65 else again.format(example.input[:400])
    if example.expected.lower().strip(" .") in {"yes", "no"}:
        output = "I don't know."
    return replace(example, source="empty", output=output, target=WRONG)


def other_question(pool: Pool, rng: random.Random) -> Example:
    """The reference, or an answer, of another question of the same set."""
    name = rng.choice(("scientsbank_3way", "beetle_3way", "evouna_nq", "evouna_tq", "saf2_en", "wmt23_zhen"))
    example, other = pool.human(rng, name), pool.row(rng, name)
    output = other["output"] if rng.random() < 0.6 else other["expected"]
    if other["expected"] == example.expected or other["input"] == example.input or name == "beetle_3way":
        output = rng.choice(EMPTY[:10])  # Beetle's questions share their answers
    return replace(example, source="other", output=output, target=WRONG)


def part_of_reference(pool: Pool, rng: random.Random) -> Example:
    """A share of a long reference's words or sentences."""
    example = pool.human(rng, rng.choice(("saf2_en", "saf2_en", "scientsbank_3way", "wmt23_zhen")))
    tokens = example.expected.split()
    if len(tokens) < 16:
        return replace(example, source="part", output=example.expected, target=RIGHT)
    sentences = [s.strip() for s in example.expected.replace("\n", ". ").split(". ") if s.strip()]
    if len(sentences) > 2 and rng.random() < 0.7:
        n = rng.randint(1, len(sentences))
        kept = sorted(rng.sample(range(len(sentences)), n))
        output = ". ".join(sentences[i] for i in kept)
        share = len(output.split()) / len(tokens)
    else:
        share = rng.choice((0.25, 0.5, 0.5, 0.75))
        output = " ".join(tokens[: round(share * len(tokens))])
    return replace(example, source="part", output=output, target=graded(4 * min(1, share), smoothing=0.12))


def two_answers(pool: Pool, rng: random.Random) -> Example:
    """A correct human answer as reference; another one of the same question, or a wrong one, as answer."""
    name, row = rng.choice(("scientsbank_3way", "beetle_3way")), None
    row = pool.row(rng, name)
    others = [other for other in pool.correct[name, row["group"]] if other is not row]
    if not others:
        return identical(pool, rng)
    target = (0.01, 0.03, 0.08, 0.23, 0.65) if row["gold"] == 1 else _target(name, row)
    return Example(
        source="two answers", input=row["input"], expected=rng.choice(others)["output"], output=row["output"], target=target
    )


def several(pool: Pool, rng: random.Random) -> Example:
    """Several questions at once, answered by people; the level is the mean."""
    n = rng.choice((2, 2, 3, 3, 4, 5))
    picked = [
        pool.human(rng, rng.choice(("scientsbank_3way", "beetle_3way", "evouna_nq", "evouna_tq", "saf2_en"))) for _ in range(n)
    ]
    number = rng.choice(("{i}. ", "{i}) ", "({i}) ", "- ", ""))
    join = lambda texts: "\n".join(number.format(i=i) + t for i, t in texts)  # noqa: E731
    levels, answers = [], []
    for i, example in enumerate(picked, start=1):
        if rng.random() < 0.12:
            levels.append(0.0)
            continue
        levels.append(sum(k * p for k, p in enumerate(example.target)))
        answers.append((i, example.output))
    return Example(
        source="several",
        input=join([(i, e.input) for i, e in enumerate(picked, start=1)]),
        expected=join([(i, e.expected) for i, e in enumerate(picked, start=1)]),
        output=join(answers) or "I don't know.",
        target=graded(sum(levels) / n, smoothing=0.15),
    )


def with_verdict(pool: Pool, rng: random.Random) -> Example:
    """Any example with a verdict slipped into the answer; its level does not change."""
    example = (
        pool.human(rng, rng.choice(("scientsbank_3way", "beetle_3way", "evouna_nq", "saf2_en")))
        if rng.random() < 0.6
        else rng.choice(MAKERS)[0](rng)
    )
    if rng.random() < 0.25:
        example = replace(example, output=rng.choice(("", "", rng.choice(EMPTY))), target=WRONG)
    wrong = sum(k * p for k, p in enumerate(example.target)) < 2
    verdict = rng.choice(TEMPLATES["verdicts"]).format(k=rng.choice((4, 4, 4, 3)) if wrong else rng.choice((0, 0, 1, 4)))
    parts = [example.output, verdict]
    if rng.random() < 0.3:
        parts.reverse()
    return replace(example, source="verdict", output=rng.choice(("\n", " ", "\n\n")).join(parts).strip())


def longer(pool: Pool, rng: random.Random) -> Example:
    """A correct or wrong short answer amid true text about something else: extra detail does not change what is right."""
    name, row = _binary(pool, rng)
    example = Example(
        source="longer", input=row["input"], expected=row["expected"], output=row["output"], target=_target(name, row)
    )
    extra = [pool.row(rng, "scientsbank_3way")["expected"] for _ in range(rng.randint(1, 3))]
    parts = [*extra, example.output] if rng.random() < 0.3 else [example.output, *extra]
    target = (0.0, 0.03, 0.12, 0.45, 0.40) if row["gold"] == 1 else example.target
    return replace(example, output=" ".join(parts), target=target)


PoolMakers = tuple[tuple[Callable[[Pool, random.Random], Example], float], ...]
DERIVED_MAKERS: PoolMakers = (
    (identical, 0.06),
    (empty, 0.10),
    (other_question, 0.12),
    (part_of_reference, 0.14),
    (two_answers, 0.22),
    (several, 0.18),
    (with_verdict, 0.12),
    (longer, 0.06),
)


def mixed(mix: Mix, pool: Pool, comparing: PoolMakers = ()) -> list[Example]:
    """Draw the sources at random; the draw is for 40,000 examples, of which the first are taken."""
    rng = random.Random(mix.seed)
    kinds = [*mix.human, "derived", "generated", "compared"]
    weights = [*mix.human.values(), mix.derived, mix.generated, mix.compared]
    made = []
    for kind in rng.choices(kinds, weights, k=40_000)[: mix.n]:
        if kind in {"derived", "compared"}:
            makers = DERIVED_MAKERS if kind == "derived" else comparing
            (maker,) = rng.choices([m for m, _ in makers], [w for _, w in makers])
            made.append(maker(pool, rng))
        elif kind == "generated":
            (make,) = rng.choices([m for m, _ in mix.makers], [w for _, w in mix.makers])
            made.append(make(rng))
        else:
            made.append(pool.human(rng, kind))
    return made


def training_examples() -> list[Example]:
    """Draw the first run's training set in its order: all sources mixed, the second mix after the first."""
    return [example for mix in (FIRST, SECOND) for example in mixed(mix, Pool(mix.seed))]


def evaluation_rows() -> dict[str, list[Row]]:
    """The parts never trained on, whole; each row has `input`, `expected`, `output`, `gold` and `group`."""
    science, beetle, nq = rows("scientsbank_3way"), rows("beetle_3way"), rows("evouna_nq")
    trained = {row["input"].strip().lower() for row in beetle if row["split"] == "training"}
    apart = held_out_groups(nq)
    rng = random.Random("numbers and dates")
    numbers = [fact(rng, templates=HELD_OUT) for _ in range(500)]
    return {
        "scientsbank unseen domains": [row for row in science if row["split"] == "test-unseen-domains"],
        "scientsbank unseen questions": [row for row in science if row["split"] == "test-unseen-questions"],
        "beetle unseen questions": [
            r for r in beetle if r["split"] == "test-unseen-questions" and r["input"].strip().lower() not in trained
        ],
        "evouna_nq 400 questions": [row for row in nq if row["group"] in apart],
        "saf2_en unseen questions": [row for row in rows("saf2_en") if row["split"] == "unseen_questions"],
        "saf1_de": rows("saf1_de"),
        "numbers and dates": [
            {
                "input": e.input,
                "expected": e.expected,
                "output": e.output,
                "gold": int(e.target == RIGHT),
                "gold_scale": [0, 1],
                "group": str(i),
            }
            for i, e in enumerate(numbers)
        ],
    }
