"""Examples made by program, right by construction. The templates of `HELD_OUT` are never trained on."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from targets import RIGHT, WRONG, Example, graded
from values import KINDS, MONTHS, Value, date, date_notations, near_date, random_date, words

TEMPLATES: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "templates.yaml").read_text(encoding="utf-8"))
FACTS, HELD_OUT = TEMPLATES["facts"], TEMPLATES["held_out"]
FIRST, LAST, PLACES = TEMPLATES["first_names"], TEMPLATES["last_names"], TEMPLATES["places"]
GROUPS: dict[str, list[str]] = TEMPLATES["groups"]
EMPTY, LEADS, EXTRAS = TEMPLATES["empty"], TEMPLATES["leads"], TEMPLATES["extras"]
SHORT = {"Yes", "No", "Ja", "Nein", "Sí", "Oui", "Non", "Tak", "Nie", "Sì"}


def name(rng: random.Random) -> str:
    kind = rng.randrange(5)
    if kind < 2:
        return f"{rng.choice(FIRST)} {rng.choice(LAST)}"
    if kind == 2:
        return rng.choice(PLACES)
    return rng.choice(FIRST) if kind == 3 else f"{rng.choice(LAST)} & {rng.choice(LAST)}"


def _fill(template: str, e: str, f: str, value: str = "") -> str:
    on = "" if value.startswith(("in ", "on ")) else "in " if value.isdecimal() or value.startswith("the year") else "on "
    return template.format(e=e, f=f, v=value, on=on)


def _say(rng: random.Random, statements: Sequence[str], e: str, f: str, value: str) -> str:
    """Give a value bare, after a lead, or in a statement."""
    kind = rng.randrange(10)
    if kind < 3:
        return value
    if kind < 5:
        return f"{rng.choice(LEADS)}{value}"
    text = _fill(rng.choice(statements), e, f, value)
    text = text[0].upper() + text[1:]
    return text + (rng.choice(EXTRAS) if kind > 7 else "")


def fact(rng: random.Random, *, templates: Sequence[dict[str, Any]] = FACTS) -> Example:
    """Ask for one value; the answer gives it in any notation, or one that is nearly right."""
    template = rng.choice(templates)
    question, statements = template["question"], template["statements"]
    value = KINDS[rng.choice(template["kinds"])](rng)
    if question.lower().startswith(("when ", "in which year", "what year")):
        value = Value(tuple(v for v in value.same if not v.startswith("in ")), value.near)
    e, f = name(rng), name(rng)
    right = rng.random() < 0.5
    answer = rng.choice(value.same if right else value.near)
    return Example(
        source="fact",
        input=_fill(question, e, f),
        expected=_say(rng, statements, e, f, rng.choice(value.same)),
        output=_say(rng, statements, e, f, answer),
        target=RIGHT if right else WRONG,
    )


def arithmetic(rng: random.Random) -> Example:
    """Ask for a result: of a small sum in words, or of a date and days."""
    e = name(rng)
    if rng.random() < 0.5:
        day, days = random_date(rng), rng.randint(2, 90)
        back = rng.random() < 0.3
        start = rng.choice(date_notations(day))
        question = rng.choice(TEMPLATES["date_arithmetic"])
        question = f"Which date is {days} days before {start}?" if back else question.format(e=e, d=start, n=days)
        value = date(rng, day + dt.timedelta(days=-days if back else days))
    else:
        a, b, c = rng.randint(3, 40), rng.randint(2, 30), rng.randint(2, 12)
        kind = rng.randrange(4)
        question, result = (
            (f"{e} packs {b} boxes with {a} items each. How many items is that?", a * b),
            (f"{e} had {a * b} coins, gave away {a} and found {c}. How many are there now?", a * b - a + c),
            (f"A class of {a * c} pupils forms groups of {c}. How many groups are there?", a),
            (f"One ticket costs {a} euros. What do {b} tickets and {c} drinks at 2 euros each cost?", a * b + 2 * c),
        )[kind]
        near = {result + d for d in (-10, -2, -1, 1, 2, 10, a, -c) if d and result + d > 0} | {result * 10}
        unit = " euros" if kind == 3 else ""
        value = Value((f"{result}{unit}", f"{result:,}{unit}", f"{words(result)}{unit}"), tuple(f"{n}{unit}" for n in near))
    right = rng.random() < 0.5
    say = TEMPLATES["results"]
    return Example(
        source="arithmetic",
        input=question,
        expected=_say(rng, say, e, e, rng.choice(value.same)),
        output=_say(rng, say, e, e, rng.choice(value.same if right else value.near)),
        target=RIGHT if right else WRONG,
    )


def listing(rng: random.Random) -> Example:
    """Ask for a list; some of it is missing, replaced or invented."""
    group = rng.choice(list(GROUPS))
    n = rng.randint(2, min(6, len(GROUPS[group]) - 1))
    members = rng.sample(GROUPS[group], len(GROUPS[group]))
    true, others = members[:n], members[n:]
    kept, wrong = n, 0
    kind = rng.randrange(6)
    if kind in (1, 2):
        kept = rng.randint(0 if kind == 2 else 1, n - 1)
    if kind in (2, 3, 4):
        wrong = rng.randint(1, min(len(others), 2 if kept else 4))
    if kind == 4:
        kept = n - min(n, wrong)
    answer = rng.sample(true, kept) + others[:wrong]
    rng.shuffle(answer)
    level = max(0.0, 4 * kept / n - 0.5 * wrong) if kept else 0.0
    if level == 4 - 0.5 * wrong and wrong:
        level = min(level, 2.9)
    e = name(rng)
    question = rng.choice(TEMPLATES["list_questions"]).format(n=n, words=words(n), group=group, e=e)
    target = graded(min(level, 3.1) if kept < n else level)
    return Example(source="list", input=question, expected=_join(rng, true), output=_join(rng, answer), target=target)


def _join(rng: random.Random, members: Sequence[str]) -> str:
    """Write a list in a line, or a line each."""
    lead, separator = rng.choice(("", "", "They are ", "Namely ")), rng.choice((", ", "; ", "\n- ", " and ", "\n"))
    return lead + ("- " if separator == "\n- " else "") + separator.join(members)


def opposite(rng: random.Random) -> Example:
    """Yes or no, roles, directions, negation; some in other languages."""
    question, one, two = rng.choice(TEMPLATES["foreign_opposites" if rng.random() < 0.2 else "opposites"])
    e, f = rng.sample(PLACES if "north" in question or ("{e}" in question and rng.random() < 0.3) else FIRST, 2)
    one, two = (t.format(e=e, f=f) for t in rng.sample((one, two), 2))
    right = rng.random() < 0.5
    answer = one if right else two
    short = answer.split(",")[0].rstrip(".")
    if short in SHORT and rng.random() < 0.4:
        answer = short
    elif rng.random() < 0.3:
        answer = rng.choice(("I believe: ", "As far as I know: ", "Of course. ")) + answer
    if rng.random() < 0.2:
        answer += rng.choice(EXTRAS)
    return Example(
        source="opposite", input=question.format(e=e, f=f), expected=one, output=answer, target=RIGHT if right else WRONG
    )


def swapped(rng: random.Random) -> Example:
    """Several people, each with a part of their own; two of them swapped, or one left out."""
    n = rng.randint(2, 4)
    people, things = rng.sample(FIRST, n), rng.sample(rng.choice(list(GROUPS.values())), n)
    template = rng.choice(("{p} chose {t}", "{p} is in charge of {t}", "{p} brought {t}", "{t} belongs to {p}"))
    other = rng.choice((template, "{p} got {t}", "{p}: {t}", "{p} has {t}"))
    pairs = list(zip(people, things, strict=True))
    expected = ", ".join(template.format(p=p, t=t) for p, t in pairs) + "."
    kind = rng.randrange(3)
    level = 4.0
    if kind == 1:
        (a, s), (b, t) = pairs[:2]
        pairs[:2] = [(a, t), (b, s)]
        level = 4 * (n - 2) / n * 0.8
    elif kind == 2:
        pairs = pairs[:-1]
        level = 4 * (n - 1) / n
    rng.shuffle(pairs)
    answer = rng.choice((", ", "; ", " and ")).join(other.format(p=p, t=t) for p, t in pairs) + "."
    question = rng.choice(("Who has what?", "How were the things shared out?", "Say for each person what they have."))
    return Example(source="swap", input=question, expected=expected, output=answer, target=graded(level))


def long_facts(rng: random.Random) -> Example:
    """Several statements about one thing; the answer covers a part of them, some changed."""
    if rng.random() < 0.25:
        return _points_de(rng)
    n = rng.randint(3, 9)
    e, f = name(rng), name(rng)
    told, answer, kept, changed = [], [], 0, 0
    weights = rng.choice(((1, 0, 0), (0.6, 0.4, 0), (0.6, 0, 0.4), (0.35, 0.5, 0.15), (0.1, 0.2, 0.7), (0.8, 0.1, 0.1)))
    for template in rng.sample(FACTS, n):
        statements = template["statements"]
        value = KINDS[rng.choice(template["kinds"])](rng)
        told.append(_fill(rng.choice(statements), e, f, rng.choice(value.same)))
        (what,) = rng.choices(("keep", "drop", "change"), weights)
        if what == "keep":
            kept += 1
            answer.append(_fill(rng.choice(statements), e, f, rng.choice(value.same)))
        elif what == "change":
            changed += 1
            answer.append(_fill(rng.choice(statements), e, f, rng.choice(value.near)))
    if rng.random() < 0.5:
        rng.shuffle(answer)
    level = max(0.0, 4 * kept / n - 1.5 * changed / n)
    question = rng.choice(TEMPLATES["report_questions"]).format(e=e, f=f)
    join = rng.choice((" ", "\n", " "))
    output = join.join(answer) or rng.choice(EMPTY)
    return Example(
        source="long facts", input=question, expected=rng.choice((" ", "\n")).join(told), output=output, target=graded(level)
    )


def _points_de(rng: random.Random) -> Example:
    """German: which of the points does the answer name, in its own words?"""
    n = rng.randint(2, 5)
    points = rng.sample(TEMPLATES["points_de"], n + 1)
    kept = rng.sample(points[:n], rng.randint(0, n))
    said = [rng.choice((p[1], p[1], p[0])) for p in kept]
    if not kept or rng.random() < 0.2:
        said.append(rng.choice(points[n]))
    answer = rng.choice((", ", ". ", " und ")).join(said)
    expected = " ".join(p[0] + (f" ({rng.choice(('0.5', '0.25', '1'))} P)" if rng.random() < 0.2 else "") for p in points[:n])
    question, output = rng.choice(TEMPLATES["point_questions_de"]), answer[0].upper() + answer[1:]
    return Example(source="long facts", input=question, expected=expected, output=output, target=graded(4 * len(kept) / n))


def points(rng: random.Random) -> Example:
    """Which of a text's points does the answer name, in its own words? Some answers add a wrong or needless one."""
    (lang,) = rng.choices(("de", "en", "fr", "es"), (0.6, 0.2, 0.1, 0.1))
    n = rng.randint(1, 5)
    picked = rng.sample(TEMPLATES["points"][lang], n + 2)
    asked, others = picked[:n], picked[n:]
    named = rng.sample(asked, rng.randint(0, n))
    said = [rng.choice(point[1:] * 3 + point[:1]).rstrip(".") for point in named]
    invented = 0 if named and rng.random() < 0.75 else rng.randint(1, 2)
    said += [rng.choice(point[1:]) for point in others[:invented]]
    level = 4 * len(named) / n - (0.4 * invented if named else 0)
    marks = rng.random() < 0.25
    expected = " ".join(point[0] + (f" ({rng.choice(('0.5 P', '0.25 P', '1 P'))})" if marks else "") for point in asked)
    answer = rng.choice((", ", ". ", {"de": " und ", "en": " and ", "fr": " et ", "es": " y "}[lang], "\n")).join(said)
    question, output = rng.choice(TEMPLATES["point_questions"][lang]), answer[0].upper() + answer[1:]
    return Example(source="points", input=question, expected=expected, output=output, target=graded(level, smoothing=0.12))


