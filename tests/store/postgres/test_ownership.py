"""Several daemons of one database: who may write which session, and how sessions and timers go from one to another."""

import asyncio
import socket
import threading

import msgspec
import psycopg
import pytest

from tests.store.postgres.leases import UNRENEWED, WAIT_S, Told, expire, soon, sql, texts_of
from zotd.core.due_times import IntervalRule
from zotd.core.ports import StorageError
from zotd.core.timers import Timer
from zotd.store.connection import Write
from zotd.store.members import heirs
from zotd.store.ownership import Handover, OwnedElsewhereError, TimerElsewhereError
from zotd.store.postgres.lease import FencedError
from zotd.store.staged import Share
from zotd.store.staging import staging
from zotd.store.timers import StoredTimers


def timer(key):
    return Timer(id=key, rule=IntervalRule(60), prompt="p", due=1, made=0, session="s_1")


async def test_two_daemons_write_their_own_sessions(open_as, tmp_path, author_of, say):
    one, two = await open_as("one"), await open_as("two")
    first, second = author_of(one, "s_1"), author_of(two, "s_2")
    for text in ("a", "b"):
        await first.commit((say.note(text),))
        await second.commit((say.note(text),))
    assert await texts_of(two, "s_1") == await texts_of(one, "s_2") == ["a", "b"]
    assert await one.ownership.elsewhere(["s_1", "s_2"]) == {"s_2": f"{socket.gethostname()}:{tmp_path}/two"}


async def test_a_session_is_taken_only_after_its_daemon_has_released_it(open_as, author_of, say):
    one, two = await open_as("one"), await open_as("two")
    author = author_of(one)
    await author.commit((say.note("a"),))
    with pytest.raises(OwnedElsewhereError, match=r"session s_1 is open in the daemon .*:.*/one"):
        await two.ownership.take("s_1")
    end = author.commit((say.note("b"),))
    one.ownership.release("s_1")
    await end
    late = author.commit((say.note("late"),))
    with pytest.raises(FencedError, match="session s_1 does not belong to this daemon any more"):
        await late
    await two.ownership.take("s_1")
    assert await texts_of(two) == ["a", "b"]
    with pytest.raises(OwnedElsewhereError):
        await one.ownership.take("s_1")


async def test_a_session_that_is_released_and_wanted_again_at_once_is_taken_after_the_release(open_as, author_of, say):
    one, two = await open_as("one"), await open_as("two")
    author = author_of(one)
    await author.commit((say.note("a"),))
    for _ in range(100):
        one.ownership.release("s_1")
        await one.ownership.take("s_1")  # else it would be lost when the release is carried out
        await author.commit((say.note("b"),))
    with pytest.raises(OwnedElsewhereError):
        await two.ownership.take("s_1")


@UNRENEWED
async def test_a_session_that_a_daemon_was_given_is_its_own_without_another_write(open_as, author_of, say):
    one, two = await open_as("one"), await open_as("two")
    await author_of(one).commit((say.note("a"),))
    (load,) = [load for load in await one.ownership.members.loads() if not load.is_this]
    assert await one.ownership.move("s_1", load.member, goes_on=True)
    before = two.database.counts.writes
    await two.ownership.take("s_1")
    assert two.database.counts.writes == before
    with pytest.raises(OwnedElsewhereError):
        await one.ownership.take("s_1")


async def test_a_daemon_that_ends_leaves_its_sessions_to_others_at_once(open_as, author_of, say):
    one, two = await open_as("one"), await open_as("two")
    await author_of(one).commit((say.note("a"),))
    await one.close()
    await two.ownership.take("s_1")


@UNRENEWED
async def test_a_timer_belongs_to_one_daemon(open_as, url):
    one, two = await open_as("one"), await open_as("two")
    first, second = (StoredTimers(journal.database, journal.ownership) for journal in (one, two))
    await first.put(timer("t_1"))
    await second.put(timer("t_2"))
    assert ([t.id for t in await first.all()], [t.id for t in await second.all()]) == (["t_1"], ["t_2"])
    with pytest.raises(TimerElsewhereError, match=r"the timer t_1 belongs to the daemon .*/one"):
        await second.put(timer("t_1"))
    with pytest.raises(TimerElsewhereError, match="belongs to the daemon"):
        await second.remove("t_1")
    await one.close()
    assert [t.id for t in await second.all()] == ["t_1", "t_2"]


def until_swept(url):
    while sql(url, "SELECT FROM staged WHERE maker = '99'").rowcount:
        pass  # the writer does it in a pause


async def test_a_session_that_another_daemon_is_importing_is_not_swept_away(open_as, url, author_of, say):
    one, two = await open_as("one"), await open_as("two")
    sql(url, "INSERT INTO staged VALUES (1, %s), (2, '99')", one.database.maker)
    await author_of(two).commit((say.note("a"),))
    await asyncio.to_thread(until_swept, url)
    assert sql(url, "SELECT session FROM staged").rowcount == 1


