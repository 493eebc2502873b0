"""Commands that want a session at the same moment get it in the order in which they came."""

import asyncio

import pytest

from zotd.sessions.opening import SessionOpening


async def test_they_get_it_in_their_order_although_the_first_has_to_wait_longest():
    opening, order = SessionOpening(), []
    gates = [asyncio.Event() for _ in range(3)]

    async def want(number):
        async with opening.turn("s_1"):
            await gates[number].wait()
            order.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(want(number))
        for gate in reversed(gates):
            gate.set()
            await asyncio.sleep(0)
    assert order == [0, 1, 2]


async def test_others_do_not_wait_and_one_that_is_cancelled_or_fails_leaves_nothing_behind():
    opening, gate = SessionOpening(), asyncio.Event()

    async def hold():
        async with opening.turn("s_1"):
            await gate.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(hold())
        waiting = group.create_task(hold())
        await asyncio.sleep(0)
        async with asyncio.timeout(10), opening.turn("s_2"):
            waiting.cancel()
        gate.set()
    with pytest.raises(ZeroDivisionError):
        async with opening.turn("s_1"):
            _ = 1 / 0
    async with asyncio.timeout(10), opening.turn("s_1"):
        pass
