"""Equal texts and refusals."""

import pytest

from isograde.correctness.rules import refuses, same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Paris.", " Paris "),
        ("10 000 zł", "10\u2009000\u00a0zł."),
        ("cafe\u0301", "café"),
        ("«Hamlet»", "Hamlet"),
        ("東京。", "東京"),
        ("a\u200bb", "ab"),
        ("one\ntwo", "one two"),
    ],
)
def test_the_same(one, other):
    assert same(one, other)
    assert same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 mW", "5 MW"),
        ("10²", "102"),
        ("3.5%", "35%"),
        ("", ""),
        ("…", ".."),
        ("Paris!", "Paris?"),
        ("-5", "5"),
        ('"a" or "b"', 'a" or "b'),
    ],
)
def test_not_the_same(one, other):
    assert not same(one, other)


REFUSALS = """I don't know.|I don’t know the answer|Sorry, I cannot answer that question.|I'm sorry, but I can't help with that.|I am not sure.
No idea!|N/A|Not enough information.|There is no information available.|Unfortunately, I don't have enough information
I'm unable to answer this question.|The answer cannot be determined from the context.|Ich weiß es nicht.|Das weiß ich leider nicht.
Je ne sais pas.|No lo sé.|Non lo so|Não sei.|Ik weet het niet|Nie wiem.|Przykro mi, nie wiem.|Я не знаю.|मुझे नहीं पता।|मुझे पता नहीं है।
لا أعرف.|عذراً، لا أعرف الإجابة.|わかりません。|すみません、わかりません。|我不知道。|抱歉，我不知道答案。"""
ANSWERS = """I don't know the fee, but the minimum balance is 5.|No|Yes|Unknown soldier|I'm not sure, Paris?|I can't swim|We do not know each other
No information is lost in Huffman coding|I cannot say no to cake|I cannot tell the time|Das kann ich beantworten|知りませんでした|Nie."""


@pytest.mark.parametrize("text", REFUSALS.replace("\n", "|").split("|"))
def test_refusals(text):
    assert refuses(text)


@pytest.mark.parametrize("text", ANSWERS.replace("\n", "|").split("|"))
def test_what_says_something_is_no_refusal(text):
    assert not refuses(text)
