"""What models write in place of the JSON that was asked for."""

import pytest

from isograde.correctness.reading import claims_of, read_reply

TWO = ["It flies.", "It is red."]


@pytest.mark.parametrize(
    "text",
    [
        '{"claims": ["It flies.", "It is red."]}',
        '```json\n{"claims": ["It flies.", "It is red."]}\n```',
        '```\n["It flies.", "It is red."]\n```\nShall I go on?',
        'Sure! Here are the claims [2]: {"claims": ["It flies.", "It is red."]} I hope that helps {really}.',
        '{"statements": ["It flies.", "It is red."]}',
        '{"text": ["It flies.", "It is red."]}',
        '{"statements": [{"statement": "It flies."}, {"text": "It is red."}]}',
        '[{"claim": "It flies."}, {"claim": "It is red."}]',
        '{"claims": ["It flies.", "It is red.",],}',
        '{"claims": ["It\nflies.", "  It is red.  "]}',
        '{"claims": ["It flies.", "It flies", "It is red.", ""]}',
        '{"facts_found": ["It flies.", "It is red."], "n": 2}',
        '```json\n{"claims": ["It flies.", "It is red."]}',
    ],
)
def test_shapes_of_two_claims(text):
    assert read_reply(text, claims_of) == TWO


def test_escapes_that_json_does_not_know():
    assert read_reply(r'{"claims": ["50\% of \$5", "a\\b \"c\" \u00e9"]}', claims_of) == [r"50\% of \$5", 'a\\b "c" é']


def test_one_text_for_a_list():
    assert read_reply('{"text": "It flies."}', claims_of) == ["It flies."]


def test_none_is_an_answer():
    assert read_reply('{"claims": []}', claims_of) == []
    assert read_reply("[]", claims_of) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is blank"),
        ("It flies and is red.", "no whole JSON"),
        ('{"claims": ["It flies.", "It i', "no whole JSON"),
        ('{"claims": [{"claim": "It flies."}, {"claim": "It', "no whole JSON"),
        ('{"verdict": 1}', "no {"),
        ('{"claims": 5}', "no list"),
        ('{"claims": [1, 2]}', "no text"),
        ('{"a": ["x"], "b": ["y"]}', "no {"),
        ("[" * 100_000, "no whole JSON"),
    ],
)
def test_what_cannot_be_read_is_said(text, said):
    with pytest.raises(ValueError, match=said):
        read_reply(text, claims_of)
