"""Databases of earlier versions are migrated completely or not at all."""

import sqlite3
from contextlib import closing

import pytest

from tests.store import older
from zotd.core.ports import StorageError
from zotd.store.archive import Archive
from zotd.store.journal import SqliteJournal
from zotd.store.migrations import MIGRATIONS


def answer(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def shape(path):
    """Return the definitions of all tables and indexes."""
    return sorted(answer(path, "SELECT type, name, tbl_name, trim(sql, char(10)) FROM sqlite_master"))


def test_there_is_a_test_database_for_every_older_schema():
    assert list(older.BUILDERS) == list(range(1, len(MIGRATIONS)))


@pytest.mark.parametrize("version", older.BUILDERS)
async def test_a_migrated_database_keeps_its_data_and_supports_new_features(tmp_path, version):
    path = tmp_path / "zot.db"
    older.BUILDERS[version](path)
    journal = await SqliteJournal.open(path)
    archive = Archive(journal.database)

    assert journal.epoch == f"{older.EPOCH}.1"
    assert await journal.settings.get("last_used") == "p/m"
    (row,), _ = await journal.list()
    assert (row.id, row.records, row.seq) == ("s_old", 3, 2)
    assert len(await journal.records("s_old", 1)) == 3
    assert await journal.events_after("s_old", 0, 10_000) == (2, b"".join(events for _, events in older.RECORDS))
    assert [(hit.seq, hit.role) for hit in (await archive.search("old")).hits] == [(2, "assistant"), (1, "user")]
    assert [(sums.key, sums.input) for sums in await archive.usage()] == [("p/m", 7)]
    await journal.close()


@pytest.mark.parametrize("version", older.BUILDERS)
async def test_a_migrated_database_has_the_schema_of_a_new_one(tmp_path, version):
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    older.BUILDERS[version](old)
    for path in (old, new):
        await (await SqliteJournal.open(path)).close()
    assert shape(old) == shape(new)
    assert answer(old, "PRAGMA user_version") == [(len(MIGRATIONS),)]


async def test_a_failed_migration_leaves_the_database_unchanged(tmp_path):
    path = tmp_path / "zot.db"
    older.version_1(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE records_usage (in_the_way)")  # makes the last statement of the step fail
    before = shape(path)
    with pytest.raises(StorageError, match="records_usage"):
        await SqliteJournal.open(path)
    assert shape(path) == before
    assert answer(path, "PRAGMA user_version") == [(1,)]
    assert answer(path, "SELECT key FROM meta ORDER BY key") == [("epoch",), ("version",)]


async def test_a_damaged_page_does_not_prevent_a_migration(tmp_path):
    path = tmp_path / "zot.db"
    older.version_4(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        note = (b"x" * 500,)
        for number in range(4, 100):
            connection.execute(
                "INSERT INTO records (session, number, kind, v, time, body, first_seq, last_seq, events, messages)"
                f" VALUES (1, {number}, 'note', 1, 't', ?, 0, 0, x'', 0)",
                note,
            )
    ((root,),) = answer(path, "SELECT rootpage FROM sqlite_master WHERE name = 'records'")
    ((size,),) = answer(path, "PRAGMA page_size")
    with path.open("r+b") as file:
        file.seek(
            (root - 1) * size + 12
        )  # offset of the first cell in the root of the tree, which names the first leaf
        cell = int.from_bytes(file.read(2), "big")
        file.seek((root - 1) * size + cell)
        leaf = int.from_bytes(file.read(4), "big")
        file.seek((leaf - 1) * size)
        file.write(b"\xaa" * size)

    journal = await SqliteJournal.open(path)
    (row,), _ = await journal.list()
    assert row.id == "s_old"
    await journal.close()
    assert answer(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]


@pytest.mark.parametrize("version", older.BUILDERS)
async def test_a_migration_keeps_a_copy_that_the_older_program_can_open(tmp_path, version):
    path = tmp_path / "zot.db"
    older.BUILDERS[version](path)
    before = shape(path)
    earlier = tmp_path / "zot.db.before-v1"
    earlier.write_bytes(b"")
    await (await SqliteJournal.open(path)).close()
    kept = tmp_path / f"zot.db.before-v{len(MIGRATIONS)}"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert shape(kept) == before
    assert answer(kept, "PRAGMA user_version") == [(version,)]
    assert answer(kept, "SELECT count(*) FROM records") == [(3,)]
    assert not earlier.exists()
    assert not list(tmp_path.glob(".*"))


async def test_no_copy_is_made_without_a_migration(tmp_path):
    path = tmp_path / "zot.db"
    for _ in range(2):
        await (await SqliteJournal.open(path)).close()
    assert [file.name for file in tmp_path.iterdir()] == ["zot.db"]
