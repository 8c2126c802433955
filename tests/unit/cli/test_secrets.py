"""A key is never in outputs, logs, the store, reports, tracebacks or repr, however it was given and whatever a server repeats."""

import base64
import json
import logging
import sqlite3
import traceback
import zlib

import pytest

from isograde import GradeFailure, IsogradeError, Judge, UserError, evaluate
from isograde.backends.chat import ChatBackend
from isograde.backends.systemone import SystemOneBackend
from isograde.runs.doctor import diagnosed
from isograde.store import Store
from servers.stub import LEVELS, StubServer, completion

KEY = "sk-very-secret-0123456789"
ITEM = {"input": "q", "output": "a", "expected": "b"}


def echoing(request):
    """A server that says back what it was sent, the key included, in every way that it can."""
    output = request["messages"][-1]["content"]
    said = f"Incorrect API key provided: {KEY} (Authorization: Bearer {KEY})"
    if "status 400" in output:
        return 400, {"error": {"message": said, "code": KEY}}
    if "status 500" in output:
        return 500, f"<html>{said}</html>"
    if "error with 200" in output:
        return {"error": {"message": said}}
    if "in the answer" in output:
        return completion({"4": 0.3, KEY: 0.7}, content=f"{KEY} 4")
    return {**completion(LEVELS), "model": f"stub {KEY}", "system_fingerprint": KEY}


OUTPUTS = ["fine", "status 400", "status 500", "error with 200", "in the answer"]


def rows():
    return [{**ITEM, "output": output} for output in OUTPUTS]


def with_key(server, how, monkeypatch, **options):
    """Give the key by an argument, by the environment, or inside the address."""
    if how == "environment":
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        return Judge(model="stub-1", max_retries=0, **options)
    if how == "address":
        address = server.base_url.replace("http://", f"http://user:{KEY}@")
        return Judge(model="stub-1", base_url=address, max_retries=0, **options)
    return Judge(model="stub-1", base_url=server.base_url, api_key=KEY, max_retries=0, **options)


def everything_in(path):
    """All bytes of a store, its compressed bodies unpacked."""
    with sqlite3.connect(path) as connection:
        bodies = [zlib.decompress(body) for (body,) in connection.execute("SELECT body FROM answers")]
        rest = [str(row).encode() for table in ("answers", "servers") for row in connection.execute(f"SELECT * FROM {table}")]  # noqa: S608 - our own names
    connection.close()
    return b"".join([*bodies, *rest, *(each.read_bytes() for each in path.parent.iterdir())])


@pytest.mark.parametrize("how", ["argument", "environment", "address"])
def test_nothing_that_is_kept_or_shown_holds_the_key(how, monkeypatch, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    kept = tmp_path / "kept" / "answers.sqlite"
    kept.parent.mkdir()
    with StubServer(echoing) as server, Store(kept) as store, with_key(server, how, monkeypatch, store=store) as judge:
        grades = judge.score_batch(rows())
        shown = [repr(judge), repr(judge.backend), str(vars(judge)), repr(grades), str(judge.backend.server)]
        shown.append(repr(judge.backend.request(judge.way.prompt(judge.rubric, grades[0].item), judge.rubric.labels)))
        shown.append(json.dumps(diagnosed(judge).as_json()))
        shown.append(str(evaluate({"evaluators": ["answer_correctness"], **ITEM}, judge=judge)))
        sent = server.headers[0]["Authorization"]  # the key did arrive
        assert KEY in (base64.b64decode(sent.removeprefix("Basic ")).decode() if how == "address" else sent)
    assert sum(isinstance(grade, GradeFailure) for grade in grades) == 4
    own = [record for record in caplog.records if record.name.startswith("isograde")]
    shown += [record.getMessage() for record in own]
    assert KEY not in " ".join(shown)
    assert KEY.encode() not in everything_in(kept)


@pytest.mark.parametrize(
    "answer",
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
        (403, f"<html>{KEY}</html>"),
        (404, {"error": {"message": f"no model for {KEY}"}}),
        (429, {"error": {"message": f"{KEY} is broke", "code": "insufficient_quota"}}),
        (400, {"error": {"message": f"logprobs are not for {KEY}", "param": "logprobs"}}),
        {"choices": [{"message": {"content": KEY}}]},
    ],
)
def test_no_traceback_holds_the_key(answer):
    with StubServer(lambda _: answer, models=[f"model-of-{KEY}"]) as server:
        judge = Judge(model="stub-1", base_url=server.base_url, api_key=KEY, max_retries=0)
        with pytest.raises(IsogradeError) as caught:
            judge.score_batch([ITEM] * 6)
    told = "".join(traceback.format_exception(caught.value))
    assert KEY not in told


@pytest.mark.parametrize("address", [f"user:{KEY}@localhost:1/v1", f"ftp://user:{KEY}@h/v1", f"https://{KEY}@:x/v1"])
@pytest.mark.parametrize("backend", [ChatBackend, SystemOneBackend])
def test_an_address_that_is_none_is_said_without_its_credentials(address, backend):
    with pytest.raises(IsogradeError) as caught:
        backend("m", base_url=address)
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("command", ["score", "doctor", "calibrate"])
def test_the_command_line_shows_no_key(isograde, tmp_path, command):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({**row, "gold": 4}) + "\n" for row in rows() * 6), encoding="utf-8")
    arguments = {
        "score": ["score", "rows.jsonl", "-o", "grades.csv", "--report", "report.html", "--max-failures", "100%"],
        "doctor": ["doctor"],
        "calibrate": ["calibrate", "rows.jsonl", "-o", "calibrator.json", "--report", "cal.html"],
    }[command]
    with StubServer(echoing) as server:
        address = server.base_url.replace("http://", f"http://user:{KEY}@")
        for where in (["--base-url", server.base_url, "--api-key-env", "SECRET_KEY"], ["--base-url", address]):
            done = isograde(*arguments, *where, "--model", "stub-1", "--store", "kept.sqlite", *(["--force"] if command != "doctor" else []),
                            cwd=tmp_path, SECRET_KEY=KEY)  # fmt: skip
            assert done.returncode in {0, 3, 4}, done.stderr
            assert KEY not in done.stdout + done.stderr
    for path in tmp_path.iterdir():
        assert KEY.encode() not in path.read_bytes(), path.name


def test_credentials_in_the_address_and_a_key_are_one_too_many():
    with pytest.raises(UserError, match="a request can carry one of them") as caught:
        ChatBackend("m", base_url=f"http://user:{KEY}@h/v1", api_key="another")
    assert KEY not in str(caught.value)
