"""The loop of the timers, with a journal that fails, zones that are not known any more, and a session that is gone."""

import asyncio
from contextlib import asynccontextmanager
from typing import cast

import pytest

from zotd.core.due_times import CronRule, IntervalRule
from zotd.core.ports import StorageError
from zotd.core.timers import ClaimOutcome, Firing, Timer
from zotd.sessions.manager import Manager
from zotd.sessions.timer_firings import FiringAccount, TimerFirings
from zotd.sessions.timers import RETRY_S, Timers
from zotd.store.timers import TimersInMemory

NOW = 1_800_000_000

LONG_S = 400.0
"""Of the loop's time, for waits that take as long as they take."""

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]


class Store(TimersInMemory):
    """A journal that fails so often."""

    def __init__(self, *timers):
        super().__init__()
        self.fails = 0
        self._timers = {timer.id: timer for timer in timers}

    async def put(self, timer):
        if self.fails:
            self.fails -= 1
            raise StorageError("the disk is full")
        await super().put(timer)


class Firings:
    """Prompts that were sent; `outcomes` come first, and `on_first` is called by the first one."""

    def __init__(self, *outcomes, on_first=lambda: None):
        self._on_first = on_first
        self.sent: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
        self._outcomes = list(outcomes)

    async def carry_out(self, timer, now):
        self._on_first()
        self._on_first = lambda: None
        self.sent.put_nowait((timer.request_of(timer.claim), asyncio.get_running_loop().time()))
        return self._outcomes.pop(0) if self._outcomes else ClaimOutcome(Firing("s_1", "i_1", 1, now))

    async def account(self, _):
        return FiringAccount()

    async def has(self, _):
        return True


class Sessions:
    """A manager without sessions in memory."""

    is_stopping = False
    loaded: tuple[()] = ()


def timer(key="t_1", *, due=NOW, rule=IntervalRule(3600)):  # noqa: B008  (a value)
    return Timer(id=key, rule=rule, prompt="p", due=due, made=NOW, session="s_1")


@asynccontextmanager
async def running(store, firings):
    async with asyncio.TaskGroup() as tasks:
        loop = asyncio.get_running_loop()
        began = loop.time()
        timers = Timers(
            cast("Manager", Sessions()),
            store,
            cast("TimerFirings", firings),
            spawn=lambda name, work: cast("None", tasks.create_task(work, name=name)),
            clock=lambda: NOW + loop.time() - began,
        )
        await timers.load()
        task = tasks.create_task(timers.run())
        yield timers
        task.cancel()


async def until(timers, holds):
    """Wait until this holds, which is looked at whenever a timer has changed."""
    changed = asyncio.Event()
    timers.listen(changed.set)
    while not holds():
        changed.clear()
        await changed.wait()


async def test_nothing_is_sent_while_its_claim_cannot_be_stored_and_it_is_tried_again():
    store, firings = Store(timer()), Firings()
    store.fails = 2
    async with running(store, firings) as timers:
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(LONG_S):
            request, at = await firings.sent.get()
            await until(timers, lambda: timers.get("t_1").fired == 1)
        assert request == "t_1/1"
        assert at - began >= 2 * RETRY_S
        assert firings.sent.empty()
    (stored,) = await store.all()
    assert (stored.fired, stored.claim, stored.due) == (1, None, NOW + 3600)


async def test_a_firing_whose_outcome_cannot_be_stored_is_carried_out_again_with_its_number():
    store = Store(timer())
    firings = Firings(on_first=lambda: setattr(store, "fails", 1))
    async with running(store, firings) as timers:
        async with asyncio.timeout(LONG_S):
            sent = [(await firings.sent.get())[0] for _ in range(2)]
            await until(timers, lambda: timers.get("t_1").claim is None)
        assert sent == ["t_1/1", "t_1/1"]
        assert timers.get("t_1").fired == 1


async def test_a_timer_in_a_zone_that_is_not_known_any_more_is_paused_and_the_others_fire():
    store = Store(timer("t_1", rule=CronRule("0 9 * * *", "Europe/Atlantis")), timer("t_2"))
    firings = Firings()
    async with running(store, firings) as timers:
        async with asyncio.timeout(LONG_S):
            request, _ = await firings.sent.get()
        assert request == "t_2/1"
        paused = timers.get("t_1").paused
    assert paused is not None
    assert 'no time zone "Europe/Atlantis"' in paused


async def test_a_timer_whose_session_is_gone_is_forgotten():
    store, firings = Store(timer()), Firings(ClaimOutcome(is_gone=True))
    async with running(store, firings) as timers:
        async with asyncio.timeout(LONG_S):
            await firings.sent.get()
            await until(timers, lambda: not timers.listed())
    assert await store.all() == []


async def test_a_timer_that_is_due_in_a_while_is_fired_then_and_not_before():
    store, firings = Store(timer(due=NOW + 300)), Firings()
    async with running(store, firings):
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(LONG_S):
            _, at = await firings.sent.get()
    assert 300 <= at - began < 302
