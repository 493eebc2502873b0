"""The journal in SQLite: files, session index, damage, full disk."""

import resource
import sqlite3
import stat
from contextlib import closing, contextmanager

import pytest

from zotd.core.ports import StorageError
from zotd.core.records import VERSION
from zotd.store import queries
from zotd.store.errors import NewerSchemaError, UnreadableRecordError, UnreadableSessionError
from zotd.store.journal import SqliteJournal
from zotd.store.queries import MAX_SEQ
from zotd.wire.version import VERSION as PROGRAM


def edit(path, *statements):
    """Change the database through a connection of its own."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@contextmanager
def no_file_may_grow_over(size_bytes):
    """Limits the size of files, so that writes fail as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# --- the file ---


async def test_a_restart_keeps_all_commits_and_cursors(tmp_path, author_of, say):
    path = tmp_path / "zot.db"
    first = await SqliteJournal.open(path)
    author = author_of(first)
    await author.commit((say.note("kept"), [say.said("hello")]))
    await first.settings.set("model", "m")
    await first.close()

    second = await SqliteJournal.open(path)
    assert await second.history.holds_to("s_1", first.epoch) == MAX_SEQ
    assert await second.row("s_1") == author.row
    assert await second.records("s_1", 1) == [author.entries[0].record]
    assert await second.messages_before("s_1", None, 9) == author.lines()
    assert await second.settings.get("model") == "m"
    await second.close()


async def test_only_the_user_can_read_the_files(tmp_path, author_of, say):
    journal = await SqliteJournal.open(tmp_path / "zot.db")
    await author_of(journal).commit((say.note("x"),))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {"zot.db": 0o600, "zot.db-wal": 0o600, "zot.db-shm": 0o600}
    await journal.close()


async def test_open_permissions_of_existing_files_are_removed(tmp_path):
    path = tmp_path / "zot.db"
    await (await SqliteJournal.open(path)).close()
    path.chmod(0o644)
    journal = await SqliteJournal.open(path)
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    await journal.close()


async def test_a_database_of_a_newer_program_is_refused_and_not_touched(tmp_path):
    path = tmp_path / "zot.db"
    await (await SqliteJournal.open(path)).close()
    edit(path, "PRAGMA user_version = 99", "UPDATE meta SET value = '9.1.0' WHERE key = 'version'")
    before = path.read_bytes()

    with pytest.raises(NewerSchemaError, match=rf"zotd 9\.1\.0 \(schema 99\), and this is zotd {PROGRAM}"):
        await SqliteJournal.open(path)
    assert path.read_bytes() == before


