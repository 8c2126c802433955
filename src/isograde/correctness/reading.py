"""What a model wrote → JSON → claims. Tolerant of the wrapping, strict about the content. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeVar

from isograde.correctness.rules import same

__all__ = ["claims_of", "read_reply"]

T = TypeVar("T")

_FENCE = re.compile(r"```[\w-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_INSIDE = re.compile(r'(?:[\[{]|["}\]\d]\s*,|"\s*:)\s*\Z')  # before a part of an object or array
_BEFORE = 40  # characters in front of a bracket that tell whether it stands inside
_TRIES = 100  # brackets that are tried, so that no reply takes long
_LAST_COMMA = re.compile(r",(?=\s*[}\]])")
_KEYS = ("claims", "statements", "text", "facts", "sentences")
_TEXT_KEYS = ("claim", "statement", "text", "simpler_statement", "fact", "sentence")


def read_reply(text: str, read: Callable[[Any], T]) -> T:
    r"""Find the JSON in a reply and read it: fenced or bare, with prose around it, with escapes that JSON does not know.

    Parameters
    ----------
    text : str
    read : callable
        Takes decoded JSON; a ValueError says what is wrong with it.

    Returns
    -------
    object
        What ``read`` made of the first object or array that it takes. A part of an object that was cut is none.

    Raises
    ------
    ValueError
        If there is none; of the first that was refused, it says why.

    Examples
    --------
    >>> read_reply('Here it is:\n```json\n{"claims": ["50\\% of it"]}\n```\nAnything else?', claims_of)
    ['50\\% of it']
    """
    problem: ValueError | None = None
    for form in _forms(text):
        end = 0
        for start in islice(re.finditer(r"[{\[]", form), _TRIES):
            if start.start() < end or _INSIDE.search(form[max(0, start.start() - _BEFORE) : start.start()]):
                continue
            try:
                found, end = json.JSONDecoder(strict=False).raw_decode(form, start.start())
            except (ValueError, RecursionError):
                continue
            try:
                return read(found)
            except ValueError as error:
                problem = problem or error
    raise problem or ValueError("it holds no whole JSON" if text.strip() else "it is blank")


def _forms(text: str) -> Iterator[str]:
    """Give the text in forms that come ever less close to what was written."""
    fenced = [found[1] for found in _FENCE.finditer(text)]
    for form in (*fenced, text):
        yield form
    for form in (*fenced, text):
        yield _LAST_COMMA.sub("", _BAD_ESCAPE.sub(r"\\\\", form))


def claims_of(value: Any) -> list[str]:
    """Read a list of claims, in the shapes in which models give it.

    Parameters
    ----------
    value : object
        Decoded JSON: ``{"claims": [...]}``, another key with a list or one text in it, or the list itself; its entries texts, or
        objects with a text.

    Returns
    -------
    list of str
        One of each: a claim that is said twice counts once.

    Raises
    ------
    ValueError
        If it is none of these.

    Examples
    --------
    >>> claims_of({"statements": ["It flies.", {"statement": "It is red."}, "It flies"]}), claims_of({"text": "It flies."})
    (['It flies.', 'It is red.'], ['It flies.'])
    """
    if isinstance(value, dict):
        inner = [value[key] for key in _KEYS if key in value] or [each for each in value.values() if isinstance(each, list)]
        if len(inner) != 1:
            raise ValueError('it is no {"claims": [...]}')
        value = inner[0]
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list):
        raise ValueError('"claims" is no list of texts')
    claims: list[str] = []
    for entry in listed:
        if isinstance(entry, dict):
            entry = next((entry[key] for key in _TEXT_KEYS if key in entry), None)  # noqa: PLW2901 - the text in it
        if not isinstance(entry, str):
            raise ValueError("a claim is no text")
        claim = " ".join(entry.split())
        if any(map(str.isalnum, claim)) and not any(same(claim, other) for other in claims):
            claims.append(claim)
    return claims
