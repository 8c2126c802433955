"""Claims without a generating model: the sentences of a text, in whatever language.

The segmenter is Wikimedia's ``sentencex`` (MIT, wheels for Linux, macOS and Windows, 1.2 MB, no dependencies). It was chosen over
``pysbd`` (needs to be told the language, else «।» and «؟» end nothing; 145 times slower; no release since 2021), over
``blingfire`` (cuts lists after the number, does not know «।», and «Dr.» ends a German sentence) and over ``wtpsplit`` (a neural
network with torch or onnxruntime). Told «en», it still ends sentences at «।», «。», «؟» and «۔» and knows the abbreviations of
English. What it leaves is mended here: each line of a list or table stands alone, headings and code
fences state nothing, a line that was only wrapped goes on, and a piece that is only an abbreviation or begins in lower case
belongs to its neighbour. What is not mended: «Am 3. Oktober» is cut after «3.».
"""

from __future__ import annotations

import importlib.util
import re

from isograde.errors import UserError

__all__ = ["check_segmenter", "sentences"]

_BULLET = re.compile(r"[-*+•–—·▪●>]\s+")
_NO_CLAIM = re.compile(r"#{1,6}\s.*|(?:`{3,}|~{3,})[^`]*")  # a heading, a code fence
_RULE = re.compile(r"[\s|:=_*+–—-]*")  # under a table's head, between paragraphs
_CELLS = re.compile(r"\s*\|\s*")
_FRAGMENT = re.compile(r"\S{1,4}\.")  # «Ul.», «डॉ.»; also «Yes.», which says nothing by itself
_WRAPPED = 50  # characters from which a line without an end may go on in the next one


def check_segmenter() -> None:
    """Refuse to go on without the segmenter.

    Raises
    ------
    UserError
        If ``sentencex`` is not installed.
    """
    if importlib.util.find_spec("sentencex") is None:
        raise UserError('without a model that writes, claims are sentences, which needs: pip install "isograde[embedded]"')


def sentences(text: str) -> list[str]:
    r"""Cut a text into sentences; a line of a list or of a table is one or more of its own.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of str
        Without marks of lists and outer blanks; empty where the text shows nothing.

    Examples
    --------
    >>> sentences("The rate is 3.5% p.a. (see Dr. Lee). Free of charge.\n- one\n- two")
    ['The rate is 3.5% p.a. (see Dr. Lee).', 'Free of charge.', 'one', 'two']
    >>> sentences("ब्याज दर 3.5% है। पासबुक मुफ्त है।")
    ['ब्याज दर 3.5% है।', 'पासबुक मुफ्त है।']
    """
    import sentencex

    found: list[str] = []
    for line in _lines(text):
        for piece in _joined(sentencex.segment("en", line)):
            if found and found[-1].endswith((":", "：")):  # it announces what follows, and states nothing without
                found[-1] = f"{found[-1]} {piece}"
            elif any(map(str.isalnum, piece)):
                found.append(piece)
    return found


def _lines(text: str) -> list[str]:
    """Cut a text into lines, those of lists and tables without their marks."""
    lines: list[str] = []
    after_row = False
    for line in map(str.strip, text.splitlines()):
        if _NO_CLAIM.fullmatch(line):
            continue
        in_table = line.startswith("|")
        if _RULE.fullmatch(line):
            if in_table and after_row:  # names of columns state nothing
                lines.pop()
            after_row = False
            continue
        after_row = in_table
        bullet = _BULLET.match(line)
        if in_table:
            line = ": ".join(filter(None, _CELLS.split(line)))  # noqa: PLW2901 - the same line without its marks
        elif bullet:
            line = line[bullet.end() :]  # noqa: PLW2901 - as above
        if lines and not (in_table or bullet) and _wrapped(lines[-1], line):
            lines[-1] = f"{lines[-1]} {line}"
        else:
            lines.append(line)
    return lines


def _wrapped(line: str, following: str) -> bool:
    """Tell whether a line was only broken to fit a page."""
    return len(line) >= _WRAPPED and (line[-1].isalnum() or line[-1] == ",") and following[0].islower()


def _joined(pieces: list[str]) -> list[str]:
    """Put together what the segmenter cut too much."""
    joined: list[str] = []
    fragment = False
    for piece in filter(None, map(str.strip, pieces)):
        if joined and (fragment or piece[0].islower()):
            joined[-1] = f"{joined[-1]} {piece}"
        else:
            joined.append(piece)
        fragment = _FRAGMENT.fullmatch(piece) is not None
    return joined
