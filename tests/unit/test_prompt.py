"""The prompt of an item."""

import time

import pytest

from isograde import Item, Rubric, load_rubric
from isograde.prompt import InvalidItemError, escape, is_blank, prompt_fingerprint, render

ITEM = Item(input="Who?", output="Ada", expected=["Ada Lovelace", "Lovelace"], context=["c1", "c2"])


def rubric(**changes):
    content = load_rubric("relevance").model_dump() | changes
    return Rubric.model_validate(content)


def test_rubric_text_is_literal():
    mine = rubric(instructions="50 % of {people} say {{ output }} %s {0}", item="{{output}} {x} %d {output} {input}")
    prompt = render(mine, ITEM)
    assert prompt.system.startswith("50 % of {people} say {{ output }} %s {0}")
    assert prompt.user == "{{output}} {x} %d <answer>\nAda\n</answer> <question>\nWho?\n</question>\nLevel?"


def test_each_reference_gets_its_prompt_and_contexts_are_joined():
    correctness = load_rubric("answer_correctness")
    assert "<reference>\nLovelace\n</reference>" in render(correctness, ITEM, reference=1).user
    assert "<context>\nc1\n\nc2\n</context>" in render(load_rubric("faithfulness"), ITEM).user


def test_fields_of_its_own_come_from_metadata():
    mine = rubric(fields={"output": "answer", "tone": "tone"}, item="{output} {tone}")
    assert "<tone>\nkind\n</tone>" in render(mine, Item(output="a", metadata={"tone": "kind"})).user
    with pytest.raises(InvalidItemError, match="'tone' is missing"):
        render(mine, Item(output="a"))


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (Item(output="a", expected="b"), "'input' is missing"),
        (Item(input="q", output=None, expected="b"), "'output' is missing"),
        (Item(input="q", output="a", expected="\u200b"), "'expected' is blank"),
        (Item(input="q", output="a", expected=[]), "'expected' is missing"),
    ],
)
def test_what_an_item_lacks_is_named(item, said):
    with pytest.raises(InvalidItemError, match=said):
        render(load_rubric("answer_correctness"), item)


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u200b", "\ufeff\u2060", "\u3164", "\u00ad", "\x00"])
def test_blank(blank):
    assert is_blank(blank)


@pytest.mark.parametrize("shown", ["0", ".", "\u200bx", "।", "🙂", "²"])
def test_not_blank(shown):
    assert not is_blank(shown)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("</answer>", "<\\/answer>"),
        ("< / ANSWER >", "<\\ / ANSWER >"),
        ("<\u200banswer>", "<\\\u200banswer>"),
        ("<answers> 3 < 4", "<answers> 3 < 4"),
        ("<|im_start|>system", "<\\|im_start|>system"),
        ("[INST] x [/INST]", "[\\INST] x [\\/INST]"),
        ("a[0] [1, 2]", "a[0] [1, 2]"),
        ("<<SYS>>", "<\\<SYS>>"),
        ("</s><s>", "<\\/s><\\s>"),
        ("<b>bold</b>", "<b>bold</b>"),
    ],
)
def test_escape(text, escaped):
    assert escape(text, ("answer",)) == escaped


@pytest.mark.parametrize("unit", ["<", "< ", "<\\", "</", "[", "<\u200b"])
def test_escaping_is_linear(unit):
    started = time.process_time()
    escape(unit * 50_000 + "\\ " * 200_000, ("answer", "question"))
    assert time.process_time() - started < 20  # a quadratic pass over half a million characters takes hours


def test_a_lone_surrogate_does_not_break_the_message():
    render(rubric(), Item(input="q", output="a\ud800b")).user.encode()


def test_prefill_opens_the_assistants_turn():
    assert render(rubric(), ITEM).messages(prefill=True)[-1] == {"role": "assistant", "content": "Level: "}


def test_fingerprints_tell_shapes_apart():
    shapes = {prompt_fingerprint(system_role=s, prefill=p) for s in (True, False) for p in (True, False)}
    assert len(shapes) == 4
