"""A server that is killed while commits are on their way to it."""

import asyncio
import contextlib
import os
import re
import signal
import socket

import psycopg
import pytest

from zotd.core.ports import StorageError
from zotd.store.postgres import schema
from zotd.store.postgres.journal import PostgresJournal
from zotd.store.postgres.lease import FencedError
from zotd.testing.postgres_server import MISSING, PostgresServer

KILLS = 5
COMMITS = 40


@pytest.fixture
def syncing_server():
    """A server of one test, which syncs, because it will be killed."""
    if MISSING is not None:
        pytest.skip(MISSING)
    server = PostgresServer(fsync=True)
    yield server
    server.close()


async def test_a_commit_is_stored_exactly_if_it_was_acknowledged_whenever_the_server_is_killed(
    syncing_server, tmp_path, author_of, say
):
    url = syncing_server.database()
    journal = await PostgresJournal.open(url, tmp_path)
    author = author_of(journal)
    texts: list[str] = []
    for kill in range(KILLS):
        ends = []
        for n in range(COMMITS):
            text = f"{kill}.{n}"
            ends.append((text, author.commit((say.note(text), [say.step()]))))
            if n == kill * COMMITS // KILLS:
                await ends[-1][1]  # the connection is in use from here on
        syncing_server.kill()
        stored = await told(ends)
        syncing_server.start()
        texts += stored
        # A commit whose fate cannot be asked is not acknowledged, but the next one then starts from what is stored.
        records = await texts_of(journal)
        assert records[: len(texts)] == texts
        assert len(records) == len(set(records))
        texts = records
        author.row = await journal.row("s_1")
        assert (author.row.records, author.row.seq) == (len(records), len(records))
    await journal.close()


async def texts_of(journal):
    return [record.text for record in await journal.records("s_1", 1)]


async def told(ends):
    """The texts of the commits that were acknowledged."""
    stored = []
    for text, end in ends:
        error = await failure(end)
        if error is None:
            stored.append(text)
        else:
            assert re.search("could not be written|cannot be opened|follow", error)
    return stored


async def failure(end):
    try:
        await end
    except StorageError as error:
        return str(error)
    return None


def losing(connection, outcome):
    """Let the connection end as soon as the server has done `outcome` at its next COMMIT."""
    execute = connection.execute
    connection.pipeline = contextlib.nullcontext  # each statement waits for the one before

    def lose_answer(query, *args):
        if query != "COMMIT":
            return execute(query, *args)
        execute(outcome)
        connection.close()
        raise psycopg.OperationalError("the connection was lost")

    connection.execute = lose_answer


@pytest.fixture
def url(postgres_server):
    return postgres_server.database()


