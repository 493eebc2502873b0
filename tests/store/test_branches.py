"""Forks: complete copies that are counted and found once, and invisible until they are complete."""

import msgspec
import pytest

from zotd.core.ports import JournalEntry, SessionRow, StorageError
from zotd.core.records import Note, Settings, UsageRow
from zotd.store import branches, staged
from zotd.store.archive import Archive
from zotd.store.batch import Batch
from zotd.store.journal import SqliteJournal
from zotd.store.staged import STATE, Share
from zotd.store.staging import staging
from zotd.store.verification import verify
from zotd.wire import events
from zotd.wire.base import encode
from zotd.wire.content import Tokens

IN_A_FILE = pytest.mark.parametrize("stored_journal", ["sqlite"], indirect=True)
"""For tests of damage, and of what SQLite does with a query."""


@pytest.fixture
def journal(stored_journal):
    return stored_journal


TIME = "2026-11-21T20:11:18.919Z"
EVERYTHING = 10**9


def row_of(session):
    return SessionRow(session, session, "/home", TIME, TIME, Settings(provider="p", model="m"), STATE)


async def fork(journal, session, share):
    """Create a session with the first records of another one."""
    async with staging(journal.database, row_of(session)) as made:
        await made.copy(share)
        await made.publish(msgspec.structs.replace(made.row, state="idle"), (), share=share)


async def commit(journal, row, entry):
    await journal.database.perform(Batch.of(row, [entry]).store)


async def delete(journal, session):
    """Delete a session, as a daemon does that has opened it."""
    await journal.ownership.take(session)
    await journal.delete(session)


async def sweep(journal):
    swept: list[bool] = []
    while not swept or swept[-1]:
        await journal.database.perform(lambda c: swept.append(staged.sweep(c, lambda _: {journal.database.maker})))