def foreign(rng: random.Random) -> Example:
    """Dates and counts in other languages, sometimes against an English reference."""
    lang = rng.choice(list(TEMPLATES["foreign"]))
    texts, e = TEMPLATES["foreign"][lang], rng.choice(FIRST + PLACES)
    right = rng.random() < 0.5
    if rng.random() < 0.5:
        day = random_date(rng)
        other = day if right else near_date(rng, day)
        here, there = _foreign_date(lang, day), _foreign_date(lang, other)
        reference = rng.choice((here, here, f"{day:%d.%m.}{day.year}", f"{day.day} {MONTHS[day.month - 1]} {day.year}"))
        answer = rng.choice((there, there, f"{other:%d.%m.}{other.year}"))
        question, say = rng.choice(texts["date_questions"]), texts["date_answers"]
    else:
        value = KINDS["integer"](rng)
        reference = rng.choice(_in_digits(value.same))
        answer = rng.choice(_in_digits(value.same if right else value.near))
        right = "".join(filter(str.isdecimal, reference)) == "".join(filter(str.isdecimal, answer))
        question, say = rng.choice(texts["count_questions"]), texts["count_answers"]
    expected, output = rng.choice(say).format(v=reference), rng.choice(say).format(v=answer)
    return Example(
        source="foreign", input=question.format(e=e), expected=expected, output=output, target=RIGHT if right else WRONG
    )


def _foreign_date(lang: str, day: dt.date) -> str:
    month = TEMPLATES["months"][lang][day.month - 1]
    if lang == "de":
        return f"{day.day}. {month} {day.year}"
    return f"{day.day} de {month} de {day.year}" if lang == "es" else f"{day.day} {month} {day.year}"


def _in_digits(notations: Sequence[str]) -> list[str]:
    """Notations without English words, thousands parted by dots."""
    return [text.replace(",", ".") for text in notations if text[0].isdigit()] or ["7"]


Makers = tuple[tuple[Callable[[random.Random], Example], float], ...]
MAKERS: Makers = (
    (fact, 0.36),
    (arithmetic, 0.09),
    (listing, 0.13),
    (opposite, 0.11),
    (swapped, 0.05),
    (long_facts, 0.16),
    (foreign, 0.10),
)
LATER_MAKERS: Makers = (
    (fact, 0.34),
    (arithmetic, 0.08),
    (listing, 0.11),
    (opposite, 0.10),
    (swapped, 0.04),
    (long_facts, 0.10),
    (points, 0.14),
    (foreign, 0.09),
)
