"""Backups of a database that is being written to, and restoring them."""

import os
import sqlite3
import stat
from contextlib import closing

import pytest

from tests.store import older
from zotd.core.ports import StorageError
from zotd.store.archive import Archive
from zotd.store.backup import backup, restore
from zotd.store.errors import NewerSchemaError
from zotd.store.home import LOCK, HeldError, held
from zotd.store.journal import SqliteJournal
from zotd.store.verification import verify


def content(folder):
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def saved(tmp_path):
    """Directory for backups, empty at first."""
    folder = tmp_path / "saved"
    folder.mkdir()
    return folder / "copy.db"


async def test_a_backup_is_one_private_file_with_the_committed_data(tmp_path, saved, journal, author_of, say):
    author = author_of(journal)
    await author.commit((say.note("a"), [say.said("in the copy")]))
    size = backup(tmp_path / "zot.db", saved)
    await author.commit((say.note("b"), [say.said("later")]))

    assert content(saved.parent) == {"copy.db"}
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert saved.stat().st_size == size
    report = verify(saved)
    assert (report.sessions, report.records, report.problems) == (1, 1, [])
    assert content(saved.parent) == {"copy.db"}


async def test_a_backup_does_not_delay_commits_and_is_consistent(tmp_path, saved, journal, author_of, say):
    author = author_of(journal)
    for turn in range(10):
        ends = [author.commit((say.note("n" * 2_000), [say.said("x" * 2_000)])) for _ in range(20)]
        backup(tmp_path / "zot.db", saved, force=True)
        report = verify(saved)
        assert report.problems == []
        assert report.records >= turn * 20
        for end in ends:
            await end


async def test_an_existing_file_is_replaced_only_with_force(tmp_path, saved, journal):
    saved.write_text("precious")
    with pytest.raises(StorageError, match=r"copy\.db exists; .*--force"):
        backup(tmp_path / "zot.db", saved)
    assert saved.read_text() == "precious"
    backup(tmp_path / "zot.db", saved, force=True)
    assert verify(saved).problems == []


async def test_a_failed_backup_is_one_sentence_and_leaves_no_file(tmp_path, saved, journal):
    with pytest.raises(StorageError, match=r"none\.db cannot be read: unable to open"):
        backup(tmp_path / "none.db", saved)
    with pytest.raises(StorageError, match=r"could not be copied to .*No such file or directory"):
        backup(tmp_path / "zot.db", tmp_path / "none" / "copy.db")
    other = tmp_path / "other.db"
    other.write_text("no database" * 1000)
    with pytest.raises(StorageError, match="file is not a database"):
        backup(other, saved)
    assert content(saved.parent) == set()
    assert content(tmp_path) >= {"other.db", "zot.db"}
    assert "none.db" not in content(tmp_path)


async def test_a_restored_backup_has_the_same_data_and_a_new_epoch(tmp_path, saved, author_of, say):
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    author = author_of(journal)
    await author.commit((say.note("a"), [say.said("first word")]))
    row = author.row
    backup(path, saved)
    await author.commit((say.note("b"), [say.said("second word")]))
    await journal.close()

    aside = restore(saved, path)

    restored = await SqliteJournal.open(path)
    assert restored.epoch != journal.epoch
    assert await restored.row("s_1") == row
    assert [hit.seq for hit in (await Archive(restored.database).search("word")).hits] == [1]
    await restored.close()
    assert aside is not None
    assert verify(aside).records == 2
    assert verify(saved).records == 1


async def test_restore_keeps_a_leftover_log_with_its_own_database(tmp_path, saved, journal, author_of, say):
    path, home = tmp_path / "zot.db", tmp_path / "home"
    backup(path, saved)
    await author_of(journal).commit((say.note("only in the log"),))
    home.mkdir()
    for name in ("zot.db", "zot.db-wal"):
        (home / name).write_bytes((tmp_path / name).read_bytes())

    aside = restore(saved, home / "zot.db")
    assert aside is not None
    assert (verify(home / "zot.db").records, verify(aside).records) == (0, 1)


def test_restore_replaces_a_damaged_database_and_keeps_it(tmp_path, saved):
    older.version_1(saved)
    path = tmp_path / "zot.db"
    path.write_text("damaged" * 1000)
    path.with_name("zot.db-wal").write_text("its log")
    aside = restore(saved, path)
    assert aside is not None
    assert aside.read_text().startswith("damaged")
    assert aside.with_name(f"{aside.name}-wal").read_text() == "its log"
    assert not path.with_name("zot.db-wal").exists()
    assert verify(path).records == 3


def test_restore_works_without_an_existing_database(tmp_path, saved):
    older.version_1(saved)
    assert restore(saved, tmp_path / "zot.db") is None
    assert verify(tmp_path / "zot.db").records == 3


def test_restore_refuses_a_home_that_a_daemon_uses(tmp_path, saved):
    older.version_1(saved)
    with held(tmp_path), pytest.raises(HeldError, match=f"already running with pid {os.getpid()} in {tmp_path}"):
        restore(saved, tmp_path / "zot.db")
    assert content(tmp_path) == {"saved", LOCK}
    assert restore(saved, tmp_path / "zot.db") is None


def test_restore_refuses_a_backup_of_a_newer_program(tmp_path, saved):
    older.version_1(saved)
    with closing(sqlite3.connect(saved)) as connection:
        connection.execute("PRAGMA user_version = 99")
    (tmp_path / "zot.db").write_text("as it is")
    with pytest.raises(NewerSchemaError, match=r"written by zotd 0\.1\.0 \(schema 99\)"):
        restore(saved, tmp_path / "zot.db")
    assert (tmp_path / "zot.db").read_text() == "as it is"
    assert content(tmp_path) == {"saved", "zot.db", LOCK}
