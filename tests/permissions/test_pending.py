"""Questions of stored sessions, seen without loading one."""

import json
import sqlite3
from contextlib import closing

import msgspec
import pytest

from tests.ledger.test_ledger import new_row
from zotd.core import records
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger, Shown
from zotd.permissions import pending
from zotd.store.journal import SqliteJournal
from zotd.wire.content import ToolCall

TIME = "2026-11-21T20:11:18.919Z"
PAST, FUTURE = "2020-01-01T00:00:01.000Z", "2999-01-01T00:00:01.000Z"


@pytest.fixture
async def journal(tmp_path):
    made = await SqliteJournal.open(tmp_path / "zot.db")
    yield made
    await made.close()


async def waits(journal, number, *, state="waiting", expires=None):
    """Store a session whose call waits for a person; the id of the question."""
    row = msgspec.structs.replace(new_row(state=state), id=f"s_{number}")
    call = ToolCall(f"c_{number}", "bash", {})
    question = records.ApprovalRow(
        time=TIME, id=f"a_{number:04}", call_id=call.id, tool="bash", args={}, args_digest="", expires=expires
    )
    reply = records.Reply(time=TIME, run="r", step=1, content=[call], stop="tool_use")
    await Ledger(row, journal, Transcript(), addressed=True).write([Shown(reply), Shown(question)], durable=False)
    return question.id


async def found(journal, *loaded):
    return [(one.session, one.approval) async for one in pending.questions(journal, lambda one: one in loaded)]


async def test_every_one_is_found_however_many_there_are(journal):
    count = 2 * pending.PAGE + 1
    made = {(f"s_{number}", await waits(journal, number)) for number in range(count)}
    seen = await found(journal)
    assert (len(seen), set(seen)) == (count, made)


async def test_of_a_session_that_a_crash_has_cut_too_and_none_of_one_in_memory(journal):
    await waits(journal, 1, state="running")
    await waits(journal, 2)
    await waits(journal, 3, state="idle")
    assert await found(journal, "s_2") == [("s_1", "a_0001")]


async def test_one_that_should_have_been_decided_by_now_is_not_open(journal):
    await waits(journal, 1, expires=PAST)
    await waits(journal, 2, expires=FUTURE)
    assert await found(journal) == [("s_2", "a_0002")]


async def test_a_damaged_session_does_not_hide_the_others(journal, tmp_path):
    await waits(journal, 1)
    await waits(journal, 2)
    with closing(sqlite3.connect(tmp_path / "zot.db")) as other, other:
        other.execute("UPDATE records SET body = ? WHERE key = 1", (json.dumps({}),))
    assert await found(journal) == [("s_2", "a_0002")]
