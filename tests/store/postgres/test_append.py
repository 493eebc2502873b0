"""Appends that come from a daemon that is not the newest, or twice."""

import psycopg
import pytest

from zotd.core.ports import PartialText, StorageError
from zotd.store.postgres import schema
from zotd.store.postgres.journal import PostgresJournal
from zotd.store.postgres.lease import FencedError


@pytest.fixture
def opened(tmp_path):
    """Opens the journal in a database as the daemon of one home."""

    async def opened(url):
        return await PostgresJournal.open(url, tmp_path)

    return opened


@pytest.fixture
async def two(postgres_server, opened):
    """An open journal, and the address of the database, for another daemon of the same home."""
    url = postgres_server.database()
    old = await opened(url)
    yield old, url
    await old.close()


async def test_a_daemon_cannot_append_once_another_one_has_taken_the_sessions(two, opened, author_of, say):
    old, url = two
    author = author_of(old)
    await author.commit((say.note("one"), [say.step()]))
    stored = author.row
    new = await opened(url)
    try:
        with pytest.raises(FencedError, match="the journal was not written: this daemon has lost its lease"):
            await author.commit((say.note("two"), [say.step()]))
        with pytest.raises(FencedError):
            await old.delete("s_1")
        old.keep_partial("s_1", PartialText("r_1", 1, "Hello"))
        with pytest.raises(FencedError):
            await author_of(old, "s_new").commit((say.note("one"),))

        assert await new.row("s_1") == stored
        assert [record.text for record in await new.records("s_1", 1)] == ["one"]
        assert await new.partial("s_1") is None
        assert await new.row("s_new") is None
    finally:
        await new.close()


async def test_a_daemon_that_is_stopped_in_the_middle_of_a_commit_does_not_keep_another_from_taking_over(
    two, author_of, say, monkeypatch, opened
):
    old, url = two
    monkeypatch.setattr(schema, "IDLE_S", 1)
    with schema.connect(url) as stopped:
        stopped.execute("BEGIN")
        stopped.execute("SELECT FROM daemons FOR KEY SHARE")
        stopped.execute("INSERT INTO settings VALUES ('late', '')")
        new = await opened(url)
        with pytest.raises(psycopg.Error, match="idle-in-transaction"):
            stopped.execute("COMMIT")
        stopped.close()
    assert await new.settings.get("late") is None
    await author_of(new).commit((say.note("one"),))
    with pytest.raises(FencedError):
        await author_of(old, "s_2").commit((say.note("two"),))
    await new.close()


async def test_a_refused_commit_does_not_affect_the_others_of_its_transaction(two, opened, author_of, say):
    journal, _ = two
    author, other = author_of(journal), author_of(journal, "s_2")
    author.seal(say.note("lost"))
    ends = [author.commit((say.note("a"),)), other.commit((say.note("b"),)), author.commit((say.note("c"),))]
    for refused in (ends[0], ends[2]):
        with pytest.raises(StorageError, match="does not follow"):
            await refused
    await ends[1]
    assert [record.text for record in await journal.records("s_2", 1)] == ["b"]


async def test_what_the_database_cannot_store_fails_alone(two, opened, author_of, say):
    journal, _ = two
    ends = [author_of(journal, f"s_{n}").commit((say.note("x"),), name="\0" if n == 1 else "name") for n in range(3)]
    with pytest.raises(StorageError, match=r"could not be written: .*NUL"):
        await ends[1]
    await ends[0]
    await ends[2]


async def test_cursors_are_valid_in_each_daemon_of_the_database(two, opened, author_of, say):
    old, url = two
    author = author_of(old)
    await author.commit((say.note("one"), [say.step(), say.step()]))
    new = await opened(url)
    try:
        await new.ownership.take("s_1")
        author.journal = new
        await author.commit((say.note("two"), [say.step()]))
        assert new.epoch == old.epoch
        assert await new.history.holds_to("s_1", old.epoch) > 3
        assert await new.history.holds_to("s_1", "another.1") is None
    finally:
        await new.close()


async def test_a_schema_of_a_newer_program_is_refused_and_not_changed(two, opened):
    _, url = two
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
        connection.execute("UPDATE meta SET value = '7.0' WHERE key = 'version'")
        with pytest.raises(StorageError, match=r"written by zotd 7.0 \(schema 99\)"):
            await opened(url)
        assert connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone() == ("1",)


async def test_a_database_that_cannot_be_reached_is_named_without_its_password(opened):
    with pytest.raises(StorageError, match="the journal postgresql:///none cannot be opened") as failure:
        await opened("postgresql://zot:secret@/none?host=/nowhere")
    assert "secret" not in str(failure.value)


async def test_a_read_only_database_refuses_what_cannot_be_stored(two, opened, author_of, say):
    journal, url = two
    await author_of(journal).commit((say.note("one"),))
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(StorageError, match="read-only"):
        await opened(url)