@pytest.fixture
async def journal(url, tmp_path):
    opened = await PostgresJournal.open(url, tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def author(journal, author_of, say):
    """A session with one record."""
    author = author_of(journal)
    await author.commit((say.note("one"),))
    return author


@pytest.mark.parametrize("outcome", ["COMMIT", "ROLLBACK"])
async def test_a_commit_whose_answer_is_lost_is_stored_once(journal, author, say, outcome):
    """The server has committed or not when the connection is lost: the writer looks, and tries again if not."""
    losing(journal.database._writer._connection, outcome)
    await author.commit((say.note("two"),))
    assert await texts_of(journal) == ["one", "two"]


async def test_a_change_of_the_row_whose_answer_is_lost_is_made_again(journal, author):
    """It has no record by which it could be found."""
    losing(journal.database._writer._connection, "ROLLBACK")
    await author.commit(name="renamed")
    assert [row.name for row in await journal.find("s_1")] == ["renamed"]


async def test_a_commit_whose_answer_is_lost_is_not_reported_as_stored_once_another_daemon_goes_on(
    url, journal, tmp_path, author, author_of, say
):
    other = await PostgresJournal.open(url, tmp_path)
    await other.ownership.take("s_1")
    heir = author_of(other)
    heir.row = await other.row("s_1")
    await heir.commit((say.note("of the other"),))
    losing(journal.database._writer._connection, "ROLLBACK")
    with pytest.raises(FencedError):
        await author.commit((say.note("two"),))
    assert await texts_of(other) == ["one", "of the other"]
    await other.close()


@pytest.fixture
def locked(url, author):
    """A lock on the rows of all sessions, and a connection that watches who waits."""
    with psycopg.connect(url) as lock, psycopg.connect(url, autocommit=True) as watch:
        lock.execute("SELECT FROM sessions FOR UPDATE")
        yield lock, watch


def waiting(watch, kind, former=0):
    """The process of the server, another one than `former`, that waits in this way."""
    query = "SELECT pid FROM pg_stat_activity WHERE %s IN (wait_event_type, wait_event) AND pid <> %s"
    while (found := watch.execute(query, (kind, former)).fetchone()) is None:
        pass  # the server does not report it
    return found[0]


def cut(connection):
    """End the connection of the writer, which is waiting for an answer."""
    with socket.socket(fileno=os.dup(connection.fileno())) as lost:
        lost.shutdown(socket.SHUT_RDWR)


async def test_a_commit_that_the_server_still_works_on_when_the_connection_is_lost_does_not_happen_later(
    journal, author, locked, say
):
    lock, watch = locked
    end = author.commit((say.note("two"),))
    former = waiting(watch, "Lock")
    cut(journal.database._writer._connection)
    waiting(watch, "Lock", former)
    assert watch.execute("SELECT FROM pg_stat_activity WHERE pid = %s", (former,)).fetchone() is None
    lock.rollback()
    await end
    assert await texts_of(journal) == ["one", "two"]


async def test_a_process_that_was_left_at_work_is_ended_before_anything_else_is_sent(
    journal, author, locked, say, monkeypatch
):
    """The database cannot be reached when the connection is lost, so the commit is reported as failed."""
    lock, watch = locked
    row, writer = author.row, journal.database._writer
    end = author.commit((say.note("lost"),))
    former = waiting(watch, "Lock")
    with monkeypatch.context() as patch:
        patch.setattr(writer, "_connect", away)
        cut(writer._connection)
        with pytest.raises(StorageError, match="away"):
            await end
    author.row = row
    end = author.commit((say.note("two"),))
    waiting(watch, "Lock", former)
    lock.rollback()
    await end
    assert await texts_of(journal) == ["one", "two"]


def away():
    raise StorageError("the database is away")


async def test_nothing_is_sent_while_a_process_that_was_left_at_work_does_not_end(
    journal, author, locked, say, monkeypatch
):
    lock, watch = locked
    row = author.row
    monkeypatch.setattr("zotd.store.postgres.writer.END_MS", 100)
    end = author.commit((say.note("lost"),))
    former = waiting(watch, "Lock")
    os.kill(former, signal.SIGSTOP)
    try:
        cut(journal.database._writer._connection)
        for _ in range(2):
            with pytest.raises(StorageError, match="the server has not decided about the commit"):
                await end
            author.row = row
            end = author.commit((say.note("lost"),))
        with pytest.raises(StorageError, match="has not decided"):
            await end
    finally:
        os.kill(former, signal.SIGCONT)
    lock.rollback()
    monkeypatch.undo()
    author.row = row
    await author.commit((say.note("two"),))
    assert await texts_of(journal) == ["one", "two"]


async def test_a_commit_is_not_acknowledged_before_the_standby_has_it_when_its_answer_was_lost(
    syncing_server, tmp_path, author_of, say
):
    url = syncing_server.database()
    journal = await PostgresJournal.open(url, tmp_path)
    author = author_of(journal)
    await author.commit((say.note("one"),))
    with psycopg.connect(url, autocommit=True) as watch:
        standby(syncing_server, "absent", url)
        end = author.commit((say.note("two"),))
        former = waiting(watch, "SyncRep")
        cut(journal.database._writer._connection)
        waiting(watch, "SyncRep", former)
        await asyncio.sleep(0)  # an acknowledgement would be seen now
        assert not end.done()
        standby(syncing_server, "", url)
        await end
    assert await texts_of(journal) == ["one", "two"]
    await journal.close()


def standby(server, name, url):
    """Have commits wait for the standby with this name, or for none."""
    server.configure(synchronous_standby_names=name)
    server.run("pg_ctl", "-D", server.data, "reload")
    while True:  # the server reports it to new connections, after it has told its processes
        with psycopg.connect(url, autocommit=True) as connection:
            if connection.execute("SHOW synchronous_standby_names").fetchone() == (name,):
                return


async def test_a_daemon_that_waits_for_another_one_to_start_sees_what_that_has_changed(url, journal, tmp_path):
    with psycopg.connect(url, autocommit=True) as first, psycopg.connect(url, autocommit=True) as watch:
        first.execute(f"ALTER DATABASE {first.info.dbname} SET default_transaction_isolation = 'serializable'")
        first.execute("SELECT pg_advisory_lock(%s)", (schema.LOCK,))
        async with asyncio.TaskGroup() as tasks:
            starting = tasks.create_task(PostgresJournal.open(url, tmp_path))
            await asyncio.to_thread(waiting, watch, "advisory")
            first.execute("UPDATE meta SET value = (value::bigint + 1)::text WHERE key = 'generation'")
            first.execute("SELECT pg_advisory_unlock(%s)", (schema.LOCK,))
        await starting.result().close()


@pytest.mark.parametrize(
    "setting", ["datestyle = 'German'", "timezone = 'Asia/Kolkata'", "default_transaction_isolation = 'serializable'"]
)
async def test_settings_of_the_database_do_not_matter(url, tmp_path, author_of, say, setting):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {connection.info.dbname} SET {setting}")
    journal = await PostgresJournal.open(url, tmp_path)
    author = author_of(journal)
    for text in ("one", "two"):
        losing(journal.database._writer._connection, "COMMIT")
        await author.commit((say.note(text),))
    other = await PostgresJournal.open(url, tmp_path)
    with pytest.raises(FencedError):
        await author.commit((say.note("three"),))
    assert await texts_of(other) == ["one", "two"]
    for opened in (journal, other):
        await opened.close()
