"""The pace: down when the server says too fast, up again when it answers, nobody forgotten."""

import asyncio
import math

from isograde.backends.pace import Pace


async def test_there_is_no_limit_until_trouble():
    pace = Pace()
    turns = [await pace.enter() for _ in range(1000)]
    for turn in turns:
        pace.leave(turn, faster=True)
    assert pace.limit == math.inf


async def test_one_burst_of_trouble_halves_once():
    pace = Pace()
    turns = [await pace.enter() for _ in range(16)]
    for turn in turns:
        pace.leave(turn, slower=True)
    assert pace.limit == 8  # 16 ÷ 2, and not 16 ÷ 2¹⁶


async def test_it_never_falls_below_one_and_grows_by_one_a_round():
    pace = Pace()
    for _ in range(5):
        pace.leave(await pace.enter(), slower=True)
    assert pace.limit == 1
    for round_ in range(1, 6):
        at_once = [await asyncio.wait_for(pace.enter(), 1) for _ in range(int(pace.limit + 1e-9))]
        before = pace.limit
        for turn in at_once:
            pace.leave(turn, faster=True)
        # n answers at limit n add a little less than one, since the limit grows on the way
        assert before + 0.5 < pace.limit <= before + 1, round_


async def test_those_who_wait_go_in_their_order_and_all_go():
    pace = Pace()
    pace.leave(await pace.enter(), slower=True)
    order, most, running = [], 0, 0

    async def request(i):
        nonlocal most, running
        turn = await pace.enter()
        order.append(i)
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        pace.leave(turn)

    await asyncio.wait_for(asyncio.gather(*(request(i) for i in range(50))), 5)
    assert order == list(range(50))
    assert most == 1


async def test_a_cancelled_request_gives_its_turn_on():
    pace = Pace()
    pace.leave(await pace.enter(), slower=True)
    first = await pace.enter()
    waiting = [asyncio.create_task(pace.enter()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()  # while it waits
    await asyncio.sleep(0)
    pace.leave(first)
    waiting[1].cancel()  # when it was let through, and does not know it yet
    await asyncio.gather(*waiting[:2], return_exceptions=True)
    assert await asyncio.wait_for(waiting[2], 1) == 1


async def test_a_hold_is_for_all_and_the_longer_one_counts():
    pace = Pace()
    loop = asyncio.get_running_loop()
    began = loop.time()
    pace.hold(0.15)
    pace.hold(0.01)
    await asyncio.wait_for(asyncio.gather(pace.enter(), pace.enter()), 5)
    assert loop.time() - began >= 0.149