async def test_a_daemon_that_hands_over_gives_its_sessions_to_one_of_the_others(open_as, author_of, say):
    leaving, one, two = [await open_as(name) for name in ("leaving", "one", "two")]
    running = [f"s_{number}" for number in range(4)]
    for session in (*running, "s_idle"):
        await author_of(leaving, session).commit((say.note("a"),))
    told = Told(one, two)
    leaving.ownership.prepare_to_end([*running, "s_unknown"])
    await leaving.close()
    assert await soon(told.given) == [Handover(session, goes_on=True) for session in running]
    heir, other = (one, two) if await two.ownership.elsewhere(running) else (two, one)
    await heir.ownership.take("s_0")
    with pytest.raises(OwnedElsewhereError):
        await other.ownership.take("s_1")
    await other.ownership.take("s_idle")
    await heir.ownership.receive(running)
    heir.database.lease.wake()
    assert told.given.empty()


async def test_a_daemon_that_is_about_to_end_gets_nothing(open_as, author_of, say):
    leaving, ending, heir = [await open_as(name) for name in ("leaving", "ending", "heir")]
    await author_of(leaving).commit((say.note("a"),))
    ends, told = Told(ending), Told(heir)
    ending.ownership.prepare_to_end()
    async with asyncio.timeout(WAIT_S):
        while len(heirs(await leaving.ownership.members.loads())) > 1:
            pass
    leaving.ownership.prepare_to_end(["s_1"])
    await leaving.close()
    assert await soon(told.given) == [Handover("s_1", goes_on=True)]
    assert ends.given.empty()


async def test_what_a_daemon_was_given_goes_to_another_one_if_it_ends_before_it_takes_it(open_as, url, author_of, say):
    leaving, dead = await open_as("leaving"), await open_as("dead")
    dead.database.lease._renew = lambda: True
    await author_of(leaving).commit((say.note("a"),))
    leaving.ownership.prepare_to_end(["s_1"])
    await leaving.close()
    told = Told(await open_as("heir"))
    expire(url, dead)
    assert await soon(told.given) == [Handover("s_1", goes_on=True)]


@UNRENEWED
async def test_a_daemon_knows_which_others_live(open_as, tmp_path, url):
    one, dead, _ = [await open_as(name) for name in ("one", "dead", "other")]
    expire(url, dead)
    assert heirs(await one.ownership.members.loads()) == [f"{socket.gethostname()}:{tmp_path}/other"]


async def test_timers_of_a_daemon_that_ends_in_order_are_told_to_the_others(open_as):
    one, two = await open_as("one"), await open_as("two")
    await StoredTimers(one.database, one.ownership).put(timer("t_1"))
    told = Told(two)
    await one.close()
    assert await soon(told.changed) == []
    assert [t.id for t in await StoredTimers(two.database, two.ownership).all()] == ["t_1"]


async def other_of(journal, name):
    """The daemon whose home has this name, as another one sees it."""
    (found,) = [load.member for load in await journal.ownership.members.loads() if load.member.name.endswith(name)]
    return found


async def timers_of(journal):
    return [one.id for one in await StoredTimers(journal.database, journal.ownership).all()]


@UNRENEWED
async def test_a_session_is_moved_with_its_timers_after_what_was_submitted_before(open_as, url, author_of, say):
    one, two, three = [await open_as(name) for name in ("one", "two", "three")]
    author = author_of(one)
    await author.commit((say.note("a"),))
    await StoredTimers(one.database, one.ownership).put(timer("t_1"))
    last = author.commit((say.note("b"),))
    assert await one.ownership.move("s_1", await other_of(one, "two"), goes_on=False)
    await last
    assert (await timers_of(one), await timers_of(two), await timers_of(three)) == ([], ["t_1"], [])
    with pytest.raises(FencedError):
        await author.commit((say.note("late"),))
    with pytest.raises(OwnedElsewhereError):
        await three.ownership.take("s_1")
    await two.ownership.take("s_1")
    assert await texts_of(two) == ["a", "b"]


@UNRENEWED
async def test_a_session_whose_move_was_cancelled_is_taken_only_after_the_move(open_as, author_of, say):
    one, two = await open_as("one"), await open_as("two")
    await author_of(one).commit((say.note("a"),))
    member, gate = await other_of(one, "two"), threading.Event()
    one.database.submit(Write(lambda _: gate.wait(WAIT_S), lambda _: None))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await one.ownership.move("s_1", member, goes_on=True)
    with pytest.raises(TimeoutError):  # it waits for the move, which is queued
        async with asyncio.timeout(0.2):
            await one.ownership.take("s_1")
    gate.set()
    with pytest.raises(OwnedElsewhereError):
        await one.ownership.take("s_1")
    await two.ownership.take("s_1")


