"""How many sessions a user may have, in both databases."""

import sqlite3
from contextlib import closing
from functools import partial

import pytest
from msgspec.structs import replace

from zotd.store import session_limits, staged
from zotd.store.session_limits import SessionLimit
from zotd.store.staged import STATE
from zotd.store.staging import staging
from zotd.wire.errors import Code, CommandError
from zotd.wire.families import SessionParent

LIMIT = SessionLimit("alice", 2)


@pytest.fixture
def make(stored_journal, author_of, say):
    """`await make(key)`: another session of alice, who may have two."""

    async def make(key, limit=LIMIT):
        author = author_of(stored_journal, key, user="alice")
        async with staging(stored_journal.database, author.row, limit) as made:
            entry = author.seal(say.note("x"))
            await made.publish(author.row, [entry])

    return make


async def ids(journal):
    return {row.id for row in (await journal.list())[0]}


async def test_only_as_many_sessions_are_stored_as_the_user_may_have(stored_journal, make):
    await make("s_1")
    await make("s_2")
    with pytest.raises(CommandError, match="the user alice has 2 sessions, and may have 2") as caught:
        await make("s_3")
    assert caught.value.code is Code.BUDGET_EXCEEDED
    await stored_journal.ownership.take("s_1")
    await stored_journal.delete("s_1")
    await make("s_4")
    await make("s_5", SessionLimit("alice"))
    assert len(await ids(stored_journal)) == 3


async def test_subagents_and_sessions_of_others_and_incomplete_ones_do_not_count(stored_journal, author_of, make, say):
    await author_of(stored_journal, "s_1", user="bob").commit((say.note("a"),))
    await author_of(stored_journal, "s_2").commit((say.note("a"),))
    parent = SessionParent("s_1", "c_1", 1, "")
    await author_of(stored_journal, "s_3", user="alice", parent=parent).commit((say.note("a"),))
    await make("s_4")
    with pytest.raises(ValueError, match="given up"):
        async with staging(stored_journal.database, author_of(stored_journal, "s_5", user="alice").row, LIMIT):
            raise ValueError("given up")
    await make("s_6")


async def test_when_two_are_built_at_the_same_time_for_one_place_one_is_refused(stored_journal, author_of, make, say):
    await make("s_1")
    author = author_of(stored_journal, "s_2", user="alice")
    async with staging(stored_journal.database, author.row, LIMIT) as late:
        await make("s_3")
        entry = author.seal(say.note("x"))
        with pytest.raises(CommandError):
            await late.publish(author.row, [entry])
    assert await ids(stored_journal) == {"s_1", "s_3"}


@pytest.mark.parametrize("maker", ["this", "a dead one"])
async def test_a_session_of_a_timer_is_begun_again_if_a_crash_came_before_it_was_complete(
    stored_journal, author_of, make, maker
):
    """Its id is fixed. What the dead process has begun may have been swept by then, or not."""
    database = stored_journal.database
    maker = database.maker if maker == "this" else "dead"
    row = replace(author_of(stored_journal, "s_1", user="alice").row, state=STATE)
    await database.perform(partial(staged.begin, row=row, maker=maker, limit=LIMIT))
    assert await ids(stored_journal) == set()
    await make("s_1")
    assert await ids(stored_journal) == {"s_1"}
    found = await database.read(lambda connection: connection.execute("SELECT count(*) FROM staged").fetchone()[0])
    assert found == 0
    stored = await stored_journal.row("s_1")
    assert (stored.state, stored.records, stored.user) == ("idle", 1, "alice")
    assert len(await stored_journal.history.entries("s_1", 0, 1000)) == 1
    await make("s_2")
    with pytest.raises(CommandError):
        await make("s_3")


@pytest.mark.parametrize("stored_journal", ["sqlite"], indirect=True)
async def test_the_sessions_of_a_user_are_counted_with_an_index(stored_journal, tmp_path):
    with closing(sqlite3.connect(tmp_path / "zot.db")) as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {session_limits._COUNT}", ("alice",))
        plan = " | ".join(row[3] for row in rows)
    assert "USING INDEX sessions_user" in plan
