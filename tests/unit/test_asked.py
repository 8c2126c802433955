"""The store behind a judge: what is asked, what is not, and what is never kept."""

import asyncio
from dataclasses import replace

import pytest

from isograde import Grade, GradeFailure, Judge, UserError
from isograde.asked import truncation
from isograde.prompt import render
from isograde.records import Item, Usage
from isograde.rubric import load_rubric
from isograde.store import Store
from servers.fault import FaultServer, right
from servers.stub import LEVELS, StubServer, completion

ITEM = {"input": "q", "output": "a", "expected": "b"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kept.sqlite"


def judge(server, store, **options):
    return Judge(model=options.pop("model", "m"), base_url=server.base_url, max_retries=0, store=store, **options)


def apart_from_stored(grade):
    return replace(grade, stored=False)


def test_the_same_question_is_asked_once(path):
    rows = [{**ITEM, "output": f"a{i}", "expected": ["b", "c"] if i == 1 else "b"} for i in range(20)]
    with FaultServer() as server:
        with judge(server, path) as first:
            before = first.score_batch(rows)
        n_asked = sum(server.asked.values())
        with judge(server, path) as second:
            after = second.score_batch(rows)
        assert n_asked == sum(server.asked.values()) == 21
    assert not any(grade.stored for grade in before)
    assert all(grade.stored for grade in after)
    # tokens, seconds and all: they are those of the first time
    assert [apart_from_stored(grade) for grade in after] == before


def test_everything_that_shapes_an_answer_asks_anew(path, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "name: mine\ndescription: d\nfields: {output: answer}\ninstructions: i\nitem: '{output}'\nblank_output: fail\n"
        "levels: [{label: 0, description: a}, {label: 1, description: b}]\n",
        encoding="utf-8",
    )
    variants = [
        ({}, ITEM),
        ({"model": "n"}, ITEM),
        ({"rubric": "relevance"}, ITEM),
        ({"rubric": tmp_path / "mine.yaml", "min_mass": 0.01}, ITEM),
        ({"max_tokens": 7}, ITEM),
        ({"top_logprobs": 9}, ITEM),
        ({"prefill": True}, ITEM),
        ({"method": "sampling", "samples": 2}, ITEM),
        ({}, {**ITEM, "output": "A"}),
        ({}, {**ITEM, "expected": "B"}),
        ({}, {**ITEM, "input": "Q"}),
    ]
    several = [{**completion(LEVELS)["choices"][0], "index": i} for i in range(2)]
    with StubServer(lambda request: {**completion(LEVELS), "choices": several[: request["n"]]}) as server, Store(path) as store:
        prints = set()
        for options, item in variants:
            with judge(server, store, **options) as mine:
                grade = mine.score(item)
                assert isinstance(grade, Grade), grade
                assert not grade.stored, options
                assert grade.question_fingerprint == mine.question_fingerprint(grade.item)
                prints.add(grade.question_fingerprint)
        assert len(prints) == len(variants)
        assert len(server.requests) == len(variants)


def test_another_server_is_another_answer(path):
    with FaultServer() as one, FaultServer() as other, Store(path) as store:
        for server in (one, other):
            with judge(server, store) as mine:
                assert not mine.score(ITEM).stored


def test_failures_are_never_kept(path):
    def failing(content, before):
        return None if "proves" in content else {0: "low_mass", 1: "filtered"}.get(before)

    with FaultServer(script=failing) as server:
        with judge(server, path) as mine:
            mine.score({**ITEM, "output": "another, which proves the server"})
            assert [mine.score(ITEM).status for _ in range(2)] == ["low_mass", "filtered"]
            assert isinstance(mine.score(ITEM), Grade)
            assert mine.score(ITEM).stored


def test_what_was_learnt_of_a_server_moves_no_answer_out_of_reach(path):
    # the first run finds out that five is the most; a later one knows it from the start
    rows = [{**ITEM, "output": f"a{i}"} for i in range(6)]
    with FaultServer(quirk="openai") as server:
        with judge(server, path) as first:
            before = first.score_batch(rows)
        n = sum(server.asked.values())
        assert n == 6 + 2  # two rejections, of the limit's name and of the number
        with judge(server, path) as second:
            assert [apart_from_stored(grade) for grade in second.score_batch(rows)] == before
            assert not second.score({**ITEM, "output": "new"}).stored
        assert sum(server.asked.values()) == n + 1  # what was learnt is remembered: no further rejection


def test_a_folded_system_role_stays_on_the_grade(path):
    with FaultServer(quirk="gemma") as server:
        with judge(server, path) as first:
            before = first.score(ITEM)
        with Store(path) as store, Judge(model="m", base_url=server.base_url, store=store) as second:
            second.backend._learnt._forms.clear()  # as if nothing were remembered
            after = second.score(ITEM)
    assert after.stored
    assert after.prompt_fingerprint == before.prompt_fingerprint != second.backend.prompt_fingerprint


def test_repeats_are_told_apart(path):
    # a server that ignores n is asked once an answer
    with StubServer(lambda _: completion(LEVELS)) as server:
        for _ in range(2):
            with judge(server, path, method="sampling", samples=3) as mine:
                grade = mine.score(ITEM)
                assert grade.samples.n == 3
        assert grade.stored
        assert len(server.requests) == 3


def test_a_judge_of_another_rubric_shares_the_store(path):
    with FaultServer() as server, judge(server, path) as mine:
        other = mine.with_rubric("relevance")
        assert not other.score(ITEM).stored
        assert other.score(ITEM).stored


def test_two_judges_with_one_store_at_once(path):
    rows = [{**ITEM, "output": f"a{i}"} for i in range(30)]
    with FaultServer(latency=(0, 0.01)) as server, judge(server, path) as one, judge(server, path) as other:

        async def both():
            async def all_of(mine):
                return [grade async for grade in mine.stream(rows)]

            return await asyncio.gather(all_of(one), all_of(other))

        for grades in asyncio.run(both()):
            for grade in grades:
                content = render(one.rubric, grade.item).user
                assert grade.probabilities == pytest.approx(right(content), abs=1e-5)


def test_a_store_that_fails_stops_the_run(path):
    with FaultServer() as server, judge(server, path) as mine:
        mine.store.close()
        with pytest.raises(UserError, match="is closed"):
            mine.score(ITEM)


def test_no_text_and_no_key_is_in_the_store(path):
    with FaultServer() as server:
        address = server.base_url.replace("http://", "http://user:url-secret@")
        for given in ({"base_url": address}, {"base_url": server.base_url, "api_key": "sk-key-secret"}):
            with Judge(model="m", store=path, **given) as mine:
                assert isinstance(mine.score(input="q", output="item-secret", expected="b"), Grade)
    content = path.read_bytes()
    for secret in (b"url-secret", b"key-secret", b"item-secret"):
        assert secret not in content


def prompt(output):
    return render(load_rubric("answer_correctness"), Item(input="q", output=output, expected="b"))


TEXTS = {
    # a text, and fewer tokens than any vocabulary needs for it
    "English": ("The key expires on the twenty-first of December, ninety days after it was created. ", 14),
    "long words": ("internationalization characterization responsibilities telecommunications ", 4),
    "German": ("Donaudampfschifffahrtsgesellschaftskapitän und Rindfleischetikettierungsüberwachung ", 7),
    "Finnish": ("lentokonesuihkuturbiinimoottoriapumekaanikkoaliupseerioppilas ja epäjärjestelmällistyttämättömyys ", 8),
    "Chinese": ("密钥将于2026年12月21日到期，即创建之日起九十天后。", 8),
    "Thai": ("กุญแจหมดอายุในวันที่ยี่สิบเอ็ดธันวาคมหลังจากสร้างเก้าสิบวัน", 8),
    "Arabic": ("تنتهي صلاحية المفتاح في الحادي والعشرين من ديسمبر بعد تسعين يوما من إنشائه ", 13),
    "code": ("        return self.window.running[task_identifier] if condition else None\n", 9),
    "numbers": ("3.14159265358979 2.71828182845904 1.41421356237309 ", 9),
    "emoji": ("🎉👍🏽 🇩🇪👨‍👩‍👧 ", 8),
}


@pytest.mark.parametrize(("text", "tokens"), TEXTS.values(), ids=TEXTS)
def test_a_prompt_that_was_read_whole_is_not_suspected(text, tokens):
    different = "".join(f"{text}{i} " for i in range(300))  # repetitions would be left out
    assert truncation(prompt(different), Usage(input_tokens=(tokens + 1) * 300)) is None


@pytest.mark.parametrize("filler", [" ", "-", "=", "\n", "ab", "-=", ".   ", "█"])
def test_long_rows_of_one_thing_are_no_text(filler):
    assert truncation(prompt("An answer. " + filler * 20_000 + " And its end."), Usage(input_tokens=300)) is None


def test_a_cut_prompt_is_suspected_and_never_graded(path):
    long = {**ITEM, "output": "".join(f"{TEXTS['English'][0]}{i} " for i in range(400))}  # 35,000 characters
    with FaultServer(quirk="ollama") as server, judge(server, path) as mine:
        assert isinstance(mine.score(ITEM), Grade)
        failure = mine.score(long)
        assert isinstance(failure, GradeFailure)
        assert failure.status == "suspected_truncation"
        assert "2,048 tokens" in failure.message
        assert mine.store.n_answers == 1


@pytest.mark.parametrize("usage", [None, Usage(), Usage(input_tokens=0)])
def test_without_a_count_nothing_is_suspected(usage):
    assert truncation(prompt("word " * 50_000), usage) is None
