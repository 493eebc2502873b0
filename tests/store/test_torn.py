"""Incomplete databases: the usable part is used and the loss reported, or the database is refused and left unchanged."""

import shutil
import sqlite3

import pytest

from zotd.core import records
from zotd.core.ports import StorageError
from zotd.store import backup
from zotd.store.errors import UnreadableSessionError
from zotd.store.journal import SqliteJournal
from zotd.store.verification import verify

PAGE = 4096
SESSIONS = [f"s_{n:02}" for n in range(30)]


@pytest.fixture
async def torn(tmp_path, author_of, say):
    """The files of a killed daemon: a database with two commits, and a log with two more."""
    live = tmp_path / "live" / "zot.db"
    live.parent.mkdir()
    journal = await SqliteJournal.open(live)
    author = author_of(journal)
    await author.commit((say.note("0"), [say.said("zero")]))
    with sqlite3.connect(live, isolation_level=None) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    for n in range(1, 5):
        await author.commit((say.note(str(n)), [say.said(str(n))]), durable=True)
    killed = tmp_path / "zot.db"
    for part in ("", "-wal", "-shm"):
        shutil.copy(f"{live}{part}", f"{killed}{part}")
    await journal.close()
    return killed


def beside(path, part):
    return path.with_name(path.name + part)


async def texts_of(journal):
    return [record.text for record in await journal.records("s_1", 1) if isinstance(record, records.Note)]


async def test_commits_before_a_truncation_of_the_log_are_complete(torn):
    log = beside(torn, "-wal").read_bytes()
    database = torn.read_bytes()
    found = set()
    for size in (*range(0, len(log), 1500), len(log)):
        torn.write_bytes(database)
        beside(torn, "-wal").write_bytes(log[:size])
        beside(torn, "-shm").unlink(missing_ok=True)
        journal = await SqliteJournal.open(torn)
        texts = await texts_of(journal)
        row = await journal.row("s_1")
        reached, _ = await journal.events_after("s_1", 0, 10**9)
        await journal.close()
        assert texts == [str(n) for n in range(len(texts))]
        assert row is not None
        assert (row.records, row.seq, reached) == (len(texts),) * 3
        found.add(len(texts))
    assert found == {1, 2, 3, 4, 5}


async def test_commits_before_a_flipped_byte_of_the_log_are_kept(torn):
    log = bytearray(beside(torn, "-wal").read_bytes())
    log[len(log) // 2] ^= 0xFF
    beside(torn, "-wal").write_bytes(log)
    journal = await SqliteJournal.open(torn)
    texts = await texts_of(journal)
    assert texts == ["0", "1", "2"][: len(texts)]
    await journal.close()


def all_bytes(path):
    return {file.name: file.read_bytes() for file in path.parent.glob("zot.db*")}


def without_its_log(path):
    beside(path, "-wal").unlink()


def cut_to_nothing(path):
    path.write_bytes(b"")


def without_its_database(path):
    path.unlink()


def with_a_damaged_head(path):
    content = path.read_bytes()
    path.write_bytes(b"\0" * 100 + content[100:])
    beside(path, "-wal").unlink()  # it contains an intact copy of that page
    beside(path, "-shm").unlink()


@pytest.mark.parametrize(
    ("tear", "sentence"),
    [
        (without_its_log, r"was not closed, and .*zot\.db-wal with its newest commits is missing"),
        (cut_to_nothing, r"zot\.db is empty"),
        (without_its_database, r"zot\.db is missing, but its log .*zot\.db-wal exists"),
        (with_a_damaged_head, r"zot\.db cannot be read: file is not a database"),
    ],
)
async def test_an_incomplete_database_is_refused_and_left_unchanged(torn, tear, sentence):
    tear(torn)
    before = all_bytes(torn)
    with pytest.raises(StorageError, match=sentence):
        await SqliteJournal.open(torn)
    assert all_bytes(torn) == before


async def test_continuing_without_a_lost_log_invalidates_the_cursors(torn):
    journal = await SqliteJournal.open(torn.parent / "live" / "zot.db")
    epoch = journal.epoch
    await journal.close()
    without_its_log(torn)
    backup.restore(torn, torn)
    journal = await SqliteJournal.open(torn)
    assert await texts_of(journal) == ["0"]
    assert journal.epoch != epoch
    await journal.close()


async def test_a_database_of_another_program_is_refused_and_left_unchanged(tmp_path):
    path = tmp_path / "zot.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE recipes (name)")
    other.close()
    before = all_bytes(path)
    with pytest.raises(StorageError, match=r"zot\.db is not a journal of zotd"):
        await SqliteJournal.open(path)
    assert all_bytes(path) == before


