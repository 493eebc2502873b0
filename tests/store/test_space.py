"""Deleted data is gone from every file, and its space is returned."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.store import older
from zotd.store.archive import Archive
from zotd.store.database import in_sqlite
from zotd.store.journal import SqliteJournal
from zotd.store.space import FREE_KEPT_PAGES, LOG_KEPT_BYTES, Space, size_bytes

SECRET = "xylophonequartz"


async def filled(journal, author_of, say, session="s_1", times=200, text=SECRET):
    author = author_of(journal, session)
    for n in range(times):
        author.commit((say.note(f"{text} {n}"), [say.said(f"{text} {n} " + "filler " * 200)]))
    await author.commit((say.note("end"), []), durable=True)
    return author


def files(path):
    return {file.name: file.read_bytes() for file in path.parent.iterdir() if file.name.startswith("zot.db")}


def log_bytes(path):
    return Path(f"{path}-wal").stat().st_size


async def test_a_deleted_sessions_text_is_in_no_file(tmp_path, author_of, say):
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    await filled(journal, author_of, say)
    assert (await Archive(journal.database).search(SECRET)).hits
    await journal.delete("s_1")
    await journal.database.compact()
    assert not [name for name, data in files(path).items() if SECRET.encode() in data and name != "zot.db-shm"]
    assert (await Archive(journal.database).search(SECRET)).hits == []
    await journal.close()


async def test_a_deleted_sessions_text_is_not_in_the_log_of_an_open_journal(tmp_path, author_of, say):
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    await filled(journal, author_of, say)
    await journal.delete("s_1")
    assert log_bytes(path) == 0
    assert SECRET.encode() not in files(path)[path.name]
    await journal.close()


async def test_compacting_returns_the_space_of_deleted_sessions(tmp_path, author_of, say):
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    await filled(journal, author_of, say, times=2000)
    kept = await filled(journal, author_of, say, "s_2", times=5)
    full = await journal.database.read(in_sqlite(size_bytes))
    await journal.delete("s_1")
    _, after = await journal.database.compact()
    assert len(files(path)[path.name]) == after < full / 10
    assert len(await journal.records("s_2", 1)) == len(kept.entries)
    await journal.close()


async def test_an_older_database_can_return_space_after_its_first_compaction(tmp_path):
    path = tmp_path / "zot.db"
    older.version_4(path)
    journal = await SqliteJournal.open(path)
    mode = "PRAGMA auto_vacuum"
    assert await journal.database.read(lambda connection: connection.execute(mode).fetchone()) == (0,)
    await journal.database.compact()
    assert [row.id for row in (await journal.list())[0]] == ["s_old"]
    await journal.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(mode).fetchone() == (2,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_commits_during_a_compaction_are_written_after_it(journal, author_of, say):
    author = await filled(journal, author_of, say, times=50)
    compacting = journal.database.compact()
    commits = [author.commit((say.note(str(n)), [])) for n in range(20)]
    await compacting
    for commit in commits:
        await commit
    assert len(await journal.records("s_1", 1)) == len(author.entries)


async def test_a_long_log_is_truncated_after_its_reader_has_finished(tmp_path, author_of, say):
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM records").fetchone()
        await filled(journal, author_of, say, times=4000)
        assert log_bytes(path) > LOG_KEPT_BYTES
        await journal.delete("s_1")  # must not wait for the reader
        assert log_bytes(path) > LOG_KEPT_BYTES
    await filled(journal, author_of, say, "s_2", times=1)
    await journal.delete("s_2")
    assert log_bytes(path) == 0
    await journal.close()


async def test_free_pages_are_returned_in_slices_while_idle(tmp_path, author_of, say):
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    await filled(journal, author_of, say, times=4000)
    await journal.delete("s_1")
    space = Space(path)
    free = "PRAGMA freelist_count"
    await journal.database.perform(in_sqlite(space.keep_up))
    (before,) = await journal.database.read(lambda connection: connection.execute(free).fetchone())
    while before > FREE_KEPT_PAGES:
        await journal.database.perform(in_sqlite(space.keep_up))
        (after,) = await journal.database.read(lambda connection: connection.execute(free).fetchone())
        assert after < before
        before = after
    await journal.close()
