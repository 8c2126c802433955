"""Retries, the server's own wishes, and what ends an item or a run."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import openai
import pytest

from isograde import GradeFailure, Judge, ServerError
from isograde.backends import Reply, wire
from isograde.backends.loop import run
from isograde.backends.replies import error_in, retry_after
from isograde.backends.wire import Rejected, Wire
from servers.fault import HARMLESS, PERMANENT, TRANSIENT, FaultServer, right
from servers.stub import LEVELS, StubServer, completion

BODY = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
ITEM = {"input": "q", "output": "a", "expected": "b"}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(wire, "_BACKOFF_S", 0.01)


def posted(server, **options):
    mine = Wire(base_url=server.base_url, **options)

    async def both():
        try:
            return await mine.post("/chat/completions", BODY)
        finally:
            await mine.aclose()

    return run(both())


def once(name):
    """The fault at first, an answer afterwards."""
    return lambda _content, before: None if before else name


@pytest.mark.parametrize("name", sorted(TRANSIENT))
def test_what_goes_away_is_tried_again(name):
    with FaultServer(script=once(name)) as server:
        reply = posted(server, timeout=0.5)
        assert isinstance(reply, Reply)
        assert reply.body == completion(right("q"))
        assert server.asked["q"] == 2


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_what_only_looks_odd_is_taken(name):
    with FaultServer(script=once(name)) as server:
        assert posted(server).body["choices"] == completion(right("q"))["choices"]
        assert server.asked["q"] == 1


@pytest.mark.parametrize("name", sorted(PERMANENT))
def test_what_stays_is_not_tried_again(name):
    with FaultServer(script=lambda _content, _before: name) as server:
        try:
            posted(server)
        except Rejected as rejected:
            assert rejected.status == 400
        assert server.asked["q"] == 1


def test_tries_come_to_an_end_with_a_truthful_failure():
    names = iter(["no_answer", *["half_json"] * 10])
    with FaultServer(script=lambda _content, _before: next(names)) as server:
        mine = Wire(base_url=server.base_url, max_retries=2)
        run(mine.post("/chat/completions", BODY))  # the server has answered now
        failure = run(mine.post("/chat/completions", BODY))
        assert (failure.status, server.asked["q"]) == ("server_error", 1 + 3)
        assert "no JSON" in failure.message
        run(mine.aclose())


def test_a_slow_drip_ends_at_the_timeout():
    with FaultServer(script=lambda _content, _before: "drip") as server:  # every read comes in time
        began = time.monotonic()
        failure = posted(server, timeout=0.4, max_retries=0)
        assert isinstance(failure, GradeFailure)
        assert failure.status == "timeout"
        assert time.monotonic() - began < 5


def arrivals(value):
    """When a request came that is answered by 429 with this header, and when it came again."""
    times = []

    def answer(_request):
        times.append(time.time())
        return completion(LEVELS) if len(times) > 1 else (429, {"error": {"message": "slow down"}}, {"Retry-After": value})

    with StubServer(answer) as server:
        posted(server)
    return times


def test_retry_after_is_a_floor_as_number_and_as_date():
    first, second = arrivals("0.3")
    assert second - first >= 0.299
    then = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    assert arrivals(format_datetime(then, usegmt=True))[1] >= then.timestamp() - 0.001


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, 59),
        ({"retry-after": "Fri, 31 Dec 1999 23:58:00 GMT"}, 0),  # it has passed
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_reading_retry_after(headers, seconds):
    now = datetime(1999, 12, 31, 23, 59, 0, tzinfo=UTC).timestamp()
    assert retry_after(headers, now) == seconds


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((429, {"error": {"message": "daily quota"}}, {"Retry-After": "40000"}), "left alone for 40,000 s"),
        ((503, {"error": {"message": "maintenance"}}, {"Retry-After": "3600"}), "left alone for 3,600 s"),
        ((429, {"error": {"message": "Rate limit reached for requests per day (RPD)"}}), "the day's quota"),
        ((429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}), "quota .* is used up"),
        ((402, {"error": {"message": "Insufficient credits"}}), "quota .* is used up"),
    ],
)
def test_what_concerns_the_whole_run_stops_it_at_once(answer, said):
    with StubServer(lambda _: answer) as server, pytest.raises(ServerError, match=said) as caught:
        Judge(model="m", base_url=server.base_url).score(ITEM)
    assert caught.value.retryable
    assert len(server.requests) == 1


def test_a_request_beyond_what_a_minute_allows_is_too_long():
    message = "Request too large for m on tokens per min (TPM): Limit 10000, Requested 12000."
    with StubServer(lambda _: (429, {"error": {"message": message, "code": "rate_limit_exceeded"}})) as server:
        failure = Judge(model="m", base_url=server.base_url).score(ITEM)
    assert (failure.status, len(server.requests)) == ("too_long", 1)


def test_too_fast_is_waited_out_longer_than_other_trouble():
    with FaultServer(script=lambda _content, before: "too_fast" if before < 9 else None) as server:
        assert isinstance(posted(server, max_retries=1), Reply)
        assert server.asked["q"] == 10


def test_a_server_that_says_nothing_but_too_fast_stops_the_run(monkeypatch):
    monkeypatch.setattr(wire, "_MAX_WAIT_S", 0.5)
    with FaultServer(script=lambda _content, _before: "too_fast") as server:
        with pytest.raises(ServerError, match="however slowly it is asked") as caught:
            posted(server)
    assert caught.value.retryable


def test_a_long_wait_is_told_once(monkeypatch, capsys):
    monkeypatch.setattr(wire, "_TELL_AFTER_S", 0.1)
    with FaultServer(script=lambda _content, before: "too_fast" if before < 9 else None) as server:
        mine = Wire(base_url=server.base_url)
        for _ in range(2):
            run(mine.post("/chat/completions", BODY))
        run(mine.aclose())
        address = server.base_url
    assert capsys.readouterr().err == f"isograde: {address} says too fast; waiting up to 300 s\n"


def test_a_shorter_wait_for_a_while():
    with FaultServer(script=lambda _content, _before: "too_fast") as server:
        mine = Wire(base_url=server.base_url)
        with mine.waiting_at_most(0.2), pytest.raises(ServerError, match="says too fast for 0 s"):
            run(mine.post("/chat/completions", BODY))
        run(mine.aclose())


def test_one_item_that_is_told_too_fast_while_others_are_answered_fails_alone(monkeypatch):
    monkeypatch.setattr(wire, "_MAX_WAIT_S", 0.5)
    with FaultServer(script=lambda content, _before: "too_fast_bare" if "poison" in content else None) as server:
        rows = [{**ITEM, "output": "poison" if i == 3 else f"a{i}"} for i in range(200)]
        with Judge(model="m", base_url=server.base_url, concurrency=2) as judge:
            grades = judge.score_batch(rows)
    assert [i for i, grade in enumerate(grades) if isinstance(grade, GradeFailure)] == [3]
    assert "HTTP 429" in grades[3].message


def test_fewer_at_once_where_the_server_takes_few():
    with FaultServer(slots=3, latency=(0.01, 0.02)) as server:
        with Judge(model="m", base_url=server.base_url, concurrency=32) as judge:
            grades = judge.score_batch([{**ITEM, "output": f"a{i}"} for i in range(150)])
        refused = server.played["too_many"]
    assert not [grade for grade in grades if isinstance(grade, GradeFailure)]
    # 32 at once and no adaption would be refused 29 of 32 times, over and over: some 1400 for 150 items
    assert refused < 150


def test_a_server_that_goes_away_ends_the_run_and_not_every_item(monkeypatch):
    with FaultServer(script=lambda content, _before: "reset" if "late" in content else None) as server:
        rows = [{**ITEM, "output": f"{'early' if i < 20 else 'late'} {i}"} for i in range(500)]
        with Judge(model="m", base_url=server.base_url, max_retries=1) as judge:
            with pytest.raises(
                ServerError, match="the last 30 requests .* all failed, the last with: the connection broke"
            ) as caught:
                judge.score_batch(rows)
        assert caught.value.retryable
        assert sum(server.asked.values()) < 150


def test_a_clients_own_retries_and_timeout_hold():
    with FaultServer(script=lambda _content, before: None if before >= 2 else "internal") as server:
        client = openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0, timeout=openai.Timeout(7, read=3))
        mine = Wire(client=client)
        assert (mine._max_retries, mine._timeout_s) == (0, 3)
        with pytest.raises(Rejected, match="had an error"):
            run(mine.post("/chat/completions", BODY))
        assert server.asked["q"] == 1
        run(client.close())


def test_should_retry_false_is_obeyed():
    with StubServer(lambda _: (500, {"error": {"message": "no"}}, {"x-should-retry": "false"})) as server:
        with pytest.raises(Rejected):
            posted(server)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"error": {"message": "upstream", "code": 502}}, 502),
        ({"error": {"message": "flagged", "code": 403}}, 403),
        ({"error": "plain"}, 502),
        ({"error": {"message": "odd", "code": "rate_limit"}}, 502),
        ({"choices": []}, 502),
        ({"choices": [{"error": {"code": 429, "message": "x"}}]}, 429),
        ({"choices": [{"message": {}}], "error": None}, None),
        ({"choices": None}, None),
        ([1], None),
        ("text", None),
        (None, None),
    ],
)
def test_errors_with_status_200(body, found):
    assert (error_in(body) or (None,))[0] == found


def test_an_error_of_the_item_with_status_200_is_not_tried_again():
    answer = {"error": {"message": "Input was flagged", "code": 403}}
    with StubServer(lambda _: answer) as server:
        failure = Judge(model="m", base_url=server.base_url).score(ITEM)
    assert (failure.status, len(server.requests)) == ("server_error", 1)


def test_a_cancelled_request_frees_its_place():
    with FaultServer(script=lambda _content, before: "hang" if before == 0 else None) as server:
        mine = Wire(base_url=server.base_url)

        async def work():
            first = asyncio.create_task(mine.post("/chat/completions", BODY))
            await asyncio.sleep(0.2)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            assert mine._pace._open == 0
            return await mine.post("/chat/completions", BODY)

        assert isinstance(run(work()), Reply)
        run(mine.aclose())