async def test_a_start_that_was_killed_while_creating_the_database_leaves_none(tmp_path):
    path = tmp_path / "zot.db"
    for part in ("", "-wal", "-shm"):
        tmp_path.joinpath(f".zot.db.new{part}").write_bytes(b"half")
    journal = await SqliteJournal.open(path)
    await journal.close()
    assert [file.name for file in tmp_path.iterdir()] == ["zot.db"]


# --- damaged pages ---


@pytest.fixture
async def crowded(tmp_path, author_of, say):
    """A closed database with so many sessions that their rows are on several pages."""
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    for session in SESSIONS:
        author = author_of(journal, session, name=f"name of {session}", updated=session)
        await author.commit((say.note("a"), [say.said("red")]))
    await journal.close()
    return path


def damage_page_with(path, words, *, not_with):
    """Damage the leaf of a table that contains `words`."""
    content = bytearray(path.read_bytes())
    leaf = 0x0D
    for start in range(PAGE, len(content), PAGE):
        page = content[start : start + PAGE]
        if page[0] == leaf and words in page and not_with not in page:
            content[start] = 0x77
            path.write_bytes(content)
            return
    raise AssertionError("no such page")


async def test_sessions_on_a_damaged_page_are_listed_as_blocked(crowded, author_of, say):
    damage_page_with(crowded, b"name of s_00", not_with=b'"kind"')
    journal = await SqliteJournal.open(crowded)
    rows, before = [], None
    while True:
        page, before = await journal.list(before=before, limit=7)
        rows += page
        if before is None:
            break
    assert sorted(row.id for row in rows) == SESSIONS
    lost = [row.id for row in rows if row.state == "blocked"]
    assert 0 < len(lost) < len(SESSIONS)
    assert [row.id for row in rows] == sorted(set(SESSIONS) - set(lost), reverse=True) + lost
    assert [row.id for row in (await journal.list(state="blocked"))[0]] == lost
    assert [row.id for row in await journal.find("s_00")] == ["s_00"]
    assert [row.id for row in await journal.find("name of s_29")] == ["s_29"]
    with pytest.raises(UnreadableSessionError, match=r"session s_00 cannot be read .*malformed"):
        await journal.row("s_00")
    assert journal.damage("s_00") is not None

    sound = author_of(journal, "s_29")
    sound.row = await journal.row("s_29")
    await sound.commit((say.note("goes on"),), durable=True)
    assert len(await journal.records("s_29", 1)) == 2
    await journal.close()


async def test_a_session_becomes_read_only_if_a_commit_meets_a_damaged_page(crowded, author_of, say):
    journal = await SqliteJournal.open(crowded)
    writing = author_of(journal, "s_00")
    writing.row = await journal.row("s_00")
    await journal.close()
    damage_page_with(crowded, b"name of s_00", not_with=b'"kind"')
    writing.journal = journal = await SqliteJournal.open(crowded)
    with pytest.raises(StorageError, match="malformed"):
        await writing.commit((say.note("refused"),), durable=True)
    assert str(journal.damage("s_00")) == (
        "the position of the next record of session s_00 cannot be read (database disk image is malformed): "
        "the session is read-only"
    )
    assert journal.damage("s_29") is None
    await journal.close()


def test_session_ids_are_read_from_the_index_alone(crowded):
    with sqlite3.connect(crowded) as connection:
        plan = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN SELECT id FROM sessions ORDER BY id")]
    connection.close()
    assert len(plan) == 1
    assert "COVERING INDEX" in plan[0]


async def test_verify_and_the_next_start_report_commits_lost_with_the_log(torn):
    log = beside(torn, "-wal").read_bytes()
    index = beside(torn, "-shm").read_bytes()
    database = torn.read_bytes()
    flipped = bytearray(log)
    flipped[len(log) // 2] ^= 1
    for found in (log[: len(log) // 2], bytes(flipped), b"", b"x" * len(log)):
        torn.write_bytes(database)
        beside(torn, "-wal").write_bytes(found)
        beside(torn, "-shm").write_bytes(index)
        assert any("of the last commits are lost" in problem for problem in verify(torn).problems)
        torn.write_bytes(database)
        beside(torn, "-wal").write_bytes(found)
        beside(torn, "-shm").write_bytes(index)
        journal = await SqliteJournal.open(torn)
        (warning,) = journal.database.warnings
        assert "of the last commits are lost" in warning
        await journal.close()


async def test_an_intact_log_reports_no_loss(torn):
    assert verify(torn).problems == []
    journal = await SqliteJournal.open(torn)
    assert journal.database.warnings == []
    await journal.close()


async def test_verify_refuses_the_databases_that_the_daemon_refuses(torn):
    beside(torn, "-wal").unlink()
    with pytest.raises(StorageError, match="newest commits is missing"):
        verify(torn)
