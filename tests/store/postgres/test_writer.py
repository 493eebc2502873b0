"""A server that is killed while commits are on their way to it."""

import re

import psycopg
import pytest

from zotd.core.ports import StorageError
from zotd.store.postgres.journal import PostgresJournal
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
