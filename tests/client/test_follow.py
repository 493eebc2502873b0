"""Following a session across lost connections."""

import asyncio
from contextlib import aclosing

import pytest

from zotd.client import follow
from zotd.client.client import Client
from zotd.client.connection import AsyncFeed
from zotd.client.errors import CallError, ConnectionLostError, NoAnswerError
from zotd.client.follow import Disconnected, Follower
from zotd.wire import api, events


@pytest.fixture
async def session(daemon, path):
    async with Client.connect(path=path, autostart=False) as client:
        made = await client.create()
        yield daemon.sessions[made.id]


def note(number):
    return events.GuardNote("ext", "e", str(number))


async def show(daemon, session, *numbers):
    await asyncio.to_thread(daemon.do, lambda: session.show(*map(note, numbers)))


async def until(items, kind):
    """Return the items up to and including the first one of that type."""
    seen = []
    async for item in items:
        seen.append(item)
        if isinstance(item, kind):
            return seen
    return seen


def texts(items):
    return [e.text for item in items if isinstance(item, list) for e in item if isinstance(e, events.GuardNote)]


async def test_no_event_is_missed_or_repeated_across_lost_connections(daemon, session, path):
    follower = Follower(session.id, path=path)
    seen = []
    async with aclosing(follower.items()) as items:
        seen += await until(items, api.Attached)
        for round_number in range(3):
            await show(daemon, session, round_number * 10)
            seen += await until(items, list)
            await asyncio.to_thread(daemon.do, daemon.cut_all)
            await show(daemon, session, round_number * 10 + 1)
            seen += await until(items, Disconnected)
            seen += await until(items, api.Attached)
        while len(texts(seen)) < 6:
            seen.append(await anext(items))
    assert texts(seen) == ["0", "1", "10", "11", "20", "21"]
    modes = [item.mode for item in seen if isinstance(item, api.Attached)]
    assert modes == ["snapshot", "resumed", "resumed", "resumed"]


async def test_the_cursor_advances_only_past_applied_events(daemon, session, path):
    await show(daemon, session, 1, 2)
    start = api.Cursor("fake-epoch", 0)
    follower = Follower(session.id, path=path, after=start)
    async with aclosing(follower.items()) as items:
        first = await until(items, list)
    assert texts(first) == ["1", "2"]
    assert follower.cursor == start  # the reader has not requested the next item
    async with aclosing(Follower(session.id, path=path, after=follower.cursor).items()) as items:
        assert texts(await until(items, list)) == ["1", "2"]


async def test_a_cursor_of_another_epoch_gives_a_snapshot(daemon, session, path):
    await show(daemon, session, 1, 2)
    follower = Follower(session.id, path=path, after=api.Cursor("before the restore", 99))
    async with aclosing(follower.items()) as items:
        (snapshot,) = await until(items, api.Attached)
        assert snapshot.mode == "snapshot"
        await show(daemon, session, 3)
        assert texts(await until(items, list)) in ([], ["3"])  # `replay_complete` may be in a batch of its own
    assert follower.cursor == api.Cursor("fake-epoch", 2)


async def test_a_missing_session_is_an_error_and_not_retried(daemon, path):
    async with aclosing(Follower("s_none", path=path).items()) as items:
        with pytest.raises(CallError):
            await anext(items)


async def test_without_a_daemon_the_follower_reports_it_and_starts_none(path):
    async with aclosing(Follower("s_1", path=path).items()) as items:
        first, second = await anext(items), await anext(items)
    assert isinstance(first, Disconnected)
    assert isinstance(second, Disconnected)
    assert "not running" in first.reason
    assert first.retry_s <= follow.BACKOFF_FIRST_S


async def test_a_follower_that_is_hurried_does_not_wait_for_its_next_attempt(path, monkeypatch):
    monkeypatch.setattr(follow, "backoff_s", lambda *_: 3600.0)
    follower = Follower("s_1", path=path + ".none")
    async with asyncio.timeout(30), aclosing(follower.items()) as items:
        for _ in range(3):
            assert isinstance(await anext(items), Disconnected)
            follower.hurry()


def test_delays_double_up_to_their_cap():
    assert [follow.backoff_s(n, 1.0) for n in (1, 2, 3)] == [0.25, 0.5, 1.0]
    assert follow.backoff_s(10_000, 1.0) == follow.BACKOFF_CAP_S
    assert follow.backoff_s(5, 0.0) == 0.0


def test_a_gap_is_an_error_and_repeated_events_are_dropped():
    def event(seq):
        return events.GuardNote("ext", "e", "t", session="s", seq=seq)

    live = events.TextDelta("x", session="s")
    assert follow.fresh([event(3), event(4), live, event(5)], 4) == ([live, event(5)], 5)
    with pytest.raises(ConnectionLostError, match="from 5 on"):
        follow.fresh([event(6)], 4)
    with pytest.raises(ConnectionLostError):
        follow.fresh([events.ReplayComplete(session="s", seq=6)], 4)


@pytest.mark.looptime
async def test_a_silent_daemon_counts_as_dead_after_two_heartbeats(looptime):
    with pytest.raises(NoAnswerError, match="silent for 35 s"):
        await follow._next(AsyncFeed(), 0)
    assert looptime == 35