async def test_the_version_of_the_last_writer_is_stored(tmp_path):
    path = tmp_path / "zot.db"
    await (await SqliteJournal.open(path)).close()
    edit(path, "UPDATE meta SET value = '0.0.1' WHERE key = 'version'")
    await (await SqliteJournal.open(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone() == (PROGRAM,)


async def test_a_file_that_is_no_database_is_refused_with_its_path(tmp_path):
    path = tmp_path / "zot.db"
    path.write_text("precious notes" * 100)
    with pytest.raises(StorageError, match=r"zot\.db cannot be read: file is not a database"):
        await SqliteJournal.open(path)
    assert path.read_text().startswith("precious notes")


async def test_a_missing_directory_is_an_error_with_its_path(tmp_path):
    with pytest.raises(StorageError, match=r"none/zot\.db cannot be opened"):
        await SqliteJournal.open(tmp_path / "none" / "zot.db")


async def test_a_closed_journal_reports_that_and_can_be_closed_again(tmp_path, author_of, say):
    journal = await SqliteJournal.open(tmp_path / "zot.db")
    await journal.close()
    await journal.close()
    with pytest.raises(StorageError, match="closed"):
        await journal.records("s_1", 1)
    with pytest.raises(StorageError, match="closed"):
        await author_of(journal).commit((say.note("x"),))


# --- the index ---


async def test_sessions_are_listed_newest_first_in_pages(journal, author_of, say):
    times = ["03", "01", "03", "02", "05"]
    for n, time in enumerate(times):
        await author_of(journal, f"s_{n}", updated=time).commit((say.note("x"),))
    pages, before = [], None
    while True:
        rows, before = await journal.list(before=before, limit=2)
        pages.append([row.id for row in rows])
        if before is None:
            break
    assert pages == [["s_4", "s_2"], ["s_0", "s_3"], ["s_1"]]


async def test_a_full_last_page_has_no_cursor(journal, author_of, say):
    await author_of(journal).commit((say.note("x"),))
    rows, before = await journal.list(limit=1)
    assert (len(rows), before) == (1, None)


async def test_the_list_is_filtered_by_directory_and_state(journal, author_of, say):
    await author_of(journal, "s_1", cwd="/a", state="busy").commit((say.note("x"),))
    await author_of(journal, "s_2", cwd="/a").commit((say.note("x"),))
    await author_of(journal, "s_3", cwd="/b").commit((say.note("x"),))
    ids = lambda page: sorted(row.id for row in page[0])  # noqa: E731

    assert ids(await journal.list(cwd="/a")) == ["s_1", "s_2"]
    assert ids(await journal.list(cwd="/a", state="busy")) == ["s_1"]
    assert ids(await journal.list(state="idle")) == ["s_2", "s_3"]


async def test_a_session_is_found_by_id_by_id_prefix_and_by_name(journal, author_of, say):
    await author_of(journal, "s_01AB", name="red", updated="1").commit((say.note("x"),))
    await author_of(journal, "s_01AC", name="red", updated="2").commit((say.note("x"),))
    await author_of(journal, "s_02", name="s_01AB").commit((say.note("x"),))

    async def found(text):
        return [row.id for row in await journal.find(text)]

    assert await found("s_01AB") == ["s_01AB"]
    assert await found("s_01") == ["s_01AC", "s_01AB"]
    assert await found("red") == ["s_01AC", "s_01AB"]
    assert await found("re") == []
    assert await found("") == []
    assert await found("%") == []


async def test_a_setting_can_be_replaced_and_an_unknown_one_is_none(journal):
    await journal.settings.set("model", "a")
    await journal.settings.set("model", "b")
    assert await journal.settings.get("model") == "b"
    assert await journal.settings.get("other") is None


@pytest.mark.parametrize("query", [queries.RECORDS, queries.EVENTS_AFTER, queries.MESSAGES_BEFORE])
@pytest.mark.usefixtures("journal")
async def test_pages_of_a_long_session_are_found_by_an_index_without_sorting(tmp_path, query):
    wanted = {"session": "s_1", "start": 1, "seq": 9, "low": 1, "high": 9}
    with closing(sqlite3.connect(tmp_path / "zot.db")) as connection:
        plan = " | ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", wanted))
    by_number = "SEARCH records USING INDEX records_number (session=? AND number>?)"
    by_seq = "SEARCH records USING INDEX records_seq (session=? AND first_seq>?"
    assert (by_number if query is queries.RECORDS else by_seq) in plan
    assert "SCAN records" not in plan
    assert "TEMP B-TREE" not in plan


# --- damage ---


async def test_a_record_of_a_newer_kind_affects_only_its_session(tmp_path, journal, author_of, say):
    for session in ("s_1", "s_2"):
        await author_of(journal, session).commit((say.note("a"),), (say.note("b"), [say.said("b")]))
    edit(
        tmp_path / "zot.db",
        """UPDATE records SET kind = 'telepathy', body = '{"kind":"telepathy","time":""}'
        WHERE number = 2 AND session = (SELECT key FROM sessions WHERE id = 's_1')""",
    )
    with pytest.raises(UnreadableRecordError, match=r"record 2 of session s_1 .* newer version .*telepathy") as caught:
        await journal.records("s_1", 1)
    assert (caught.value.session, caught.value.number) == ("s_1", 2)
    assert len(await journal.messages_before("s_1", None, 5)) == 1
    assert len(await journal.records("s_2", 1)) == 2


@pytest.mark.parametrize(
    ("damage", "number", "reason"),
    [
        (f"UPDATE records SET v = {VERSION + 1} WHERE number = 2", 2, "newer version"),
        ('UPDATE records SET body = \'{"kind":"note"}\' WHERE number = 3', 3, "missing required field"),
        ("UPDATE records SET body = x'7b22' WHERE number = 1", 1, "truncated"),
        ("UPDATE records SET body = replace(body, '\"text\":\"b\"', '\"text\":\"' || x'ff' || '\"')", 2, "utf"),
        ("UPDATE records SET kind = x'ff' || '' WHERE number = 1", 1, "utf"),
        ("DELETE FROM records WHERE number = 2", 2, "missing"),
    ],
)
async def test_a_damaged_record_is_reported_by_its_number(tmp_path, journal, author_of, say, damage, number, reason):
    await author_of(journal).commit((say.note("a"),), (say.note("b"),), (say.note("c"),))
    edit(tmp_path / "zot.db", damage)
    with pytest.raises(UnreadableRecordError, match=f"record {number} of session s_1 cannot be read .*(?i:{reason})"):
        await journal.records("s_1", 1)


