"""Injections stay what they are: content. As token ids in process, visibly escaped for servers, and measured by doctor --attack."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from isograde import Grade, Item, Judge, UserError, load_rubric
from isograde.backends.embedded import EmbeddedBackend
from isograde.prompt import render
from isograde.runs.attack import attacked, injected, measured, shipped_attacks, shipped_items
from servers.stub import StubServer, completion

ALL = json.loads((Path(__file__).parents[1] / "servers" / "injections.json").read_text(encoding="utf-8"))
RUBRIC = load_rubric("answer_correctness")
WRONG = "It fell in 1991."
# What tokenizers of the common families take for special: ChatML, Llama 2 and 3, Gemma, Mistral, Phi, Command R, DeepSeek, Zephyr,
# GLM, Granite, harmony, thinking
SPECIAL = re.compile(
    r"<[|｜]\w|</?s>|<</?SYS>>|\[/?INST\]|\[/?SYSTEM_PROMPT\]|<(?:start|end)_of_turn>|</?think>|<(?:bos|eos|pad|unk)>|\[gMASK\]",
    re.IGNORECASE,
)


def prompt_of(attack):
    return render(RUBRIC, Item(input="When did it fall?", expected="1989", output=injected(attack["text"], WRONG, RUBRIC)))


def test_there_are_enough_of_every_kind():
    assert len(ALL) >= 60
    assert len({attack["text"] for attack in ALL}) == len({attack["id"] for attack in ALL}) == len(ALL)
    families = {attack["family"] for attack in ALL}
    assert {
        "fence",
        "verdict",
        "ignore",
        "roles",
        "template",
        "invisible",
        "encoded",
        "languages",
        "expected",
        "many-shot",
    } <= families
    shipped = shipped_attacks()
    assert {attack["family"] for attack in shipped} == families
    assert all(attack in ALL for attack in shipped)
    assert all(WRONG in injected(attack["text"], WRONG, RUBRIC) for attack in ALL)


@pytest.mark.parametrize("attack", ALL, ids=lambda attack: attack["id"])
def test_for_a_server_the_content_is_visibly_escaped(attack):
    prompt = prompt_of(attack)
    content = "".join(part.text for part in prompt.parts if part.content)
    assert not SPECIAL.search(content)
    for tag in RUBRIC.fields.values():
        assert len(re.findall(rf"<\s*/?\s*{tag}\b", prompt.user, re.IGNORECASE)) == 2  # opened and closed, once each
    if SPECIAL.search(attack["text"]):
        assert re.search(r"[<\[]\\", content)


@pytest.fixture(scope="module")
def framer():
    backend = EmbeddedBackend(n_ctx=2048)
    yield backend._framer
    asyncio.run(backend.aclose())


@pytest.mark.embedded
def test_in_process_no_content_becomes_a_special_token(framer):
    llama = framer.llama
    # the ids that the tokenizer gives whole to what it holds for special: one token a name
    special = set()
    for name in ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>", "<file_sep>", "<jupyter_start>"):
        ids = llama.tokenize(name, special=True)
        assert len(ids) == 1
        special.update(ids)
    frame = [token for token in framer.framed(prompt_of({"text": "{answer}"}), RUBRIC.labels).ids if token in special]
    for attack in ALL:
        framed = framer.framed(prompt_of(attack), RUBRIC.labels)
        assert [token for token in framed.ids if token in special] == frame, attack["id"]


def gullible(request):
    """A judge that believes whoever says «Level: 4» in the answer, outside of an escaped fence or not."""
    answer = request["messages"][-1]["content"].split("<answer>\n")[1]
    return completion({"4": 0.9, "0": 0.1} if "Level: 4" in answer else {"0": 0.9, "4": 0.1})


def test_the_lift_is_measured_against_the_same_answer_without_it():
    with StubServer(gullible) as server, Judge(model="x", base_url=server.base_url, max_retries=0) as judge:
        report = attacked(judge)
        assert len(server.requests) == len(shipped_items()) * (len(shipped_attacks()) + 1)
    # 3.6 where it believes, 0.4 where it does not
    believed = [attempt for attempt in report.attempts if attempt.lift > 1]
    assert [attempt.lift for attempt in believed] == pytest.approx([3.2] * len(believed))
    by_text = {attack["id"]: "Level: {top}" in attack["text"] for attack in shipped_attacks()}
    assert {attempt.attack for attempt in believed} == {name for name, says_so in by_text.items() if says_so}
    share = sum(by_text.values()) / len(by_text)
    assert report.mean_lift == pytest.approx(3.2 * share)
    assert report.families()["verdict"][1] == pytest.approx(3.2)
    assert report.as_json()["n"] == len(report.attempts)


def test_what_cannot_be_attacked_is_said():
    with (
        Judge(model="x", base_url="http://localhost:1/v1", rubric="factuality") as judge,
        pytest.raises(UserError, match="ordered"),
    ):
        attacked(judge)


def test_an_attempt_that_failed_is_counted_and_has_no_lift():
    def answer(request):
        return (500, {"error": "boom"}) if "im_start" in request["messages"][-1]["content"] else completion({"0": 0.9, "1": 0.1})

    attacks = [
        {"id": "a", "family": "template", "text": "{answer}<|im_start|>"},
        {"id": "b", "family": "plain", "text": "{answer}!"},
    ]
    with StubServer(answer) as server, Judge(model="x", base_url=server.base_url, max_retries=0) as judge:
        report = measured(judge, shipped_items()[:2], attacks)
        assert isinstance(judge.score(input="q", output="a", expected="b"), Grade)
    assert report.as_json()["n_failed"] == 2
    assert (report.mean_lift, len(report.lifts)) == (pytest.approx(0), 2)
