"""What is decided without a model: two texts that say the same word for word, and an answer that refuses to answer."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["refuses", "same"]

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_ENDS = " .。।۔．"
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "'": "'", "‘": "’", "`": "`"}


def _plain(text: str) -> str:
    """Fold what shows the same: composed characters, blanks of any width, outer quotation marks and the final full stop.

    Case is kept, since «5 mW» is not «5 MW», and so are superscripts, since «10²» is not «102».
    """
    text = " ".join(_INVISIBLE.sub("", unicodedata.normalize("NFC", text)).split()).rstrip(_ENDS)
    inner = text[1:-1]
    if len(text) > 2 and _QUOTES.get(text[0]) == text[-1] and text[0] not in inner and text[-1] not in inner:
        return inner.rstrip(_ENDS)
    return text


def same(one: str, other: str) -> bool:
    r"""Tell whether two texts are equal but for blanks, outer quotation marks and a final full stop.

    Examples
    --------
    >>> same("10 000 zł.", "10\u2009000\u00a0zł"), same("5 mW", "5 MW")
    (True, False)
    """
    plain = _plain(one)
    return bool(plain) and plain == _plain(other)


_SORRY = (
    r"(?:(?:(?:i'?m|i am|we'?re) (?:so |very |really )?(?:sorry|afraid)|sorry|unfortunately|apologies)[ ,.!:]*"
    r"(?:but )?(?:that )?)?"
)
_CANNOT = r"(?:can'?t|cannot|can not|could not|couldn'?t|am (?:not able|unable) to|'m (?:not able|unable) to|are unable to)"
_UNKNOWN = (
    r"(?:do not|don'?t|did not|didn'?t) (?:really |actually |currently )?"
    r"(?:know|have (?:enough |any |the |this |that |sufficient )?(?:information|an? answer|data|details|answer))"
)
_REFUSALS = (
    # English
    rf"{_SORRY}(?:i|we) (?:{_UNKNOWN})(?: (?:the |an? )?(?:answer|about (?:this|that|it)|(?:to )?(?:this|that)))?",
    rf"{_SORRY}(?:i|we) ?{_CANNOT} (?:say|tell)(?: (?:that|this|you|for sure|for certain))?",
    rf"{_SORRY}(?:i|we) ?{_CANNOT} (?:answer|help|assist|provide)(?: (?:that|this|the|an?|you|your|with)\b[^.,;:]{{0,50}})?",
    r"(?:i'?m|i am) not (?:sure|certain)|(?:i have )?no idea|no answer|not answerable|n/?a|dunno|unknown|idk",
    (
        r"(?:there is |there'?s )?(?:not enough|insufficient|no) information"
        r"(?: (?:is |was )?(?:provided|available|given|to answer)\b[^.,;:]{0,40})?"
    ),
    r"(?:it|this|that|the question|the answer) (?:cannot|can'?t|can not) be (?:determined|answered|known)[^.,;:]{0,60}",
    # German, French, Spanish, Italian, Portuguese, Dutch, Polish
    r"(?:(?:es )?tut mir leid[ ,.!:]*)?(?:(?:aber )?das )?(?:ich )?wei(?:ß|ss) (?:ich )?(?:es )?(?:leider )?nicht|keine ahnung",
    r"(?:(?:es )?tut mir leid[ ,.!:]*)?(?:ich kann|das kann ich)(?: leider| diese frage| das)* nicht (?:beantworten|sagen)",
    r"(?:désolé[ ,.!:]*)?(?:mais )?je (?:ne )?(?:le )?(?:sais|connais) pas(?: la réponse)?|aucune idée",
    r"(?:lo siento[ ,.!:]*)?(?:pero )?no (?:lo )?sé|no tengo (?:ni )?idea|no puedo responder[^.,;:]{0,40}",
    r"(?:mi dispiace[ ,.!:]*)?(?:ma )?non (?:lo )?so|non ne ho idea|(?:desculpe[ ,.!:]*)?(?:eu )?não sei|não faço ideia",
    r"(?:sorry[ ,.!:]*)?(?:dat )?(?:ik )?weet (?:ik )?(?:het )?niet|geen idee",
    r"(?:przykro mi[ ,.!:]*)?(?:ale )?(?:ja )?(?:tego )?nie wiem|nie mam pojęcia|nie znam odpowiedzi",
    # Russian, Hindi, Arabic, Japanese, Chinese
    r"(?:извините[ ,.!:]*)?(?:но )?я? ?(?:этого )?не знаю|понятия не имею",
    (
        r"(?:माफ़? ?(?:करें|कीजिए|कीजिये)[ ,.!:]*)?(?:मुझे|मैं)? ?(?:यह |इसका उत्तर )?"
        r"(?:नहीं पता|पता नहीं|नहीं जानता|नहीं जानती|मालूम नहीं|नहीं मालूम)(?: है| हूँ| हूं)?"
    ),
    r"(?:عذر[اً]+|آسف|آسفة)?[ ،.!:]*(?:أنا )?لا (?:أعرف|اعرف|أعلم|اعلم|أدري|ادري)(?: الإجابة| الجواب)?",
    (
        r"(?:すみません|申し訳(?:ありません|ございません))?[、。,. ]*(?:が、?)?(?:私は|私には)?(?:答えは?)?"
        r"(?:わかりません|分かりません|わからない|分からない|知りません|存じません)"
    ),
    r"(?:抱歉|对不起|對不起)?[，,。. ]*(?:但)?我?(?:不知道|不清楚|不确定|無法回答|无法回答)(?:答案|这个问题)?",
)
_REFUSAL = re.compile("|".join(f"(?:{each})" for each in _REFUSALS), re.IGNORECASE)
_CASE = str.maketrans({"’": "'", "‘": "'", "`": "'"})


def refuses(text: str) -> bool:
    """Tell whether a text does nothing but refuse to answer; one that goes on to say something does not.

    Fixed phrases of English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, Russian, Hindi, Arabic, Japanese and
    Chinese. What is worded otherwise is no refusal here, and is scored by its claims.

    Examples
    --------
    >>> refuses("I’m sorry, but I don't know."), refuses("I don't know the fee, but the balance is ₹10,000.")
    (True, False)
    """
    return _REFUSAL.fullmatch(_plain(text).translate(_CASE).strip(" .!?…")) is not None
