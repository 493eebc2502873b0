"""Several daemons of one database: who may write which session, and what becomes of those of a daemon that has ended."""

import asyncio
import contextlib
import socket
from collections.abc import Sequence

import psycopg
import pytest

from zotd.core.due_times import IntervalRule
from zotd.core.ports import StorageError
from zotd.core.timers import Timer
from zotd.store.ownership import LeaseEvents, OwnedElsewhereError
from zotd.store.postgres import lease
from zotd.store.postgres.journal import PostgresJournal
from zotd.store.postgres.lease import FencedError
from zotd.store.timers import StoredTimers

WAIT_S = 30

STATES = ("running", "waiting")


@pytest.fixture
def url(postgres_server):
    return postgres_server.database()


@pytest.fixture
async def open_as(tmp_path, url):
    """Opens the journal as the daemon of a home with this name."""
    opened = []

    async def open_as(name):
        (tmp_path / name).mkdir(exist_ok=True)
        opened.append(await PostgresJournal.open(url, tmp_path / name))
        return opened[-1]

    yield open_as
    for journal in opened:
        await journal.close()


class Told:
    """What journals say of their leases."""

    def __init__(self, *journals):
        self.lost: asyncio.Queue[StorageError] = asyncio.Queue()
        self.changed: asyncio.Queue[Sequence[str]] = asyncio.Queue()
        self.given: asyncio.Queue[Sequence[str]] = asyncio.Queue()
        for journal in journals:
            journal.ownership.follow(
                LeaseEvents(self.lost.put_nowait, self.changed.put_nowait, self.given.put_nowait, STATES)
            )


async def soon(queue):
    async with asyncio.timeout(WAIT_S):
        return await queue.get()


def sql(url, statement, *values):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement, values)


def timer(key):
    return Timer(id=key, rule=IntervalRule(60), prompt="p", due=1, made=0, session="s_1")


def number_of(journal):
    return journal.database.lease.number


UNRENEWED = pytest.mark.usefixtures("unrenewed")


@pytest.fixture
def unrenewed(monkeypatch):
    """Leases are not renewed during the test, unless it says so."""
    monkeypatch.setattr(lease, "RENEW_S", 3600)


QUICK = pytest.mark.usefixtures("quick")


@pytest.fixture
def quick(monkeypatch):
    """Leases are renewed at once, again and again."""
    monkeypatch.setattr(lease, "RENEW_S", 0.05)


def expire(url, journal):
    """Let the lease of the daemon be over by the clock of the server."""
    sql(url, "UPDATE daemons SET expires = clock_timestamp() - interval '1 s' WHERE number = %s", number_of(journal))


async def texts_of(journal, session="s_1"):
    return [record.text for record in await journal.records(session, 1)]


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


async def test_a_daemon_that_ends_leaves_its_sessions_to_others_at_once(open_as, author_of, say):
    one, two = await open_as("one"), await open_as("two")
    await author_of(one).commit((say.note("a"),))
    await one.close()
    await two.ownership.take("s_1")


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


@UNRENEWED
async def test_a_daemon_whose_lease_has_expired_writes_nothing_and_is_registered_anew(open_as, url, author_of, say):
    paused, heir = await open_as("paused"), await open_as("heir")
    author = author_of(paused)
    await author.commit((say.note("a"),))
    before, told = number_of(paused), Told(paused)
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
    paused.database.lease.wake()
    assert "has expired" in str(await soon(told.lost))
    assert await soon(told.changed) == []
    assert number_of(paused) > before
    with pytest.raises(FencedError, match="does not belong to this daemon any more"):
        await author.commit((say.note("late"),))
    with pytest.raises(OwnedElsewhereError):
        await paused.ownership.take("s_1")
    with pytest.raises(OwnedElsewhereError):
        await paused.delete("s_1")
    await author_of(paused, "s_2").commit((say.note("new"),))
    assert await texts_of(heir) == ["a", "b"]


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
    monkeypatch.setattr(lease, "LADDER_S", lease.LEASE_S)
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


@UNRENEWED
async def test_a_timer_belongs_to_one_daemon(open_as, url):
    one, two = await open_as("one"), await open_as("two")
    first, second = (StoredTimers(journal.database, journal.ownership) for journal in (one, two))
    await first.put(timer("t_1"))
    await second.put(timer("t_2"))
    assert ([t.id for t in await first.all()], [t.id for t in await second.all()]) == (["t_1"], ["t_2"])
    with pytest.raises(StorageError, match=r"the timer t_1 belongs to the daemon .*/one"):
        await second.put(timer("t_1"))
    with pytest.raises(StorageError, match="belongs to the daemon"):
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
    assert await soon(told.given) == running
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
        while len(await leaving.ownership.others()) > 1:
            pass
    leaving.ownership.prepare_to_end(["s_1"])
    await leaving.close()
    assert await soon(told.given) == ["s_1"]
    assert ends.given.empty()


async def test_what_a_daemon_was_given_goes_to_another_one_if_it_ends_before_it_takes_it(open_as, url, author_of, say):
    leaving, dead = await open_as("leaving"), await open_as("dead")
    dead.database.lease._renew = lambda: True
    await author_of(leaving).commit((say.note("a"),))
    leaving.ownership.prepare_to_end(["s_1"])
    await leaving.close()
    told = Told(await open_as("heir"))
    expire(url, dead)
    assert await soon(told.given) == ["s_1"]


@UNRENEWED
async def test_a_daemon_knows_which_others_live(open_as, tmp_path, url):
    one, dead, _ = [await open_as(name) for name in ("one", "dead", "other")]
    expire(url, dead)
    assert await one.ownership.others() == [f"{socket.gethostname()}:{tmp_path}/other"]


async def test_timers_of_a_daemon_that_ends_in_order_are_told_to_the_others(open_as):
    one, two = await open_as("one"), await open_as("two")
    await StoredTimers(one.database, one.ownership).put(timer("t_1"))
    told = Told(two)
    await one.close()
    assert await soon(told.changed) == []
    assert [t.id for t in await StoredTimers(two.database, two.ownership).all()] == ["t_1"]


async def test_an_unanswered_registration_is_found_again(open_as, url, author_of, say, monkeypatch):
    paused = await open_as("paused")
    sql(url, "DELETE FROM daemons")
    told, register = Told(paused), lease.register

    def lost(connection, identity):
        """Registers, and loses the connection before it says so."""
        with psycopg.connect(url, autocommit=True) as other:
            number = register(other, identity)
        monkeypatch.setattr(lease, "register", register)
        paused.database.lease._tried = number
        raise psycopg.OperationalError("the connection was lost")

    monkeypatch.setattr(lease, "register", lost)
    paused.database.lease.wake()
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


async def test_sessions_and_timers_of_a_database_that_one_daemon_used_belong_to_nobody(open_as, url, author_of, say):
    former = await open_as("former")
    await author_of(former).commit((say.note("a"),), state="running")
    await StoredTimers(former.database, former.ownership).put(timer("t_1"))
    await former.close()
    with psycopg.connect(url, autocommit=True) as connection:  # as the first version of the tables had them
        connection.execute("DROP TABLE daemons, handovers")
        for table in ("sessions", "timers"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN owner")
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'schema'")
    one = await open_as("one")
    assert await one.ownership.adopt("running") == ["s_1"]
    assert [t.id for t in await StoredTimers(one.database, one.ownership).all()] == ["t_1"]
