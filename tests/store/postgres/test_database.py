"""The size of the journal on PostgreSQL, and what a deletion leaves."""

import psycopg
import pytest

from zotd.store.opening import open_journal
from zotd.store.postgres import database

TEXT = "x" * 10_000
TIMES = 20


@pytest.fixture
async def journal(postgres_server, tmp_path):
    opened = await open_journal(tmp_path, postgres_server.database())
    yield opened
    await opened.close()


async def test_the_used_size_shrinks_with_a_deletion_although_the_tables_do_not(journal, author_of, say):
    """Retention would otherwise delete one session after the other."""
    empty = await journal.database.used_bytes()
    for session in ("s_1", "s_2"):
        author = author_of(journal, session)
        for _ in range(TIMES):
            await author.commit((say.note(TEXT), [say.said(TEXT)]))
    full = await journal.database.used_bytes()
    assert full - empty > 2 * TIMES * 2 * len(TEXT)
    await journal.delete("s_1")
    half = await journal.database.used_bytes()
    assert full - half == half - empty
    await journal.delete("s_2")
    assert await journal.database.used_bytes() == empty


async def test_compacting_tells_the_size_of_the_tables_and_keeps_what_is_stored(journal, author_of, say):
    author = author_of(journal)
    await author.commit((say.note(TEXT), [say.step()]))
    before, after = await journal.database.compact()
    assert before > 0
    assert after > 0
    assert await journal.row("s_1") == author.row


async def test_compacting_may_take_longer_than_any_read(journal, monkeypatch):
    monkeypatch.setattr(database, "READ_S", 0.2)
    monkeypatch.setattr(database, "_vacuum", lambda connection: connection.execute("SELECT pg_sleep(1)"))
    assert await journal.database.compact() != (0, 0)


async def test_nothing_of_a_deleted_session_is_left_in_any_table(postgres_server, tmp_path, author_of, say):
    url = postgres_server.database()
    journal = await open_journal(tmp_path, url)
    await author_of(journal).commit((say.note(TEXT), [say.said("red")]))
    await journal.delete("s_1")
    await journal.close()
    with psycopg.connect(url) as connection:
        tables = ("sessions", "records", "texts", "partials", "sums", "generations", "forks", "imports", "timers")
        left = [connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in tables]
    assert left == [(0,)] * len(tables)
