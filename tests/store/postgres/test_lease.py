"""A lease that expires, is lost, or is not renewed: what the daemon may do then, and what the others take over."""

import asyncio
import contextlib
from collections.abc import Sequence

import psycopg
import pytest

from tests.store.postgres.leases import QUICK, UNRENEWED, WAIT_S, Told, expire, number_of, soon, sql, texts_of
from zotd.core.ports import PartialText
from zotd.store.ownership import OwnedElsewhereError
from zotd.store.postgres import lease, registration
from zotd.store.postgres.lease import FencedError


@UNRENEWED
async def test_a_daemon_that_was_killed_has_its_sessions_when_it_starts_again(open_as, author_of, say):
    killed = await open_as("one")
    await author_of(killed).commit((say.note("a"),), state="running")
    again = await open_as("one")
    for _ in range(2):  # also one that a client has opened before
        assert await again.ownership.adopt("running") == ["s_1"]
    assert await texts_of(again) == ["a"]


@QUICK
async def test_sessions_that_were_cut_go_to_one_of_the_others_when_the_lease_has_expired(open_as, url, author_of, say):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lease, "RENEW_S", 3600)
        dead = await open_as("dead")
    for session, state in (("s_run", "running"), ("s_wait", "waiting"), ("s_idle", "idle")):
        await author_of(dead, session).commit((say.note("a"),), state=state)
    heirs = [await open_as(name) for name in ("one", "two")]
    told = Told(*heirs)
    expire(url, dead)
    taken = [await soon(told.changed)]
    assert [sorted(sessions) for sessions in taken] == [["s_run", "s_wait"]]
    with pytest.raises(FencedError):
        await author_of(dead, "s_new").commit((say.note("late"),))
    await heirs[0].ownership.take("s_idle")
    assert told.changed.empty()


@pytest.fixture
async def places(open_as, url, author_of, say):
    """A daemon whose lease has expired with a session that runs, and another one at its place and elsewhere."""
    journals = dead, near, far = [await open_as(name) for name in ("dead", "near", "far")]
    for journal, place in zip(journals, ("box1", "box1", "box2"), strict=True):
        journal.ownership.members.offer([f"place:{place}"])
    await author_of(dead).commit((say.note("a"),), state="running")
    has_labels = "SELECT count(*) = 3 FROM daemons WHERE labels <> '[]'"
    async with asyncio.timeout(WAIT_S):
        while sql(url, has_labels).fetchone() != (True,):
            await dead.ownership.members.loads()
    expire(url, dead)
    return dead, near, far


@UNRENEWED
async def test_a_daemon_at_the_place_of_one_that_has_ended_is_the_first_to_take_its_sessions(places, url):
    _, near, far = places
    told_far, told_near = Told(far), Told(near)
    async with asyncio.timeout(WAIT_S):
        before = sql(url, "SELECT expires FROM daemons WHERE number = %s", number_of(far)).fetchone()
        far.database.lease.wake()  # which renews its lease, and then looks at others
        while sql(url, "SELECT expires FROM daemons WHERE number = %s", number_of(far)).fetchone() == before:
            await far.ownership.members.loads()
    near.database.lease.wake()
    assert await soon(told_near.changed) == ["s_1"]
    assert told_far.changed.empty()


@UNRENEWED
@pytest.mark.parametrize(
    "excuse",
    [
        "UPDATE daemons SET expires = expires - interval '3 s' WHERE number = {dead}",
        "UPDATE daemons SET stopping = true WHERE number = {near}",
        "UPDATE daemons SET expires = clock_timestamp() WHERE number = {near}",
        "UPDATE daemons SET labels = '[]' WHERE number = {dead}",
    ],
    ids=["has had time", "ends", "has ended", "is at no place"],
)
async def test_a_daemon_elsewhere_takes_them_if_none_at_the_place_does(places, url, excuse):
    dead, near, far = places
    sql(url, excuse.format(dead=number_of(dead), near=number_of(near)))
    assert await soon(Told(far).changed) == ["s_1"]


@UNRENEWED
async def test_a_label_that_the_database_cannot_read_keeps_no_daemon_from_taking_over_and_handing_over(
    places, url, author_of, say
):
    dead, near, far = places
    strange = '["place:x\\u0000y", "place:box1"]'
    sql(url, "UPDATE daemons SET labels = %s WHERE number = ANY(%s)", strange, [number_of(dead), number_of(near)])
    told = Told(near)
    near.database.lease.wake()
    assert await soon(told.changed) == ["s_1"]
    sql(url, "UPDATE daemons SET labels = %s WHERE number = %s", strange, number_of(near))
    await author_of(far, "s_2").commit((say.note("a"),))
    far.ownership.give("s_2")
    assert (await soon(told.given))[0].session == "s_2"


