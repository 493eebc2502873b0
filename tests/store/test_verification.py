"""`zotctl verify`: faults are found and described, and the content is counted."""

import re
import sqlite3
from contextlib import closing

import pytest

from tests.store import older
from zotd.core.ports import StorageError
from zotd.core.records import VERSION
from zotd.store import search
from zotd.store.journal import SqliteJournal
from zotd.store.schema import read_at_rest
from zotd.store.verification import MAX_PROBLEMS, verify, verify_contents
from zotd.wire.version import VERSION as PROGRAM


@pytest.fixture
async def path(tmp_path, author_of, say):
    """A closed and indexed database with two sessions of three records each."""
    path = tmp_path / "zot.db"
    journal = await SqliteJournal.open(path)
    for session in ("s_1", "s_2"):
        await author_of(journal, session).commit(
            (say.note("a"), [say.said("red"), say.step()]), (say.note("b"),), (say.note("c"), [say.said("green")])
        )
    await journal.database.perform(search.advance)
    await journal.close()
    return path


def edit(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


async def test_verifying_an_intact_database_counts_its_content(path):
    report = verify(path)
    assert report.problems == []
    assert (report.sessions, report.records, report.messages) == (2, 6, 4)
    assert (report.version, report.size_bytes) == (PROGRAM, path.stat().st_size)


async def test_verifying_a_live_database_includes_its_log(tmp_path, journal, author_of, say):
    await author_of(journal).commit((say.note("a"), [say.said("red")]))
    before = (tmp_path / "zot.db").read_bytes()
    report = verify(tmp_path / "zot.db")
    assert (report.records, report.problems) == (1, [])
    assert (tmp_path / "zot.db").read_bytes() == before


async def test_verifying_a_closed_database_creates_no_files(path):
    before = path.read_bytes()
    assert verify(path).problems == []
    assert ([entry.name for entry in path.parent.iterdir()], path.read_bytes()) == (["zot.db"], before)


async def test_verification_includes_writes_of_a_daemon_that_starts_meanwhile(path, author_of, say):
    """Opened as immutable, the database would look unchanged, or torn."""
    starts = []

    def look(connection):
        starts.append(connection.execute("SELECT count(*) FROM records").fetchone())
        if len(starts) == 1:
            with closing(sqlite3.connect(path)) as daemon, daemon:
                daemon.execute("DELETE FROM records WHERE key = 1")
        return starts[-1]

    assert read_at_rest(path, look) == (5,)
    assert starts == [(6,), (5,)]


def test_an_older_schema_can_be_verified(tmp_path):
    older.version_1(tmp_path / "old.db")
    report = verify(tmp_path / "old.db")
    assert (report.schema, report.records, report.problems) == (1, 3, [])


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ("UPDATE records SET body = x'7b22' WHERE key = 2", "^record 2 of session s_1 cannot be read"),
        (f"UPDATE records SET v = {VERSION + 1} WHERE key = 5", "record 2 of session s_2 .* newer version"),
        ("DELETE FROM records WHERE key = 2", "record 2 of session s_1 .*missing"),
        ("DELETE FROM records WHERE key = 3", "session s_1 ends with record 2 and event 2, and its row differs"),
        ("UPDATE sessions SET row = '{}' WHERE key = 1", "^the index row of session s_1 cannot be read"),
        ("DELETE FROM sessions WHERE key = 2", "3 records belong to no session"),
        ("UPDATE records SET first_seq = 9 WHERE key = 3", "record 3 of session s_1 .*event numbers do not match"),
        (
            "UPDATE records SET events = replace(events, '\"seq\":3', '\"seq\":4') WHERE key = 3",
            "record 3 of session s_1 .*it has event 4 where 3 is expected",
        ),
        ("UPDATE records SET events = x'7b220a' WHERE key = 3", "record 3 of session s_1 .*event 3"),
        ("DELETE FROM texts WHERE rowid > 3 * 65536", "the search index does not match"),
        ("UPDATE texts_content SET c0 = 'blue' WHERE id = 65536", "the search index"),
        ("UPDATE texts_data SET block = x'00' WHERE id > 100", "the search index"),
    ],
)
async def test_damage_is_found_and_described(path, damage, sentence):
    edit(path, damage)
    problems = verify(path).problems
    assert problems
    assert re.search(sentence, "\n".join(problems)), problems


