"""``score`` from wherever it is called: a running loop, another kind of loop, a web application, a notebook's kernel."""

import asyncio
import os
import subprocess
import sys

import pytest

from isograde import Grade, Judge
from servers.fault import FaultServer

ITEM = {"input": "q", "output": "a", "expected": "b"}


@pytest.fixture
def judge(tmp_path):
    with FaultServer() as server, Judge(model="m", base_url=server.base_url, store=tmp_path / "store.sqlite") as mine:
        yield mine


def test_under_uvloop(judge):
    uvloop = pytest.importorskip("uvloop")
    kinds = []

    async def work():
        kinds.append(isinstance(asyncio.get_running_loop(), uvloop.Loop))
        sync = judge.score(ITEM)  # blocks this loop, as a plain call does, and comes back
        awaited = await judge.ascore({**ITEM, "output": "c"})
        streamed = [grade async for grade in judge.stream([{**ITEM, "output": f"d{i}"} for i in range(20)])]
        return [sync, awaited, *streamed, *judge.score_batch([{**ITEM, "output": f"e{i}"} for i in range(20)])]

    for run in (uvloop.run, asyncio.run):  # one judge, on one kind of loop after the other
        grades = run(work())
        assert len(grades) == 42
        assert all(isinstance(grade, Grade) for grade in grades)
    assert kinds == [True, False]


def test_where_every_new_loop_is_a_uvloop():
    pytest.importorskip("uvloop")
    code = (
        "import asyncio, sys, uvloop, warnings\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())\n"
        "from isograde import Grade, Judge\n"
        "from isograde.backends import loop\n"
        "with Judge(model='m', base_url=sys.argv[1], store=sys.argv[2]) as judge:\n"
        "    grades = judge.score_batch([{'input': 'q', 'output': f'a{i}', 'expected': 'b'} for i in range(30)])\n"
        "assert all(isinstance(grade, Grade) for grade in grades), grades\n"
        "assert isinstance(loop._running[1], uvloop.Loop)\n"
    )
    with FaultServer(rate=0.1, faults=("too_fast", "reset", "half"), seed=3) as server:
        subprocess.run([sys.executable, "-c", code, server.base_url, os.environ["ISOGRADE_STORE"]], check=True, timeout=120)


def test_in_a_fastapi_application(judge):
    fastapi = pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    app = fastapi.FastAPI()

    @app.get("/sync")
    def sync(output: str) -> dict:
        return {"score": judge.score({**ITEM, "output": output}).score}

    @app.get("/async")
    async def awaited(output: str) -> dict:
        return {"score": (await judge.ascore({**ITEM, "output": output})).score}

    @app.get("/sync-inside-async")
    async def inside(output: str) -> dict:
        return {"score": judge.score({**ITEM, "output": output}).score}

    with TestClient(app) as client:
        scores = [
            client.get(path, params={"output": "one"}).json()["score"] for path in ("/sync", "/async", "/sync-inside-async")
        ]
    assert scores[0] is not None
    assert len(set(scores)) == 1


def test_in_a_loop_that_runs_already(judge):
    async def cell():  # a notebook's cell is run in a task of the kernel's loop
        return [judge.score(ITEM), await judge.ascore(ITEM), *judge.score_batch([ITEM] * 3)]

    async def kernel():
        return [await asyncio.create_task(cell()) for _ in range(2)]

    for grades in asyncio.run(kernel()):
        assert len({grade.score for grade in grades}) == 1


def test_nothing_is_patched():
    code = (
        "import asyncio, asyncio.events as events\n"
        "def state(): return (asyncio.run, asyncio.BaseEventLoop.run_until_complete, asyncio.Task, asyncio.get_event_loop_policy,\n"
        "    events._get_running_loop, asyncio.BaseEventLoop._run_once)\n"
        "before = state()\n"
        "import isograde\n"
        "from isograde import Judge\n"
        "Judge(model='m', base_url='http://127.0.0.1:9/v1').score(input='q', output=' ', expected='b')\n"
        "assert before == state()\n"
        "import sys\n"
        "assert 'nest_asyncio' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