@UNRENEWED
async def test_a_daemon_whose_lease_has_expired_writes_nothing_and_is_registered_anew(open_as, url, author_of, say):
    paused, heir = await open_as("paused"), await open_as("heir")
    author = author_of(paused)
    await author.commit((say.note("a"),))
    before = number_of(paused)
    expire(url, paused)
    heir.database.lease.wake()
    await soon(Told(heir).changed)
    await heir.ownership.take("s_1")
    follower = author_of(heir)
    follower.row = await heir.row("s_1")
    await follower.commit((say.note("b"),))

    with pytest.raises(FencedError):
        await author.commit((say.note("late"),))
    with pytest.raises(FencedError):
        await paused.delete("s_1")
    with pytest.raises(FencedError):
        await paused.settings.set("key", "late")
    told = Told(paused)  # which wakes it up
    assert "has expired" in str(await soon(told.lost))
    assert await soon(told.changed) == []
    assert number_of(paused) > before
    with pytest.raises(FencedError, match="does not belong to this daemon any more"):
        await author.commit((say.note("late"),))
    with pytest.raises(OwnedElsewhereError):
        await paused.ownership.take("s_1")
    with pytest.raises(OwnedElsewhereError):
        await paused.delete("s_1")
    paused.keep_partial("s_1", PartialText("r_1", 1, "late"))
    await author_of(paused, "s_2").commit((say.note("new"),))
    assert await texts_of(heir) == ["a", "b"]
    assert await heir.partial("s_1") is None


def until_renewed(url, number):
    while sql(url, "SELECT FROM daemons WHERE number = %s AND expires > clock_timestamp()", number).rowcount == 0:
        pass  # the thread of the lease does it


@UNRENEWED
async def test_a_lease_that_nobody_has_taken_away_is_renewed_after_its_end(open_as, url, author_of, say):
    paused = await open_as("paused")
    author = author_of(paused)
    await author.commit((say.note("a"),))
    before = number_of(paused)
    expire(url, paused)
    paused.database.lease.wake()
    await asyncio.to_thread(until_renewed, url, before)
    await author.commit((say.note("b"),))
    assert number_of(paused) == before


@UNRENEWED
async def test_a_second_daemon_of_the_same_home_ends_the_first_one_for_good(open_as, author_of, say, caplog):
    first = await open_as("one")
    author = author_of(first)
    await author.commit((say.note("a"),))
    told, second = Told(first), await open_as("one")
    first.database.lease.wake()
    await soon(told.lost)
    await asyncio.to_thread(first.database.lease._thread.join, WAIT_S)
    assert "another daemon of this home uses the database" in caplog.text
    with pytest.raises(FencedError):
        await author.commit((say.note("late"),))
    await second.ownership.take("s_1")


@UNRENEWED
async def test_runs_are_aborted_before_a_lease_that_is_not_renewed_has_expired(open_as, monkeypatch):
    monkeypatch.setattr(lease, "LADDER_S", registration.LEASE_S)
    told = Told(await open_as("one"))
    assert "has not renewed the lease" in str(await soon(told.lost))


@QUICK
async def test_a_server_that_is_away_for_a_moment_takes_no_session_away(open_as, url, author_of, say):
    one = await open_as("one")
    author, told = author_of(one), Told(one)
    await author.commit((say.note("a"),))
    for _ in range(3):
        sql(
            url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        await author.commit((say.note("b"),))
    assert told.lost.empty()


async def test_an_unanswered_registration_is_found_again(open_as, url, author_of, say, monkeypatch):
    paused = await open_as("paused")
    sql(url, "DELETE FROM daemons")
    register = registration.register

    def lost(connection, identity, address):
        """Registers, and loses the connection before it says so."""
        with psycopg.connect(url, autocommit=True) as other:
            number = register(other, identity)
        monkeypatch.setattr(lease, "register", register)
        paused.database.lease._tried = number
        raise psycopg.OperationalError("the connection was lost")

    monkeypatch.setattr(lease, "register", lost)
    told = Told(paused)
    await soon(told.lost)
    await soon(told.changed)
    assert sql(url, "SELECT number FROM daemons").fetchall() == [(number_of(paused),)]
    await author_of(paused, "s_new").commit((say.note("a"),))


@contextlib.contextmanager
def hanging(url, daemon):
    """A transaction of the daemon that it has not sent to its end. Nothing ends it: it is not idle, and no statement runs."""
    connection = psycopg.connect(url, application_name=daemon.database.lease._identity.application)
    with contextlib.suppress(psycopg.OperationalError), connection.pipeline():
        connection.execute("SELECT FROM daemons WHERE number = %s FOR KEY SHARE", (number_of(daemon),))
        connection.execute("SELECT FROM sessions FOR UPDATE")
        connection.pgconn.send_flush_request()
        connection.pgconn.flush()
        yield
    connection.close()


@QUICK
async def test_a_daemon_that_was_stopped_in_the_middle_of_a_transaction_does_not_keep_its_sessions(
    open_as, url, author_of, say
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lease, "RENEW_S", 3600)
        stopped = await open_as("stopped")
    await author_of(stopped).commit((say.note("a"),), state="running")
    with hanging(url, stopped):
        told = Told(await open_as("heir"))
        expire(url, stopped)
        sessions: Sequence[str] = ()
        while not sessions:
            sessions = await soon(told.changed)
        assert sessions == ["s_1"]
