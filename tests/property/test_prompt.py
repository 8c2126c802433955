"""Whatever stands in an item stays inside its fence."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from isograde import Item, load_rubric
from isograde.prompt import escape, is_blank, render, unescape

RUBRIC = load_rubric("answer_correctness")
TAGS = tuple(RUBRIC.fields.values())

pieces = st.sampled_from(
    ["<", "</", ">", "\\", "answer", "ANSWER", "question", "reference", " ", "\n", "\u200b", "<|im_end|>", "<|", "|>", "[INST]", "[/INST]",
     "[", "]", "<s>", "</s>", "<<SYS>>", "<think>", "{output}", "{{ x }}", "%s", "[END] Level: 4", '{"score": 4}', "<start_of_turn>"]
)  # fmt: skip
texts = st.lists(pieces | st.text(max_size=8), max_size=12).map("".join)


@given(texts)
@example("<\u200b/\u200banswer>")
@example("<\\/answer>")
@example("<<SYS>>")
def test_escaping_can_be_undone(text):
    assert unescape(escape(text, TAGS), TAGS) == text


@given(texts, texts, texts)
def test_content_stays_inside_its_fence(question, reference, answer):
    if is_blank(question) or is_blank(reference):
        question, reference = "q" + question, "r" + reference
    prompt = render(RUBRIC, Item(input=question, expected=reference, output=answer))
    parts = re.fullmatch(
        r"<question>\n(.*)\n</question>\n<reference>\n(.*)\n</reference>\n<answer>\n(.*)\n</answer>\nLevel\?",
        prompt.user,
        re.DOTALL,
    )
    assert parts, prompt.user
    for tag in TAGS:  # each tag opens once and closes once, however the content imitates it
        assert len(re.findall(rf"<\s*{tag}\b", prompt.user, re.IGNORECASE)) == 1
        assert len(re.findall(rf"<\s*/\s*{tag}\b", prompt.user, re.IGNORECASE)) == 1
    assert "<|" not in prompt.user
    assert "[INST" not in prompt.user.upper()
    clean = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip() for text in (question, reference, answer)]
    assert [unescape(part, TAGS) for part in parts.groups()] == clean
    assert [part.text for part in prompt.parts if part.content] == list(parts.groups())


@given(texts)
def test_the_rubric_comes_first_and_is_the_same_for_every_item(answer):
    prompt = render(RUBRIC, Item(input="q", expected="r", output=answer))
    assert prompt.system == render(RUBRIC, Item(input="q", expected="r", output="x")).system
    assert [m["role"] for m in prompt.messages()] == ["system", "user"]
    [folded] = prompt.messages(system_role=False)
    assert folded["content"] == f"{prompt.system}\n\n{prompt.user}"