async def test_a_daemon_is_told_of_a_session_that_was_moved_to_it_and_whether_it_goes_on(open_as, author_of, say):
    one, two = await open_as("one"), await open_as("two")
    told = Told(two)
    for session, goes_on in (("s_1", True), ("s_2", False)):
        await author_of(one, session).commit((say.note("a"),))
        assert await one.ownership.move(session, await other_of(one, "two"), goes_on=goes_on)
        (handover,) = await soon(told.given)
        assert handover == Handover(session, goes_on)
        await two.ownership.receive([session])


@UNRENEWED
async def test_a_session_that_was_not_received_yet_still_goes_on_when_it_is_moved_on(open_as, url, author_of, say):
    one, two, three = [await open_as(name) for name in ("one", "two", "three")]
    await author_of(one).commit((say.note("a"),))
    assert await one.ownership.move("s_1", await other_of(one, "two"), goes_on=True)
    assert await two.ownership.move("s_1", await other_of(two, "three"), goes_on=False)
    found = sql(url, "SELECT session, heir, goes_on FROM handovers").fetchall()
    assert found == [("s_1", three.database.lease.number, True)]


@UNRENEWED
async def test_a_session_is_not_moved_to_a_daemon_that_ends_or_has_ended(open_as, url, author_of, say):
    one, two = await open_as("one"), await open_as("two")
    author = author_of(one)
    await author.commit((say.note("a"),))
    member = await other_of(one, "two")
    expire(url, two)
    assert not await one.ownership.move("s_1", member, goes_on=True)
    await two.close()
    assert not await one.ownership.move("s_1", member, goes_on=True)
    await author.commit((say.note("b"),))
    assert sql(url, "SELECT FROM handovers").rowcount == 0


async def test_a_daemon_that_opens_a_session_has_its_timers_and_is_told(open_as, author_of, say):
    one, two = await open_as("one"), await open_as("two")
    await author_of(one).commit((say.note("a"),))
    await StoredTimers(one.database, one.ownership).put(timer("t_1"))
    told = Told(two)
    with pytest.raises(OwnedElsewhereError):
        await two.ownership.take("s_1")
    assert await timers_of(one) == ["t_1"]
    one.ownership.release("s_1")
    await author_of(one, "s_2").commit((say.note("after the release"),))
    await two.ownership.take("s_1")
    assert await soon(told.changed) == ()
    assert (await timers_of(one), await timers_of(two)) == ([], ["t_1"])


@UNRENEWED
async def test_the_timer_of_a_dead_daemon_is_left_to_the_one_that_has_its_session(open_as, url, author_of, say):
    dead, one, two = [await open_as(name) for name in ("dead", "one", "two")]
    await author_of(two).commit((say.note("a"),))
    await StoredTimers(dead.database, dead.ownership).put(timer("t_1"))
    sql(url, "DELETE FROM daemons WHERE number = %s", dead.database.lease.number)
    assert (await timers_of(one), await timers_of(two)) == ([], ["t_1"])


async def test_sessions_and_timers_of_a_database_that_one_daemon_used_belong_to_nobody(open_as, url, author_of, say):
    former = await open_as("former")
    await author_of(former).commit((say.note("a"),), state="running")
    await StoredTimers(former.database, former.ownership).put(timer("t_1"))
    await former.close()
    with psycopg.connect(url, autocommit=True) as connection:  # as the first version of the tables had them
        connection.execute("DROP TABLE daemons, handovers, batches, batch_prompts, audit, user_days")
        for table in ("sessions", "timers"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN owner")
        connection.execute("ALTER TABLE sessions DROP COLUMN user_name")
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'schema'")
    one = await open_as("one")
    assert await one.ownership.adopt("running") == ["s_1"]
    assert [t.id for t in await StoredTimers(one.database, one.ownership).all()] == ["t_1"]


@UNRENEWED
async def test_what_is_being_copied_when_its_daemon_loses_its_lease_is_not_published(open_as, url, author_of, say):
    paused = await open_as("paused")
    author, told = author_of(paused), Told(paused)
    await author.commit((say.note("a"),))
    row = msgspec.structs.replace(author.row, id="s_copy", records=0, seq=0)
    async with staging(paused.database, row) as made:
        await made.copy(Share("s_1", 1, 0))
        sql(url, "DELETE FROM daemons")
        paused.database.lease.wake()
        await soon(told.changed)
        with pytest.raises(StorageError, match="the session was not made: this daemon has lost its lease"):
            await made.publish(msgspec.structs.replace(made.row, state="idle"), (), share=Share("s_1", 1, 0))
    assert await paused.row("s_copy") is None
