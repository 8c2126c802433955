"""Numbers, amounts, measures, dates and times: the same value in other notations, and values that are nearly it."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass

MONTHS = [f"{dt.date(2000, month, 1):%B}" for month in range(1, 13)]
ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
UNITS = {  # unit → (long name, factor and unit of an equal notation, units it is taken for)
    "km": ("kilometres", (1000, "m"), ("m", "miles", "cm")),
    "m": ("metres", (100, "cm"), ("km", "cm", "feet")),
    "cm": ("centimetres", (10, "mm"), ("mm", "m", "inches")),
    "kg": ("kilograms", (1000, "g"), ("g", "t", "pounds")),
    "t": ("tonnes", (1000, "kg"), ("kg", "g")),
    "l": ("litres", (1000, "ml"), ("ml", "gallons")),
    "h": ("hours", (60, "minutes"), ("minutes", "days")),
    "min": ("minutes", (60, "seconds"), ("hours", "seconds")),
    "kW": ("kilowatts", (1000, "W"), ("MW", "W")),
    "GB": ("gigabytes", (1000, "MB"), ("MB", "TB")),
    "V": ("volts", (1000, "mV"), ("mV", "A")),
    "°C": ("degrees Celsius", None, ("°F", "K")),
    "km/h": ("kilometres per hour", None, ("mph", "m/s")),
    "ha": ("hectares", None, ("km²", "acres")),
}
CURRENCIES = {"$": "dollars", "€": "euros", "£": "pounds"}


@dataclass(frozen=True)
class Value:
    """Notations of one value, and of values close to it that are wrong."""

    same: tuple[str, ...]
    near: tuple[str, ...]


def words(n: int) -> str:
    """Spell a number below a million."""
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + (f"-{ONES[n % 10]}" if n % 10 else "")
    if n < 1000:
        return f"{ONES[n // 100]} hundred" + (f" and {words(n % 100)}" if n % 100 else "")
    return f"{words(n // 1000)} thousand" + (f" {words(n % 1000)}" if n % 1000 else "")


def _grouped(n: int) -> list[str]:
    return [str(n)] if n < 1000 else [str(n), f"{n:,}", f"{n:,}".replace(",", " ")]


def _near_int(rng: random.Random, n: int) -> int:
    """Change one digit, swap two, shift the magnitude, or go one or a few off."""
    digits = str(n)
    while True:
        kind = rng.randrange(6)
        if kind == 0 and len(digits) > 1:
            i = rng.randrange(len(digits))
            other = digits[:i] + rng.choice("0123456789") + digits[i + 1 :]
        elif kind == 1 and len(digits) > 1:
            i = rng.randrange(len(digits) - 1)
            other = digits[:i] + digits[i + 1] + digits[i] + digits[i + 2 :]
        elif kind == 2 and n > 3:
            other = rng.choice([f"{n * 10}", str(n // 10)])
        elif kind == 3:
            other = str(n + rng.choice([-2, -1, 1, 2]))
        elif kind == 4 and n > 20:
            other = str(round(n * rng.choice([0.5, 0.8, 0.9, 1.1, 1.2, 1.5, 2])))
        else:
            other = str(n + rng.choice([-1, 1]) * 10 ** rng.randrange(len(digits)))
        if other.lstrip("0") == other and int(other) > 0 and int(other) != n:
            return int(other)


def integer(rng: random.Random) -> Value:
    n = round(10 ** rng.uniform(0.4, 5.5))
    same = _grouped(n)
    if n < 1000 or n % 1000 == 0:
        same.append(words(n))
    near = []
    for _ in range(4):
        other = _near_int(rng, n)
        near += [rng.choice(_grouped(other))] if n >= 1000 or rng.random() < 0.7 else [words(other)]
    return Value(tuple(same), tuple(near))


def _year(rng: random.Random, year: int) -> int:
    return rng.choice([year - 1, year + 1, year + 10, year - 10, year + 100, year - 100, _near_int(rng, year)])


def year(rng: random.Random) -> Value:
    y = rng.randint(1500, 2024)
    return Value((str(y), f"the year {y}", f"in {y}"), tuple(str(_year(rng, y)) for _ in range(3)))


def percent(rng: random.Random) -> Value:
    tenth = rng.random() < 0.4
    p = rng.randint(1, 999) / 10 if tenth else rng.randint(2, 99)
    same = [f"{p}%", f"{p} %", f"{p} percent", f"{p} per cent"]
    if not tenth:
        same += [f"{words(int(p))} percent", f"{p / 100:.2f}".rstrip("0")]
        same += {50: ["half", "one half"], 25: ["a quarter"], 75: ["three quarters"], 20: ["one fifth"], 10: ["one in ten"]}.get(
            int(p), []
        )
    near = [f"{p * 10:g}%", f"{p / 10:g}%", f"{100 - p:g}%", f"{p + rng.choice([-1, 1, 5, 10]):g}%"]
    if not tenth:
        near += [f"{_near_int(rng, int(p))} percent", f"{p / 1000:.3f}"]
    return Value(tuple(same), tuple(n for n in near if n != f"{p:g}%"))


def money(rng: random.Random) -> Value:
    sign, name = rng.choice(list(CURRENCIES.items()))
    big = rng.random() < 0.4
    if big:
        n = rng.choice([round(rng.uniform(1, 90), 1), rng.randint(2, 900)])
        unit, other_unit = rng.choice([("million", "billion"), ("billion", "million"), ("million", "thousand")])
        same = [f"{sign}{n:g} {unit}", f"{n:g} {unit} {name}", f"{sign}{n:g}{unit[0]}" if unit != "billion" else f"{sign}{n:g}bn"]
        same += [f"{sign}{round(n * 10**6):,}"] if unit == "million" else []
        near = [
            f"{sign}{n:g} {other_unit}",
            f"{n:g} {other_unit} {name}",
            f"{sign}{n + rng.choice([-1, 1, 10]):g} {unit}",
            f"{n * 10:g} {unit} {name}",
        ]
    else:
        n = round(10 ** rng.uniform(0.7, 4.5))
        same = [f"{sign}{n:,}", f"{n} {name}", f"{n:,} {name}", f"{sign}{n}.00"]
        near = [f"{sign}{_near_int(rng, n):,}", f"{_near_int(rng, n)} {name}", f"{_near_int(rng, n):,} {name}"]
    wrong_sign, wrong_name = rng.choice([c for c in CURRENCIES.items() if c[0] != sign])
    near += [f"{wrong_sign}{n:g}" + (f" {unit}" if big else ""), f"{n:g} " + (f"{unit} " if big else "") + wrong_name]
    return Value(tuple(same), tuple(near))


def measure(rng: random.Random) -> Value:
    unit = rng.choice(list(UNITS))
    name, equal, others = UNITS[unit]
    n = rng.choice([rng.randint(2, 99), rng.randint(100, 2500), round(rng.uniform(1, 40), 1)])
    text = f"{n:g}"
    same = [f"{text} {unit}", f"{text} {name}", f"{text}{unit}"]
    if equal:
        same += [f"{round(n * equal[0]):,} {equal[1]}", f"{round(n * equal[0])} {equal[1]}"]
    if isinstance(n, int) and n < 100:
        same.append(f"{words(n)} {name}")
    near = [f"{text} {other}" for other in others]
    near += [
        f"{_near_int(rng, n) if isinstance(n, int) else round(n + rng.choice([-1, 1, 0.1, -0.1, 10]), 1):g} {u}"
        for u in (unit, name, unit)
    ]
    near += [f"{n * 10:g} {unit}", f"{n / 10:g} {name}"]
    return Value(tuple(same), tuple(n for n in near if n not in same and not n.startswith("-")))


def _ordinal(n: int) -> str:
    return f"{n}{'th' if 10 <= n % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


def date_notations(day: dt.date) -> list[str]:
    month = MONTHS[day.month - 1]
    d, y = day.day, day.year
    return [
        f"{d} {month} {y}",
        f"{month} {d}, {y}",
        f"{day.isoformat()}",
        f"{_ordinal(d)} of {month} {y}",
        f"{month} {_ordinal(d)}, {y}",
        f"{d} {month[:3]} {y}",
        f"{month[:3]}. {d}, {y}" if month != "May" else f"May {d}, {y}",
        f"the {_ordinal(d)} of {month}, {y}",
        f"{d:02d}.{day.month:02d}.{y}",
    ]


def near_date(rng: random.Random, day: dt.date) -> dt.date:
    """One to three days, a month, a year or a swapped day and month away."""
    while True:
        kind = rng.randrange(5)
        try:
            if kind == 0:
                other = day + dt.timedelta(days=rng.choice([-10, -7, -3, -2, -1, 1, 2, 3, 7, 10]))
            elif kind == 1:
                other = day.replace(month=(day.month - 1 + rng.choice([-2, -1, 1, 2, 6])) % 12 + 1)
            elif kind == 2:
                other = day.replace(year=_year(rng, day.year))
            elif kind == 3:
                other = day.replace(month=day.day, day=day.month)
            else:
                other = day.replace(day=int(str(day.day)[::-1]))
        except ValueError:
            continue
        if other != day:
            return other


def random_date(rng: random.Random) -> dt.date:
    return dt.date(rng.randint(1700, 2030), 1, 1) + dt.timedelta(days=rng.randrange(365))


def date(rng: random.Random, day: dt.date | None = None) -> Value:
    day = day or random_date(rng)
    near = [rng.choice(date_notations(near_date(rng, day))) for _ in range(5)]
    return Value(tuple(date_notations(day)), tuple(near))


def clock(rng: random.Random) -> Value:
    h, m = rng.randrange(24), rng.choice([0, 5, 10, 15, 20, 30, 40, 45, 50])
    half = "am" if h < 12 else "pm"
    same = [f"{h:02d}:{m:02d}", f"{(h - 1) % 12 + 1}:{m:02d} {half}", f"{h}:{m:02d}"]
    wrong = "pm" if half == "am" else "am"
    h2, m2 = (h + rng.choice([-1, 1, 2, 12])) % 24, (m + rng.choice([5, 10, 15, 30])) % 60
    near = [
        f"{(h - 1) % 12 + 1}:{m:02d} {wrong}",
        f"{h2:02d}:{m:02d}",
        f"{h:02d}:{m2:02d}",
        f"{(h - 1) % 12 + 1}:{m2:02d} {half}",
    ]
    return Value(tuple(same), tuple(near))


def duration(rng: random.Random) -> Value:
    n = rng.randint(2, 60)
    unit, times, small = rng.choice(
        [
            ("weeks", 7, "days"),
            ("hours", 60, "minutes"),
            ("years", 12, "months"),
            ("days", 24, "hours"),
            ("minutes", 60, "seconds"),
        ]
    )
    same = [f"{n} {unit}", f"{words(n)} {unit}", f"{n * times} {small}", f"{n * times:,} {small}"]
    near = [
        f"{n} {small}",
        f"{_near_int(rng, n)} {unit}",
        f"{_near_int(rng, n * times)} {small}",
        f"{words(_near_int(rng, n))} {unit}",
    ]
    return Value(tuple(same), tuple(near))


KINDS = {
    "integer": integer,
    "year": year,
    "percent": percent,
    "money": money,
    "measure": measure,
    "date": date,
    "clock": clock,
    "duration": duration,
}