async def count(journal, table):
    return await journal.database.read(lambda c: c.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@pytest.fixture
async def origin(journal, author_of, say):
    """A session with three messages and a request with usage."""
    author = author_of(journal, "s_origin")
    took = UsageRow(time=TIME, run="r", step=1, provider="p", model="m", tokens=Tokens(7))
    await author.commit((say.note("a"), [say.said("red")]), (took,))
    await author.commit((say.note("b"), [say.step(), say.said("green")]))
    await author.commit((say.note("c"), [say.said("blue")]))
    return author


@pytest.fixture
def archive(journal):
    return Archive(journal.database)


async def sessions_with(archive, word):
    return [hit.session for hit in (await archive.search(word)).hits]


async def test_a_fork_has_the_same_records_and_its_own_events(journal, origin):
    await fork(journal, "s_fork", Share("s_origin", 3, 3))
    assert await journal.records("s_fork", 1) == (await journal.records("s_origin", 1))[:3]
    reached, data = await journal.events_after("s_fork", 0, EVERYTHING)
    shown = [events.DECODER.decode(line) for line in data.splitlines()]
    assert reached == 3
    assert [(event.session, event.seq) for event in shown] == [("s_fork", seq) for seq in (1, 2, 3)]
    assert len(await journal.messages_before("s_fork", None, 9)) == 2
    row = await journal.row("s_fork")
    assert (row.records, row.seq, row.state) == (3, 3, "idle")


async def test_a_copied_event_changes_only_its_session(journal, author_of, say):
    author = author_of(journal, "s_origin")
    about_itself = events.ToolCallEvent("c", "look", {"session": "s_origin", "seq": 3})
    await author.commit((say.note('"session":"s_origin",'), [about_itself]))
    await fork(journal, "s_fork", Share("s_origin", 1, 1))
    _, data = await journal.events_after("s_fork", 0, EVERYTHING)
    assert events.DECODER.decode(data) == msgspec.structs.replace(about_itself, session="s_fork", seq=1)
    assert (await journal.records("s_fork", 1))[0].text == '"session":"s_origin",'


async def test_a_staged_session_is_invisible(journal, origin, archive):
    async with staging(journal.database, row_of("s_fork")) as made:
        await made.copy(Share("s_origin", 4, 4))
        assert await journal.row("s_fork") is None
        assert await journal.find("s_f") == []
        assert [row.id for row in (await journal.list())[0]] == ["s_origin"]
        assert await sessions_with(archive, "red") == ["s_origin"]
        assert (await archive.usage())[0].input == 7
        if isinstance(journal, SqliteJournal):
            assert verify(journal.database._path).problems == []
    assert await count(journal, "sessions") == 2
    await sweep(journal)
    assert (await count(journal, "sessions"), await count(journal, "records")) == (1, 4)


async def test_an_incomplete_session_of_a_dead_daemon_is_removed_by_the_next(tmp_path, author_of, say):
    path = tmp_path / "zot.db"
    first = await SqliteJournal.open(path)
    await author_of(first, "s_origin").commit(*[(say.note("x"), [say.said("red")])] * 250)
    made = staging(first.database, row_of("s_fork"))
    begun = await made.__aenter__()
    await begun.copy(Share("s_origin", 250, 250))
    await first.close()
    second = await SqliteJournal.open(path)
    await sweep(second)
    assert (await count(second, "sessions"), await count(second, "records")) == (1, 250)
    await second.close()
    assert verify(path).problems == []
    await made.gen.aclose()


async def test_copying_a_session_fails_if_it_is_deleted_meanwhile(journal, origin):
    async with staging(journal.database, row_of("s_fork")) as made:
        await delete(journal, "s_origin")
        with pytest.raises(StorageError, match="session s_origin was deleted"):
            await made.copy(Share("s_origin", 3, 3))


async def test_shared_records_are_found_and_counted_once(journal, origin, archive, author_of, say):
    await fork(journal, "s_fork", Share("s_origin", 3, 3))
    assert await sessions_with(archive, "red") == ["s_origin"]
    assert await sessions_with(archive, "blue") == ["s_origin"]
    assert [(sums.key, sums.attempts) for sums in await archive.usage(by="session")] == [("s_origin", 1)]
    assert (await archive.spent("")).input == 7


async def test_shared_records_belong_to_the_fork_after_the_origin_is_deleted(journal, origin, archive):
    await fork(journal, "s_fork", Share("s_origin", 3, 3))
    await delete(journal, "s_origin")
    assert await sessions_with(archive, "red") == ["s_fork"]
    assert await sessions_with(archive, "blue") == []
    assert [(sums.key, sums.attempts) for sums in await archive.usage(by="session")] == [("s_fork", 1)]


@pytest.mark.parametrize("deleted", ["s_origin", "s_long", "s_short", "s_deep"])
async def test_each_message_is_found_once_whichever_session_is_deleted(journal, origin, archive, deleted):
    """Three forks: two of the origin, one of a fork."""
    await fork(journal, "s_long", Share("s_origin", 4, 4))
    await fork(journal, "s_short", Share("s_origin", 1, 1))
    await fork(journal, "s_deep", Share("s_long", 3, 3))
    await delete(journal, deleted)
    for word in ("red", "green", "blue"):
        assert len(await sessions_with(archive, word)) == 1
    assert [sums.attempts for sums in await archive.usage()] == [1]
    heir = "s_long" if deleted == "s_origin" else "s_origin"
    found = await archive.branches(heir, 4)
    assert {one.session for one in found.forks} == {"s_long", "s_short", "s_deep"} - {deleted, heir} - (
        {"s_deep"} if deleted == "s_short" else set()
    )


async def test_the_own_messages_of_a_deleted_fork_belong_to_its_fork(journal, origin, archive, say):
    await fork(journal, "s_middle", Share("s_origin", 1, 1))
    middle = await journal.row("s_middle")
    words = msgspec.structs.replace(say.said("violet"), session="s_middle", seq=2)
    entry = JournalEntry(2, say.note("d"), 2, 2, encode(words) + b"\n", 1)
    await commit(journal, msgspec.structs.replace(middle, records=2, seq=2), entry)
    await fork(journal, "s_last", Share("s_middle", 2, 2))
    assert await sessions_with(archive, "violet") == ["s_middle"]
    await delete(journal, "s_middle")
    assert await sessions_with(archive, "violet") == ["s_last"]
    assert await sessions_with(archive, "red") == ["s_origin"]
    (made,) = (await archive.branches("s_origin", 4)).forks
    assert (made.session, made.at) == ("s_last", 1)


async def test_the_tree_names_forks_in_both_directions(journal, origin, archive):
    await fork(journal, "s_fork", Share("s_origin", 3, 3))
    (made,) = (await archive.branches("s_origin", 4)).forks
    assert (made.session, made.at) == ("s_fork", 3)
    found = await archive.branches("s_fork", 3)
    assert found.origin is not None
    assert (found.origin.session, found.origin.at, found.forks) == ("s_origin", 3, [])
    (branch,) = found.branches
    assert (branch.first, branch.last, branch.messages, branch.text, branch.at) == (1, 3, 2, "red", None)


async def test_a_branch_does_not_begin_with_a_note(journal, author_of, archive):
    await author_of(journal, "s_1").commit((Note(time=TIME, level="info", text="x"), [events.TurnStart(1)]))
    (branch,) = (await archive.branches("s_1", 1)).branches
    assert (branch.messages, branch.text, branch.time) == (0, "", None)


@IN_A_FILE
@pytest.mark.parametrize("query", [branches.SPAN, branches.FIRST_MESSAGE])
async def test_branches_of_a_long_session_are_found_by_an_index(journal, query):
    plan = await journal.database.read(lambda c: c.execute(f"EXPLAIN QUERY PLAN {query}", ("s_1", 1, 2)).fetchall())
    steps = " | ".join(row[3] for row in plan)
    assert "INDEX records_seq" in steps
    assert "TEMP B-TREE" not in steps
