"""Graded text made harmless, and figures made readable; used by every form of a report."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

__all__ = ["MAX_TEXT", "clipped", "in_markdown", "level_name", "number", "percent", "plural", "visible"]

MAX_TEXT = 1500
"""Characters of a graded text that a report shows."""

_JOINERS = "\u200c\u200d"  # emoji and Persian are spelled with them
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", '"': "&quot;"}
_IN_MARKDOWN = str.maketrans(_ENTITIES | {c: f"\\{c}" for c in "\\`*_{}[]#|~$^"})


def visible(text: object) -> str:
    r"""Replace what acts instead of showing: control and direction characters, lone surrogates; line breaks become ``\n``.

    Examples
    --------
    >>> visible("a\x1b[31mb\u202ec\r\nd")
    'a�[31mb�c\nd'
    """
    lines = str(text).replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    if lines.isascii() and lines.isprintable():
        return lines
    return "".join(
        c if c in "\n\t" or c in _JOINERS or unicodedata.category(c) not in {"Cc", "Cf", "Cs"} else "\ufffd" for c in lines
    )


def clipped(text: str, limit: int = MAX_TEXT) -> str:
    """Cut a long text, and say how much is missing.

    Examples
    --------
    >>> clipped("abcdef", 4)
    'abcd… [cut: 2 more characters]'
    """
    return text if len(text) <= limit else f"{text[:limit]}… [cut: {plural(len(text) - limit, 'more character')}]"


def in_markdown(text: str) -> str:
    r"""Text on one line in which Markdown finds nothing to act on: no HTML, table cell, link or mention.

    Examples
    --------
    >>> in_markdown("a|b <i>c</i>\n*d*")
    'a\\|b &lt;i&gt;c&lt;/i&gt; \\*d\\*'
    """
    line = " ".join(text.split()).translate(_IN_MARKDOWN).replace("://", "&#58;//")
    return re.sub(r"\b(www)\.", r"\1&#46;", line, flags=re.IGNORECASE)


def number(value: float | None, digits: int = 2) -> str:
    """A figure for people: a proper minus, no minus before zero, a dash for none.

    Examples
    --------
    >>> number(-0.126), number(-0.001), number(None)
    ('−0.13', '0.00', '–')
    """
    if value is None:
        return "–"
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text.replace("-", "−")


def percent(value: float | None) -> str:
    """A share for people.

    Examples
    --------
    >>> percent(0.1234)
    '12.3 %'
    """
    return "–" if value is None else f"{number(100 * value, 1)} %"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    Examples
    --------
    >>> plural(1, "label"), plural(2000, "label")
    ('1 label', '2,000 labels')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def level_name(value: float | None, labels: Sequence[str]) -> str:
    """A level index in the rubric's own labels where it is whole, else as an index.

    Examples
    --------
    >>> level_name(2.0, ("1", "2", "3")), level_name(0.5, ("1", "2", "3")), level_name(0.5, ("bad", "good"))
    ('3', '1.50', 'level 0.50')
    """
    if value is None:
        return "–"
    if value == int(value):
        return labels[int(value)]
    try:
        own = [float(label) for label in labels]
    except ValueError:
        return f"level {number(value)}"
    below = int(value)
    return number(own[below] + (value - below) * (own[below + 1] - own[below]))
