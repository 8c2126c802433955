"""response → LevelDistribution. Pure: what a server sent, read by position, never searched for a digit.

The rules, in order:

1. A token counts for a level when, trimmed of white space and of the tokenizer's space marks, it equals the level's label. All
   variants of a label are summed; the chosen token counts too when the server did not list it. Everything else is other mass.
2. A logprob of −9999 or lower, −inf, NaN or null is no value: that token counts as not listed.
3. What the listed values leave to 1 is unseen and may lie on any level; it sets the bounds of the expected level.
4. Too little mass on the levels is a failure, never a renormalised guess.
5. The answer token is found by its position after any thinking (and, with reasoning first, after the last cue).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from isograde.records import FailureStatus, GradeFailure, LevelDistribution

__all__ = ["answer_position", "each_choice", "read_answer", "read_response"]

_NO_VALUE = -9999.0
_MAX_SUM = 1.01
_MARKS = "\u2581\u0120\u010a"  # ▁ (SentencePiece), Ġ and Ċ (byte-level BPE)
_EDGES = re.compile(rf"\A[\s{_MARKS}]+|[\s{_MARKS}]+\Z")
_MARK_BLANKS = str.maketrans(dict(zip(_MARKS, "  \n", strict=True)))
_SPECIAL = re.compile(r"<[|｜].*[|｜]>|</s>|<eos>|<end_of_turn>", re.DOTALL)
_UNSURE = re.compile(r"[^\x00-\x7f]|\\x[0-9a-f]{2}")  # characters that a token list may split into bytes


class _Failed(Exception):  # noqa: N818 - it never leaves this module
    """Carries a failure's status to the top of the reading."""

    def __init__(self, status: FailureStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class _Token:
    """One listed token; ``key`` tells it from others of the same text."""

    text: str
    value: float | None
    key: object


@dataclass(frozen=True, slots=True)
class _Position:
    """One position of the answer: what was chosen, and what was listed."""

    chosen: _Token
    listed: tuple[_Token, ...]


def read_response(
    body: Any,
    labels: Sequence[str] = ("0", "1", "2", "3", "4"),
    *,
    method: Literal["answer_token", "reasoning_first"] = "answer_token",
    cue: str = "Level:",
    min_mass: float = 0.5,
) -> LevelDistribution | GradeFailure:
    """Read a chat completion into a probability per level.

    Parameters
    ----------
    body : mapping
        The decoded JSON of a chat completion; anything else is a failure with status ``server_error``.
    labels : sequence of str, length n
        The levels' labels, from worst to best.
    method : {"answer_token", "reasoning_first"}
        Whether the answer is the first token of the final answer, or the first after the last ``cue``.
    cue : str
        What comes before the level when the model reasons first.
    min_mass : float
        Observed mass below which the reading fails with status ``low_mass``.

    Returns
    -------
    LevelDistribution or GradeFailure
        The failure's status is the first that applies: ``server_error``, ``filtered``, ``no_answer``, ``no_logprobs``,
        ``low_mass``.

    Examples
    --------
    >>> top = [{"token": "4", "logprob": -0.22}, {"token": " 4", "logprob": -2.5}, {"token": "3", "logprob": -2.3}]
    >>> position = {"token": "4", "logprob": -0.22, "top_logprobs": top}
    >>> body = {"choices": [{"message": {"content": "4"}, "logprobs": {"content": [position]}}]}
    >>> seen = read_response(body)
    >>> round(seen.expected_level, 2), round(seen.observed_mass, 2), seen.missing_levels
    (3.9, 0.98, ('0', '1', '2'))
    >>> read_response({"choices": []}).status
    'server_error'
    """
    try:
        choice = _first_choice(body)
        content = _content(choice)
        positions = _positions(choice.get("logprobs"))
        at = _answer_position([p.chosen.text for p in positions], content, method, cue)
        _refuse_longer_number(positions, at, content, labels)
        return _distribution(positions, at, tuple(labels), min_mass)
    except _Failed as failed:
        return GradeFailure(status=failed.status, message=str(failed))


def answer_position(
    body: Any, *, method: Literal["answer_token", "reasoning_first"] = "answer_token", cue: str = "Level:"
) -> int | None:
    """Count the tokens before the answer token; None where there is no answer, or no list to find it in.

    Examples
    --------
    >>> blank, level = ({"token": token, "logprob": -0.1} for token in (" ", "4"))
    >>> answer_position({"choices": [{"message": {"content": "4"}, "logprobs": {"content": [blank, level]}}]})
    1
    """
    try:
        choice = _first_choice(body)
        content = _content(choice)
        return _answer_position([p.chosen.text for p in _positions(choice.get("logprobs"))], content, method, cue)
    except _Failed:
        return None


def each_choice(body: Any) -> list[dict[str, Any]]:
    """Take a completion with several choices apart into one of one choice each; empty where there are none.

    Examples
    --------
    >>> each_choice({"model": "m", "choices": [{"index": 0}, {"index": 1}]})
    [{'model': 'm', 'choices': [{'index': 0}]}, {'model': 'm', 'choices': [{'index': 1}]}]
    """
    choices = body.get("choices") if isinstance(body, Mapping) else None
    return [{**body, "choices": [choice]} for choice in choices] if isinstance(choices, list) else []


def read_answer(body: Any, labels: Sequence[str], *, cue: str = "Level:") -> str | GradeFailure:
    """Read which level an answer names, by position: at its start, or after the cue at its start.

    Parameters
    ----------
    body : mapping
        The decoded JSON of a chat completion; no logprobs are needed.
    labels : sequence of str
        The levels' labels.
    cue : str
        What may come before the level.

    Returns
    -------
    str or GradeFailure
        The label, or why there is none.

    Examples
    --------
    >>> def read(text):
    ...     return read_answer({"choices": [{"message": {"content": text}}]}, ["0", "1", "2", "3", "4"])
    >>> read(" Level: 3"), read("<think>2?</think>1 ")
    ('3', '1')
    >>> read("4.5").message
    "the answer names no level: '4.5'"
    """
    try:
        content = _trim(_content(_first_choice(body)))
        named = re.match(rf"(?:{re.escape(cue)}\s*)?({'|'.join(map(re.escape, labels))})(?!\w|[.,]\d)", content)
        if named is None:
            raise _Failed("no_answer", f"the answer names no level: {content[:40]!r}")
        return named[1]
    except _Failed as failed:
        return GradeFailure(status=failed.status, message=str(failed))


def _first_choice(body: Any) -> Mapping[str, Any]:
    """Take the one choice that was asked for."""
    if not isinstance(body, Mapping):
        raise _Failed("server_error", f"the server sent {type(body).__name__} in place of a chat completion")
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    error = body.get("error") or (choice.get("error") if isinstance(choice, Mapping) else None)
    if error:
        message = error.get("message") if isinstance(error, Mapping) else error
        raise _Failed("server_error", f"the server answered with an error: {' '.join(str(message).split())[:300]}")
    if not isinstance(choice, Mapping):
        raise _Failed("server_error", "the server answered without any choice")
    if choice.get("finish_reason") == "content_filter":
        raise _Failed("filtered", "the provider's content filter stopped the answer")
    return choice


def _content(choice: Mapping[str, Any]) -> str:
    """Text of the final answer; thinking that stands in it is cut off."""
    message = choice.get("message")
    content = message.get("content") if isinstance(message, Mapping) else choice.get("text")
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    if not isinstance(content, str):
        content = ""
    if content.lstrip().startswith("<think>") and "</think>" not in content:
        raise _Failed("no_answer", "the model was still thinking when its tokens ran out")
    content = content.rpartition("</think>")[2]
    if not _trim(content):
        reason = choice.get("finish_reason")
        ran_out = "; the token limit was reached before an answer" if reason == "length" else ""
        raise _Failed("no_answer", f"the answer is blank{ran_out}")
    return content


def _positions(logprobs: Any) -> list[_Position]:
    """Read the list of positions, in the chat shape or the legacy one."""
    if not isinstance(logprobs, Mapping):
        raise _Failed("no_logprobs", "the answer came without logprobs")
    content = logprobs.get("content")
    if content is None and isinstance(logprobs.get("tokens"), list):
        content = _from_legacy(logprobs)
    if not isinstance(content, list) or not content:
        raise _Failed("no_logprobs", "the answer came with an empty or malformed list of logprobs")
    return [_Position(_token(entry), tuple(map(_token, _alternatives(entry)))) for entry in content]


def _from_legacy(logprobs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Bring the legacy completions shape (parallel lists, a mapping a position) into the chat shape."""
    tokens = logprobs["tokens"]
    own, top = (value if isinstance(value := logprobs.get(name), list) else [] for name in ("token_logprobs", "top_logprobs"))
    entries = []
    for i, token in enumerate(tokens):
        listed = top[i] if i < len(top) else None
        if isinstance(listed, Mapping):
            listed = [{"token": text, "logprob": value} for text, value in listed.items()]
        entries.append({"token": token, "logprob": own[i] if i < len(own) else None, "top_logprobs": listed})
    return entries


def _alternatives(entry: Mapping[str, Any]) -> list[Any]:
    """List the alternatives of an entry; none where the server listed none."""
    listed = entry.get("top_logprobs")
    if listed is not None and not isinstance(listed, list):
        raise _Failed("no_logprobs", "the answer came with malformed logprobs")
    return listed or []


def _token(entry: Any) -> _Token:
    """Read one token, its value and its identity."""
    text = entry.get("token") if isinstance(entry, Mapping) else None
    if not isinstance(text, str):
        raise _Failed("no_logprobs", "the answer came with malformed logprobs")
    raw, identity = entry.get("bytes"), entry.get("id")
    key = identity if isinstance(identity, int) else tuple(raw) if isinstance(raw, list) and raw else None
    return _Token(text, _value(entry.get("logprob")), key)


def _value(logprob: Any) -> float | None:
    """Read a logprob; None where it is no value."""
    if logprob is None:
        return None
    if isinstance(logprob, bool) or not isinstance(logprob, int | float):
        raise _Failed("no_logprobs", "the answer came with a logprob that is no number")
    if logprob > 1:
        return 1.0  # breaks the sum whatever its size, and exp cannot overflow
    return float(logprob) if logprob > _NO_VALUE else None  # NaN compares false


def _trim(text: str) -> str:
    return _EDGES.sub("", text)


def _squash(text: str) -> str:
    """Drop white space and space marks, so that two spellings of one text compare equal."""
    return "".join(text.translate(_MARK_BLANKS).split())


def _answer_position(tokens: list[str], content: str, method: str, cue: str) -> int:
    """Find the answer token by position."""
    texts = [token.translate(_MARK_BLANKS) for token in tokens]
    ends = []
    length = 0
    for text in texts:
        length += len(text)
        ends.append(length)
    whole = "".join(texts)
    start = _content_start(tokens, content)
    thought = whole.rfind("</think>")
    from_character = max(thought + len("</think>") if thought >= 0 else 0, ends[start] - len(texts[start]))
    if method == "reasoning_first":
        found = whole.rfind(cue, from_character)
        if found < 0:
            raise _Failed("no_answer", f"the reasoning never came to {cue!r}")
        from_character = found + len(cue)
    for at, end in enumerate(ends):
        if end > from_character and _trim(texts[at][max(0, from_character - end + len(texts[at])) :]):
            return at
    raise _Failed("no_answer", "no token of the list belongs to the final answer")


def _content_start(tokens: list[str], content: str) -> int:
    """Index of the first token of the suffix that spells the content; 0 where the list does not hold more than the content."""
    last = len(tokens)
    while last > 1 and (not _trim(tokens[last - 1]) or (_SPECIAL.fullmatch(_trim(tokens[last - 1])))):
        last -= 1  # end-of-turn tokens are listed by some servers and never part of the content
    for reduce in (_squash, lambda text: _UNSURE.sub("", _squash(text))):
        target = reduce(content)
        spelled = ""
        for start in range(last - 1, -1, -1) if target else ():
            spelled = reduce(tokens[start]) + spelled
            if len(spelled) >= len(target):
                if spelled.endswith(target):
                    return start
                break
    return 0


def _refuse_longer_number(positions: list[_Position], at: int, content: str, labels: Sequence[str]) -> None:
    """Fail where the chosen label goes on as another number: 4.5, 10."""
    label = _trim(positions[at].chosen.text)
    if label not in labels or not label[-1].isdecimal() or positions[at].chosen.text.rstrip() != positions[at].chosen.text:
        return
    rest = "".join(position.chosen.text for position in positions[at + 1 :])
    if not rest and _trim(content).startswith(label):
        rest = _trim(content)[len(label) :]
    if re.match(r"[.,]?\d", rest):
        raise _Failed("no_answer", f"the answer goes on after {label!r} as another number: {label + rest[:8]!r}")


def _distribution(positions: list[_Position], at: int, labels: tuple[str, ...], min_mass: float) -> LevelDistribution:
    """Sum the values at the answer position by level."""
    chosen, listed = positions[at].chosen, positions[at].listed
    if not listed:
        raise _Failed("no_logprobs", "no alternatives are listed beside the answer token")
    valued = [token for token in listed if token.value is not None]
    if not any(_same(chosen, token) for token in valued):
        if chosen.value is None:
            raise _Failed("no_logprobs", "the answer token has no logprob, and the list holds none for it")
        valued.append(chosen)
    values = [token.value for token in valued if token.value is not None]
    if values == [0.0]:
        raise _Failed("no_logprobs", "the server cut the distribution down to the one chosen token")
    probabilities = [math.exp(value) for value in values]
    total = math.fsum(probabilities)
    if total > _MAX_SUM:
        raise _Failed("no_logprobs", f"the listed probabilities add up to {total:.3g}")
    by_label: dict[str, list[float]] = {label: [] for label in labels}
    for token, probability in zip(valued, probabilities, strict=True):
        label = _trim(token.text)
        if label in by_label:
            by_label[label].append(probability)
    masses = [math.fsum(by_label[label]) for label in labels]
    mass = math.fsum(masses)
    if mass < min_mass or mass <= 0:
        raise _Failed("low_mass", f"levels hold {mass:.3g} of the probability, under {min_mass:g}; answered {chosen.text[:40]!r}")
    before = [position.chosen.value for position in positions[:at]]
    known = [value for value in before if value is not None]
    return LevelDistribution(
        labels=labels,
        probabilities=tuple(each / mass for each in masses),
        observed_mass=mass,
        unseen_mass=max(0.0, 1 - total),
        missing_levels=tuple(label for label in labels if not by_label[label]),
        prefix_probability=math.exp(min(0.0, math.fsum(known))) if len(known) == len(before) else None,
    )


def _same(one: _Token, other: _Token) -> bool:
    """Tell whether two entries are one token: same text, and same identity where both have one of a kind."""
    if one.text != other.text:
        return False
    return one.key is None or other.key is None or type(one.key) is not type(other.key) or one.key == other.key
