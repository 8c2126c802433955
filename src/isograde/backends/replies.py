"""What a server's reply means for the pace, the retries and the run; pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from isograde.records import Usage

__all__ = ["error_in", "error_words", "is_daily", "is_transient", "retry_after", "usage_in"]

_DAY = re.compile(r"\b(?:per[ _-]?day|daily|rpd|tpd)\b", re.IGNORECASE)
_SAME_AGAIN = ("json compliant", "insufficient_quota", "too large to process")
"""SGLang's −inf, an empty account, llama.cpp's text too long to embed: asking again changes nothing."""


def is_transient(status: int, message: str) -> bool:
    """Tell whether the same request may succeed a moment later.

    Parameters
    ----------
    status : int
        HTTP status.
    message : str
        The server's words.

    Examples
    --------
    >>> is_transient(502, "Bad gateway"), is_transient(400, "unknown parameter"), is_transient(429, "insufficient_quota")
    (True, False, False)
    """
    if any(said in message.lower() for said in _SAME_AGAIN):
        return False
    return status in {408, 409, 425, 429} or status >= 500


def is_daily(message: str) -> bool:
    """Tell whether a refusal speaks of a day's quota.

    Examples
    --------
    >>> is_daily("Rate limit reached for requests per day (RPD)"), is_daily("Rate limit reached for requests per min (RPM)")
    (True, False)
    """
    return _DAY.search(message) is not None


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Read how many seconds a server asks to be left alone.

    Parameters
    ----------
    headers : mapping
        ``Retry-After`` as seconds or as an HTTP date (RFC 9110, section 10.2.3), ``retry-after-ms`` before it.
    now : float
        Seconds since 1970.

    Returns
    -------
    float or None
        At least 0; None where nothing that can be read is said.

    Examples
    --------
    >>> retry_after({"retry-after": "20"}, 0), retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 15)
    (20.0, 45.0)
    """
    for name, scale in (("retry-after-ms", 1000), ("retry-after", 1)):
        said = headers.get(name)
        if said is None:
            continue
        try:
            seconds = float(said) / scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(said).timestamp() - now
            except (ValueError, OverflowError):
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def error_in(body: Any) -> tuple[int, str] | None:
    """Find an error that came with status 200, or an answer without any choice.

    Returns
    -------
    tuple of int and str, or None
        The HTTP status that it amounts to, 502 where it names none, and the server's words.

    Examples
    --------
    >>> error_in({"error": {"code": 429, "message": "slow down"}}), error_in({"choices": [{}]})
    ((429, 'slow down · 429'), None)
    """
    if not isinstance(body, Mapping):
        return None
    error = body.get("error")
    if not error:
        choices = body.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        error = first.get("error") if isinstance(first, Mapping) else "no choices" if choices == [] else None
    if not error:
        return None
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 502, error_words({"error": error})


def error_words(body: Any) -> str:
    """Take the server's own words, with its code, in one line.

    Examples
    --------
    >>> error_words({"error": {"message": "The model does not exist", "code": "model_not_found"}})
    'The model does not exist · model_not_found'
    """
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        inner = inner if isinstance(inner, Mapping) else {"message": inner}
        said = [str(inner.get(key)) for key in ("message", "detail", "code", "param") if inner.get(key)]
        text = " · ".join(said) or str(body)
    else:
        text = str(body)
    return " ".join(text.split())[:500]


def usage_in(body: Any) -> Usage | None:
    """Read the tokens that the server counted.

    Examples
    --------
    >>> usage_in({"usage": {"prompt_tokens": 180, "completion_tokens": "many"}})
    Usage(input_tokens=180, output_tokens=None, cached_tokens=None)
    """
    usage = body.get("usage") if isinstance(body, Mapping) else None
    if not isinstance(usage, Mapping):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    said = (usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)
    counts = [count if type(count) is int and 0 <= count < 2**53 else None for count in said]
    return Usage(input_tokens=counts[0], output_tokens=counts[1], cached_tokens=counts[2])
