"""Answers already paid for: kept whole, shared, never lost by a kill, never overwritten."""

import asyncio
import os
import sqlite3
import subprocess
import sys

import pytest

from isograde import UserError
from isograde.records import Usage
from isograde.store import Answer, Store, answer_key

BODY = {
    "choices": [{"message": {"content": "4 – ✓ \ud800"}, "logprobs": {"content": [{"logprob": -0.1}]}}],
    "n": [1.5, None, True],
}
FULL = Answer(
    body=BODY,
    usage=Usage(input_tokens=180, output_tokens=1, cached_tokens=None),
    latency_s=0.1234567890123,
    prompt_fingerprint="00112233aabbccdd",
)


def key(i=0, **changed):
    return answer_key(**{"kind": "level", "server": "http://s/v1", "model": "m", "request": {"i": i}, **changed})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.sqlite"


async def test_what_is_kept_comes_back_whole(path):
    with Store(path) as store:
        assert store.get(key()) is None
        await store.keep(key(), FULL)
        assert store.get(key()) == FULL
        await store.keep(key(), Answer(body={"other": 1}))  # what was kept stays
        assert store.get(key()) == FULL
    with Store(path) as again:
        assert again.get(key()) == FULL
        assert again.n_answers == 1


def test_every_part_of_the_key_counts():
    parts = {"kind": "text", "server": None, "model": "n", "request": {"i": 0, "t": 1}, "adapter": "a", "repeat": 1}
    keys = {key(), *(key(**{name: value}) for name, value in parts.items())}
    assert len(keys) == 1 + len(parts)
    # the order of parameters says nothing
    assert key(request={"a": 1, "b": 2}) == key(request={"b": 2, "a": 1})


async def test_an_answer_is_on_file_when_keep_returns(path):
    with Store(path) as store:
        await asyncio.gather(*(store.keep(key(i), FULL) for i in range(1200)))  # more than one transaction holds
        other = sqlite3.connect(path)
        assert other.execute("SELECT count(*) FROM answers").fetchone() == (1200,)
        other.close()


def test_several_loops_and_threads_share_a_store(path):
    with Store(path) as store:
        for i in range(3):
            asyncio.run(store.keep(key(i), FULL))
        assert store.n_answers == 3


def test_a_killed_process_loses_nothing_that_was_acknowledged(tmp_path):
    code = (
        "import asyncio, sys; from isograde.store import *\n"
        "async def work():\n"
        "    store = Store(sys.argv[1])\n"
        "    for i in range(10**6):\n"
        "        await store.keep(answer_key(kind='level', server=None, model='m', request=i), Answer(body=i))\n"
        "        print(i, flush=True)\n"
        "asyncio.run(work())"
    )
    for kill in range(2):
        path = tmp_path / f"{kill}.sqlite"
        with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as process:
            for _ in range(50):
                process.stdout.readline()
            process.kill()
            said = [int(line) for line in process.stdout.read().splitlines() if line]
        last = said[-1] if said else 49
        with Store(path) as store:
            for i in range(last):
                assert store.get(answer_key(kind="level", server=None, model="m", request=i)).body == i
            assert store.n_answers - last <= 2  # the one that was being printed, and the one under way


