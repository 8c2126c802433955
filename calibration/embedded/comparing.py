"""Examples and validation rows of the second run: what makes the judge compare with the reference, not remember questions.

The first run saw the questions withheld here; the second did not, so what it loses on them is an upper limit of what it forgot.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache

from evaluation import token_f1
from examples import Mix, Pool, PoolMakers, Row, digest, mixed, rows, training_rows, two_answers
from generated import LATER_MAKERS
from targets import CONTRADICTORY, CORRECT, RIGHT, WRONG, Example

THIRD = Mix(
    human={
        "scientsbank_3way": 0.16,
        "beetle_3way": 0.15,
        "evouna_nq": 0.06,
        "evouna_tq": 0.03,
        "saf2_en": 0.12,
        "roscoe": 0.01,
        "wmt23_zhen": 0.02,
    },
    derived=0.12,
    generated=0.14,
    compared=0.19,
    makers=LATER_MAKERS,
    seed=6,
    n=20_000,
)
SCIENCE = ("scientsbank_3way", "scientsbank_3way", "beetle_3way")
WITHHELD = {"scientsbank_3way": 15, "beetle_3way": 5, "saf2_en": 3}

# What a circuit's parts may be called instead, in question, reference and answer alike
CIRCUIT = {
    "bulb": ("lamp", "motor", "heater", "buzzer", "pump"),
    "battery": ("cell", "generator", "source", "dynamo"),
    "switch": ("gate", "lever", "valve"),
    "terminal": ("contact", "port", "node", "pin"),
    "path": ("loop", "line", "branch", "track"),
    "circuit": ("network", "system", "board"),
    "voltage": ("pressure", "tension", "level"),
}
OPPOSITES = (("positive", "negative"), ("open", "closed"), ("series", "parallel"))
NEUTRAL = ("Explain.", "Explain your answer.", "Answer the question.", "Why?", "What do you think?", "Give the answer.")


def _same_case(old: str, new: str) -> str:
    return new.upper() if old.isupper() and len(old) > 1 else new[0].upper() + new[1:] if old[0].isupper() else new


def _rename(example: Example, names: dict[str, str]) -> Example:
    """Put each word's new name wherever it stands, with its plural and its capitals."""
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))})(s|es)?\b", re.IGNORECASE)
    put = lambda m: _same_case(m[1], names[m[1].lower()]) + (m[2] or "")  # noqa: E731
    texts = (pattern.sub(put, text) for text in (example.input, example.expected, example.output))
    question, expected, output = texts
    return replace(example, source="renamed", input=question, expected=expected, output=output)


@cache
def _vocabulary() -> dict[str, int]:
    """Words of SciEntsBank's training questions and references, with the number of questions that have them."""
    seen: dict[str, str] = {r["group"]: f"{r['input']} {r['expected']}".lower() for r in training_rows()["scientsbank_3way"]}
    return Counter(word for text in seen.values() for word in set(re.findall(r"[a-z]{4,}", text)))


def renamed(pool: Pool, rng: random.Random) -> Example:
    """Call things by other names throughout: the verdict stays, the question is one never seen."""
    name = rng.choice(("scientsbank_3way", "beetle_3way"))
    example = two_answers(pool, rng) if rng.random() < 0.2 else pool.human(rng, name)
    if "bulb" in example.expected or "terminal" in example.expected or example.source == "beetle_3way":
        names = {word: rng.choice(others) for word, others in CIRCUIT.items() if rng.random() < 0.6}
        names |= {"batteries": f"{names['battery']}s"} if "battery" in names else {}
        letters, digits = rng.sample("ABCDEFGH", 3), rng.sample("123456789", 6)
        names |= dict(zip("bcxy", [*letters[1:], *rng.sample("PQWZ", 2)], strict=True))
        names |= dict(zip("123456", digits, strict=True))
        for one, two in OPPOSITES:
            if rng.random() < 0.4:
                names |= {one: two, two: one}
        return _rename(example, names)
    known = _vocabulary()
    said = set(re.findall(r"[a-z]{4,}", example.output.lower()))
    asked = set(re.findall(r"[a-z]{4,}", f"{example.input} {example.expected}".lower()))
    rare = sorted(word for word in said & asked if known.get(word, 0) < 12)
    if not rare:
        return example
    picked = rng.sample(rare, min(len(rare), rng.randint(1, 3)))
    new = rng.sample(sorted(word for word, n in known.items() if n < 12), len(picked))
    return _rename(example, dict(zip(picked, new, strict=True)))