async def test_a_damaged_page_is_reported_by_the_record_on_it(tmp_path, author_of, say):
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    await author_of(journal).commit((say.note("small"),), (say.note("X" * 20_000),), (say.note("small"),))
    await author_of(journal, "s_2").commit((say.note("fine"),))
    await journal.close()
    content = bytearray(path.read_bytes())
    middle = content.index(b"X" * 4000)  # a page of text only: one in the chain of the second record's body
    page = middle // 4096 * 4096
    content[page : page + 4] = b"\xff\xff\xff\xff"  # where the chain goes on
    path.write_bytes(content)

    journal = await SqliteJournal.open(path)
    with pytest.raises(UnreadableRecordError, match=r"record [12] .*malformed"):
        await journal.records("s_1", 1)
    assert journal.damage("s_1") is not None
    assert len(await journal.records("s_1", 3)) == 1
    assert len(await journal.records("s_2", 1)) == 1
    await journal.close()


async def test_a_stored_traceback_does_not_pin_later_reads_to_an_old_snapshot(tmp_path, journal, author_of, say):
    await author_of(journal, "s_1").commit(*[(say.note("a" * 5000),) for _ in range(10)])
    edit(tmp_path / "zot.db", "UPDATE records SET v = 99 WHERE number = 2")
    with pytest.raises(UnreadableRecordError) as kept:
        await journal.records("s_1", 1)
    await author_of(journal, "s_2").commit((say.note("later"),))
    assert len(await journal.records("s_2", 1)) == 1
    assert kept.value.number == 2


async def test_a_damaged_index_row_is_an_error_and_listed_as_blocked(tmp_path, journal, author_of, say):
    for session in ("s_1", "s_2"):
        await author_of(journal, session, name=f"name of {session}").commit((say.note("a"), [say.said("x")]))
    edit(tmp_path / "zot.db", "UPDATE sessions SET row = '{}' WHERE id = 's_1'")
    with pytest.raises(UnreadableSessionError, match="the index row of session s_1"):
        await journal.row("s_1")
    sound, damaged = (await journal.list())[0]
    assert (sound.id, sound.state) == ("s_2", "idle")
    assert (damaged.id, damaged.name, damaged.state) == ("s_1", "name of s_1", "blocked")
    assert (damaged.records, damaged.seq) == (1, 1)
    assert [await journal.find("s_1"), await journal.find("name of s_1")] == [[damaged], [damaged]]


async def test_damaged_events_are_an_error_and_mark_the_session_as_damaged(tmp_path, journal, author_of, say):
    await author_of(journal).commit((say.note("a"), [say.said("x")]))
    edit(tmp_path / "zot.db", "UPDATE records SET events = x'7b22'")
    assert journal.damage("s_1") is None
    with pytest.raises(UnreadableSessionError, match="part of session s_1 cannot be read") as caught:
        await journal.messages_before("s_1", None, 5)
    assert journal.damage("s_1") is caught.value
    with pytest.raises(UnreadableSessionError, match="an event is damaged"):
        await journal.events_after("s_1", 0, 1_000)
    assert journal.damage("s_2") is None
    await journal.delete("s_1")
    assert journal.damage("s_1") is None


# --- a full disk ---


async def test_a_full_disk_fails_only_the_commits_that_do_not_fit(tmp_path, journal, author_of, say):
    large, small = author_of(journal, "s_large"), author_of(journal, "s_small")
    await large.commit((say.note("first"),))
    await small.commit((say.note("first"),))
    stored = large.row
    with no_file_may_grow_over((tmp_path / "zot.db-wal").stat().st_size + 200_000):
        failing = large.commit((say.note("x" * 1_000_000),), durable=True)
        fitting = small.commit((say.note("second"),), durable=True)
        behind = large.commit((say.note("behind the failed one"),), durable=True)
        with pytest.raises(StorageError, match="could not be written"):
            await failing
        await fitting
        with pytest.raises(StorageError, match="a commit before it failed"):
            await behind

        assert await journal.row("s_large") == stored
        assert [record.text for record in await journal.records("s_small", 1)] == ["first", "second"]

    large.row = stored
    await large.commit((say.note("x" * 1_000_000),), durable=True)
    assert len(await journal.records("s_large", 1)) == 2