def test_two_processes_write_at_once(path):
    code = (
        "import asyncio, sys; from isograde.store import *\n"
        "async def work():\n"
        "    with Store(sys.argv[1]) as store:\n"
        "        for i in range(60):\n"
        "            await asyncio.gather(*(store.keep(answer_key(kind='level', server=None, model=m, request=i), Answer(body=[m, i]))"
        " for m in (sys.argv[2], 'same')))\n"
        "asyncio.run(work())"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("a", "b", "c")]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    with Store(path) as store:
        assert store.n_answers == 4 * 60


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"precious notes, no database", "another kind of file"),
        (b"SQLite format 3\0" + b"\x00\xff" * 3000, "is (damaged|another kind of file)"),
        (b"S", "another kind of file"),
    ],
)
def test_a_foreign_or_damaged_file_is_named_and_left(path, content, said):
    path.write_bytes(content)
    with pytest.raises(UserError, match=said) as caught:
        Store(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


def test_another_programs_database_is_left_as_it_is(path):
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE precious (x)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(UserError, match="another program"):
        Store(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_newer_store_is_left(path):
    Store(path).close()
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(UserError, match="newer isograde"):
        Store(path)


async def test_damage_that_shows_later_is_named(path):
    with Store(path) as store:
        await store.keep(key(), FULL)
    other = sqlite3.connect(path)
    other.execute("UPDATE answers SET body = ?", (b"not compressed",))
    other.commit()
    other.close()
    with Store(path) as store, pytest.raises(UserError, match="damaged"):
        store.get(key())


async def test_pages_that_were_torn_out_are_named(path):
    with Store(path) as store:
        # random bytes do not compress, so that the file has many pages
        await asyncio.gather(*(store.keep(key(i), Answer(body=os.urandom(3000).hex())) for i in range(200)))
    content = bytearray(path.read_bytes())
    content[4096 * 3 :] = b"\xa5" * (len(content) - 4096 * 3)
    path.write_bytes(content)
    found = []
    with pytest.raises(UserError, match="damaged") as caught:
        with Store(path) as store:
            found.extend(store.get(key(i)) for i in range(200))
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def test_where_it_cannot_be(tmp_path, path):
    with pytest.raises(UserError, match="is a folder"):
        Store(tmp_path)
    with pytest.raises(UserError, match="is not there"):
        Store(tmp_path / "no" / "answers.sqlite")
    store = Store(path)
    store.close()
    store.close()
    with pytest.raises(UserError, match="is closed"):
        store.get(key())


async def test_a_write_that_fails_is_told_to_those_who_wait(path):
    with Store(path) as store:
        await store.keep(key(), FULL)
        other = sqlite3.connect(path)
        other.execute("CREATE TRIGGER t BEFORE INSERT ON answers BEGIN SELECT RAISE(ABORT, 'not today'); END")
        other.commit()
        other.close()
        with pytest.raises(UserError, match="not today"):
            await asyncio.wait_for(store.keep(key(1), FULL), 10)
        assert store.get(key()) == FULL
        assert store.get(key(1)) is None


def test_facts_about_a_server(path):
    with Store(path) as store:
        assert store.facts("http://s/v1", "m") is None
        store.remember("http://user:secret@s/v1/?key=secret", "m", {"top_logprobs": 5})
        assert store.facts("http://s/v1", "m") == {"top_logprobs": 5}
        store.remember("http://s/v1", "m", {"top_logprobs": 8})
        store.remember(None, "m", {"embedded": True})
    with Store(path) as again:
        assert again.facts("http://s/v1/", "m") == {"top_logprobs": 8}
        assert again.facts(None, "m") == {"embedded": True}
    assert b"secret" not in path.read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="no such permissions there")
def test_the_file_is_for_its_owner_alone(path):
    with Store(path):
        assert {each.stat().st_mode & 0o077 for each in path.parent.iterdir()} == {0}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork there")
def test_a_fork_is_refused(path):
    code = (
        "import os, sys; from isograde.store import *; from isograde import UserError\n"
        "store = Store(sys.argv[1])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        store.get(b'x')\n"
        "    except UserError as error:\n"
        "        os._exit(7 if 'fork' in str(error) else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(path)], timeout=30, check=False).returncode == 7


def test_a_forgotten_store_is_closed(path):
    code = (
        "import asyncio, sys; from isograde.store import *\n"
        "store = Store(sys.argv[1])\n"
        "asyncio.run(store.keep(b'k', Answer(body=1)))\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code, str(path)], timeout=30, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert [each.name for each in path.parent.iterdir()] == [path.name]  # SQLite's side files went with the last connection