def swapped_reference(pool: Pool, rng: random.Random) -> Example:
    """A wrong statement as the reference: it is what counts, so the same statement is right and the true one is not."""
    name = rng.choice(("scientsbank_3way", "beetle_3way", "evouna_nq", "evouna_tq"))
    example = pool.human(rng, name)
    if example.target in (RIGHT, CORRECT):  # a right answer as the reference, the reference as the answer
        return replace(example, source="swapped", expected=example.output, output=example.expected)
    if example.target == CONTRADICTORY:
        if rng.random() < 0.25:
            return replace(example, source="swapped", expected=example.output, target=RIGHT)
        return replace(example, source="swapped", expected=example.output, output=example.expected)
    if name.startswith("evouna") and not re.search(r"sorry|not |n't|unable|unclear|no information", example.output):
        if rng.random() < 0.35:
            return replace(example, source="swapped", expected=example.output, target=RIGHT)
        return replace(example, source="swapped", expected=example.output, output=example.expected)
    return example


def neighbour(pool: Pool, rng: random.Random) -> Example:
    """A correct answer to another question about the same matter, which says something else than the reference."""
    row = pool.row(rng, "scientsbank_3way")
    module = row["group"].split("_")[0]
    others = [key for key in pool.correct if key[0] == "scientsbank_3way" and key[1].split("_")[0] == module]
    answer = rng.choice(pool.correct[rng.choice(others)])["output"] if others else ""
    example = Example(
        source="neighbour", input=row["input"], expected=row["expected"], output=answer, target=(0.72, 0.18, 0.08, 0.02, 0.0)
    )
    nearest = max((token_f1(o["output"], answer) for o in pool.correct["scientsbank_3way", row["group"]]), default=0.0)
    if not answer or nearest > 0.5 or token_f1(row["expected"], answer) > 0.35:
        return replace(example, output=row["expected"], target=RIGHT)
    return example


def unasked(pool: Pool, rng: random.Random) -> Example:
    """The question says nothing: only the reference is left to compare with."""
    example = two_answers(pool, rng) if rng.random() < 0.3 else pool.human(rng, rng.choice(SCIENCE))
    return replace(example, source="unasked", input=rng.choice(NEUTRAL))


def two_verdicts(pool: Pool, rng: random.Random) -> Example:
    """Two systems' answers to one question of EVOUNA: a right one as the reference, the other as the answer."""
    name = rng.choice(("evouna_nq", "evouna_tq"))
    by_question = _answers(pool, name)
    row = pool.row(rng, name)
    right = [o for o in by_question[row["group"]] if o["gold"] == 1 and o["output"] != row["output"]]
    if not right:
        return pool.human(rng, name)
    target = RIGHT if row["gold"] == 1 else WRONG
    return Example(
        source="two verdicts", input=row["input"], expected=rng.choice(right)["output"], output=row["output"], target=target
    )


@cache
def _answers(pool: Pool, name: str) -> dict[str, list[Row]]:
    members = defaultdict(list)
    for row in pool.sets[name]:
        members[row["group"]].append(row)
    return members


COMPARING: PoolMakers = (
    (renamed, 0.38),
    (two_answers, 0.26),
    (swapped_reference, 0.12),
    (neighbour, 0.10),
    (unasked, 0.08),
    (two_verdicts, 0.06),
)


def withheld_groups() -> set[str]:
    """The training questions with the lowest hashes, of each set that has some; for validation only."""
    sets = training_rows()
    return {group for name, n in WITHHELD.items() for group in sorted({row["group"] for row in sets[name]}, key=digest)[:n]}


def second_run_examples() -> list[Example]:
    """Draw the second run's training set in its order."""
    return mixed(THIRD, Pool(THIRD.seed, withheld=withheld_groups()), COMPARING)


def validation_rows() -> dict[str, list[Row]]:
    """Withheld training questions, and unseen answers to questions trained on: no row of an evaluation part."""
    withheld, sets = withheld_groups(), training_rows()
    result = {f"{name} withheld": [row for row in sets[name] if row["group"] in withheld] for name in WITHHELD}
    for name in ("scientsbank_3way", "beetle_3way"):
        result[f"{name} unseen answers"] = [row for row in rows(name) if row["split"] == "test-unseen-answers"]
    return result