@pytest.mark.parametrize(
    "damage", ["UPDATE sums SET input = input + 1", "DELETE FROM sums", "UPDATE sums SET hour = '2026-11-21T19'"]
)
async def test_wrong_usage_sums_are_found(tmp_path, damage):
    path = tmp_path / "old.db"
    older.version_6(path)
    await (await SqliteJournal.open(path)).close()
    assert verify(path).problems == []
    edit(path, damage)
    assert verify(path).problems == ["session s_old: the sums of its usage do not match its records"]


async def test_damage_of_one_session_does_not_hide_the_others(path):
    edit(path, "UPDATE records SET body = x'7b22' WHERE key IN (2, 5)")
    report = verify(path)
    assert [problem[:23] for problem in report.problems] == ["record 2 of session s_1", "record 2 of session s_2"]
    assert report.sessions == 2


async def test_a_damaged_page_is_reported_and_the_rest_is_verified(path, author_of, say):
    journal = await SqliteJournal.open(path)
    await author_of(journal, "s_3").commit((say.note("X" * 20_000),))
    await journal.close()
    content = bytearray(path.read_bytes())
    page = content.index(b"X" * 4000) // 4096 * 4096
    content[page : page + 4] = b"\xff\xff\xff\xff"  # number of the next page in the chain
    path.write_bytes(content)

    report = verify(path)
    assert any("invalid page number" in problem for problem in report.problems)
    assert any(problem.startswith("session s_3: its records cannot all be read") for problem in report.problems)
    assert (report.sessions, report.records) == (3, 6)


async def test_the_number_of_reported_problems_is_limited(path):
    edit(
        path,
        *[
            "INSERT INTO sessions (id, name, cwd, state, updated, records, seq, row) "
            f"VALUES ('x{n}', '', '', '', '', 0, 0, '')"
            for n in range(2 * MAX_PROBLEMS)
        ],
    )
    assert len(verify(path).problems) == MAX_PROBLEMS


@pytest.mark.parametrize("content", [None, "", "no database" * 1000])
def test_a_missing_or_foreign_file_is_refused_and_not_created(tmp_path, content):
    path = tmp_path / "other.db"
    if content is not None:
        path.write_text(content)
    with pytest.raises(StorageError, match=r"other\.db"):
        verify(path)
    assert path.exists() == (content is not None)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sessions SET row = 5",
        "UPDATE sessions SET row = CAST(x'ff' AS TEXT)",
        "UPDATE records SET body = 5",
        "UPDATE records SET events = 7 WHERE messages > 0",
        "UPDATE records SET first_seq = 'x'",
        "UPDATE records SET v = x'01', kind = 3",
        "UPDATE meta SET value = x'ff' WHERE key = 'searchable'",
    ],
)
async def test_a_value_of_another_type_is_a_problem_and_never_a_traceback(path, change):
    edit(path, change)
    assert verify(path).problems


async def test_the_contents_of_each_database_can_be_checked(stored_journal, author_of, say):
    author = author_of(stored_journal)
    await author.commit((say.note("one"), [say.step()]))
    await author.commit((say.note("two"), [say.step()]))
    database = stored_journal.database
    assert (await database.read(verify_contents)).problems == []
    await database.perform(lambda connection: connection.execute("DELETE FROM records WHERE number = 2"))
    (problem,) = (await database.read(verify_contents)).problems
    assert problem == "session s_1 ends with record 1 and event 1, and its row differs"
