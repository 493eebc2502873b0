"""A server that is killed while commits are on their way to it."""

import contextlib
import os
import re
import socket

import psycopg
import pytest

from zotd.core.ports import StorageError
from zotd.store.postgres.journal import PostgresJournal
from zotd.store.postgres.writer import FencedError
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
    syncing_server, author_of, say
):
    url = syncing_server.database()
    journal = await PostgresJournal.open(url)
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


@pytest.mark.parametrize("outcome", ["COMMIT", "ROLLBACK"])
async def test_a_commit_whose_answer_is_lost_is_stored_once(postgres_server, author_of, say, outcome):
    """The server has committed or not when the connection is lost: the writer asks it, and tries again if not."""
    journal = await PostgresJournal.open(postgres_server.database())
    author = author_of(journal)
    await author.commit((say.note("one"),))
    losing(journal.database._writer._connection, outcome)
    await author.commit((say.note("two"),))
    assert await texts_of(journal) == ["one", "two"]
    await journal.close()


async def test_a_commit_that_the_server_still_works_on_when_the_connection_is_lost_does_not_happen_later(
    postgres_server, author_of, say
):
    url = postgres_server.database()
    journal = await PostgresJournal.open(url)
    author = author_of(journal)
    await author.commit((say.note("one"),))
    with psycopg.connect(url) as other, psycopg.connect(url, autocommit=True) as watch:
        other.execute("SELECT FROM sessions FOR UPDATE")
        end = author.commit((say.note("two"),))
        former = waiting_for_a_lock(watch, 0)
        with socket.socket(fileno=os.dup(journal.database._writer._connection.fileno())) as lost:
            lost.shutdown(socket.SHUT_RDWR)
        waiting_for_a_lock(watch, former)
        assert watch.execute("SELECT FROM pg_stat_activity WHERE pid = %s", (former,)).fetchone() is None
        other.rollback()
        await end
    assert await texts_of(journal) == ["one", "two"]
    await journal.close()


def waiting_for_a_lock(watch, former):
    """The process of the server, another one than `former`, that waits for a row."""
    query = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid <> %s"
    while (found := watch.execute(query, (former,)).fetchone()) is None:
        pass  # the server does not report it
    return found[0]


async def test_a_commit_whose_answer_is_lost_is_not_reported_as_stored_once_another_daemon_goes_on(
    postgres_server, author_of, say
):
    url = postgres_server.database()
    journal = await PostgresJournal.open(url)
    author = author_of(journal)
    await author.commit((say.note("one"),))
    other = await PostgresJournal.open(url)
    heir = author_of(other)
    heir.row = await other.row("s_1")
    await heir.commit((say.note("of the other"),))
    losing(journal.database._writer._connection, "ROLLBACK")
    with pytest.raises(FencedError):
        await author.commit((say.note("two"),))
    assert await texts_of(other) == ["one", "of the other"]
    await journal.close()
    await other.close()


async def test_a_change_of_the_row_whose_answer_is_lost_is_made_again(postgres_server, author_of, say):
    """It has no record by which it could be found."""
    journal = await PostgresJournal.open(postgres_server.database())
    author = author_of(journal)
    await author.commit((say.note("one"),))
    losing(journal.database._writer._connection, "ROLLBACK")
    await author.commit(name="renamed")
    assert [row.name for row in await journal.find("s_1")] == ["renamed"]
    await journal.close()


async def test_a_process_that_was_left_at_work_is_ended_before_anything_else_is_sent(
    postgres_server, author_of, say, monkeypatch
):
    """The database cannot be reached when the connection is lost, so the commit is reported as failed."""
    url = postgres_server.database()
    journal = await PostgresJournal.open(url)
    author, writer = author_of(journal), journal.database._writer
    await author.commit((say.note("one"),))
    row, connect = author.row, writer._connect
    with psycopg.connect(url) as other, psycopg.connect(url, autocommit=True) as watch:
        other.execute("SELECT FROM sessions FOR UPDATE")
        end = author.commit((say.note("lost"),))
        former = waiting_for_a_lock(watch, 0)
        monkeypatch.setattr(writer, "_connect", away)
        with socket.socket(fileno=os.dup(writer._connection.fileno())) as lost:
            lost.shutdown(socket.SHUT_RDWR)
        with pytest.raises(StorageError, match="away"):
            await end
        monkeypatch.setattr(writer, "_connect", connect)
        author.row = row
        end = author.commit((say.note("two"),))
        waiting_for_a_lock(watch, former)
        other.rollback()
        await end
    assert await texts_of(journal) == ["one", "two"]
    await journal.close()


def away():
    raise StorageError("the database is away")


async def test_the_format_of_dates_does_not_matter(postgres_server, author_of, say):
    url = postgres_server.database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {connection.info.dbname} SET datestyle = 'German'")
    journal = await PostgresJournal.open(url)
    await author_of(journal).commit((say.note("one"),))
    await journal.close()
