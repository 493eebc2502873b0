"""What is deferred goes with the next commit, and the beginning of a reply is shown before its own."""

import asyncio

import msgspec
import pytest

from tests.ledger.test_ledger import EVERYTHING, Follower, Journals, followed, journal, ledger_of, note, said
from zotd.core import early_summary, records
from zotd.core.ports import StorageError
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger, Shown
from zotd.runs.recovery import reply_begun
from zotd.testing.histories import TIME
from zotd.wire import events
from zotd.wire.content import Tokens

__all__ = ["journal"]  # a fixture

# --- deferred records -----------------------------------------------------------------------------------------


async def test_deferred_records_go_to_the_journal_with_the_next_commit():
    journals = Journals()
    ledger = ledger_of(journals)
    follower = followed(ledger)
    ledger.defer([note("a", said("a"))], then=lambda: follower.log.append("then"))
    assert (journals.held, follower.log, ledger.row.records) == ([], [], 1)
    ledger.write([note("b", events.TurnStart(1))], durable=True)
    ((row, entries, durable, _),) = journals.held
    assert (row.records, [entry.number for entry in entries], durable) == (2, [1, 2], True)
    journals.commit_next()
    assert follower.log == ["UserMessage", "then", "TurnStart"]


async def test_deferred_records_wait_only_a_moment_for_another_commit(journal):
    ledger = ledger_of(journal)
    follower = followed(ledger)
    ledger.defer([note("a", said("a"))])
    await ledger.settled.wait()
    assert await journal.events_after("s_1", 0, EVERYTHING) == (1, follower.data)


async def test_a_deferred_record_whose_commit_fails_is_not_shown_and_nothing_follows_it():
    journals = Journals()
    ledger = ledger_of(journals)
    follower = followed(ledger)
    ledger.defer([note("a", said("a"))])
    written = ledger.write([note("b", said("b"))], durable=True)
    journals.fail_next()
    for write in (written, ledger.write([note("c")], durable=True)):
        with pytest.raises(StorageError, match="no space left"):
            await write
    with pytest.raises(StorageError, match="no space left"):
        ledger.defer([note("d")])
    assert follower.log == []


# --- the beginning of a reply ---------------------------------------------------------------------------------


def request(*shows, answered=False):
    record = records.Attempt(
        time=TIME, run="r", step=1, number=1, provider="p", model="m", answered=answered, estimate=Tokens(1)
    )
    return Shown(record, shows)


BEGUN = request(events.AssistantStart(), answered=True)

USAGE = Shown(
    records.UsageRow(time=TIME, run="r", step=1, provider="p", model="m", tokens=Tokens(1)), [events.TurnEnd("x")]
)


async def requested(journals):
    """A ledger whose request is sent, and a follower."""
    ledger = ledger_of(journals)
    follower = followed(ledger)
    ledger.write([request(events.TurnStart(1))], durable=True)
    journals.commit_next()
    return ledger, follower


async def test_the_beginning_of_a_reply_is_shown_at_once_and_stored_with_the_usage():
    journals = Journals()
    ledger, follower = await requested(journals)
    await ledger.begin_reply(BEGUN)
    assert (follower.log, follower.last_seq, journals.held) == (["TurnStart", "AssistantStart"], 2, [])
    assert (ledger.is_ahead, ledger.shown_seq) == (True, 1)
    ledger.write([USAGE], durable=False)
    journals.commit_next()
    assert (follower.log, [event.seq for event in follower.shown]) == (
        ["TurnStart", "AssistantStart", "TurnEnd"],
        [1, 2, 3],
    )
    assert (ledger.is_ahead, ledger.shown_seq) == (False, 3)
    assert await journals.memory.events_after("s_1", 0, EVERYTHING) == (3, follower.data)
    stored = await journals.memory.records("s_1", 1)
    assert [records.kind_of(record) for record in stored] == ["attempt", "usage"]


async def test_the_beginning_of_a_reply_is_not_stored_with_the_usage_of_an_early_summary():
    journals = Journals()
    ledger, follower = await requested(journals)
    await ledger.begin_reply(BEGUN)
    beside = msgspec.structs.replace(USAGE.record, purpose=early_summary.PURPOSE)
    ledger.write([Shown(beside)], durable=False)
    journals.commit_next()
    assert follower.log == ["TurnStart", "AssistantStart"]
    assert await journals.memory.records("s_1", 2) == [BEGUN.record, beside]


async def test_the_beginning_of_a_reply_has_a_record_of_its_own_when_the_reply_takes_longer(journal):
    ledger = ledger_of(journal)
    follower = followed(ledger)
    await ledger.write([request(events.TurnStart(1))], durable=True)
    await ledger.begin_reply(BEGUN)
    await ledger.settled.wait()
    assert follower.log == ["TurnStart", "AssistantStart"]
    assert await journal.events_after("s_1", 0, EVERYTHING) == (2, follower.data)
    assert (await journal.records("s_1", 2)) == [BEGUN.record]


async def test_the_beginning_of_a_reply_is_shown_behind_all_that_was_written_before():
    journals = Journals()
    ledger, follower = await requested(journals)
    ledger.write([note("a", said())], durable=False)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ledger.begin_reply(BEGUN))
        await asyncio.sleep(0)
        assert follower.log == ["TurnStart"]
        journals.commit_next()
        journals.commit_next()
    assert follower.log == ["TurnStart", "UserMessage", "AssistantStart"]


async def test_a_follower_that_cannot_take_the_beginning_of_a_reply_early_gets_it_before_what_follows():
    class Reader(Follower):
        def early(self, shown, data, seq):
            del shown, data, seq
            return False

    journals = Journals()
    ledger, follower = await requested(journals)
    reader = Reader()
    ledger.subscribe(reader)
    async with asyncio.TaskGroup() as tasks:
        begun = tasks.create_task(ledger.begin_reply(BEGUN))
        await asyncio.sleep(0)
        assert (follower.log, reader.log, begun.done()) == (["TurnStart", "AssistantStart"], [], False)
        journals.commit_next()
    assert (follower.log, reader.log) == (["TurnStart", "AssistantStart"], ["AssistantStart"])


async def test_what_is_written_between_a_request_and_its_reply_is_synced():
    """Else a power failure could give its number to the beginning of the reply."""
    journals = Journals()
    ledger, _ = await requested(journals)
    warning = Shown(records.Note(time=TIME, level="warn", text="n"), [said()])
    ledger.write([warning], durable=False)
    ledger.defer([warning])
    ledger.write([warning], durable=False)
    assert [durable for _, _, durable, _ in journals.held] == [True, True]
    journals.commit_next()
    journals.commit_next()
    await ledger.begin_reply(BEGUN)
    ledger.write([USAGE], durable=False)
    assert [durable for _, _, durable, _ in journals.held] == [False]


async def test_the_number_of_an_event_shown_early_goes_to_no_other_event_when_its_commit_fails():
    journals = Journals()
    ledger, follower = await requested(journals)
    row = ledger.row
    await ledger.begin_reply(BEGUN)
    ledger.write([USAGE], durable=False).cancel()
    journals.fail_next()
    ledger.reset(row)
    ledger.write([note("a", said())], durable=True)
    journals.commit_next()
    assert [event.seq for event in follower.shown] == [1, 2, 3]
    assert follower.log == ["TurnStart", "AssistantStart", "UserMessage"]
    assert await journals.memory.events_after("s_1", 0, EVERYTHING) == (3, follower.data)


async def test_what_a_restart_records_is_the_event_that_was_shown_early():
    journals = Journals()
    ledger, follower = await requested(journals)
    await ledger.begin_reply(BEGUN)
    row = await journals.memory.row("s_1")
    assert row is not None
    again = Ledger(row, journals.memory, Transcript(), addressed=True)
    again.load(await journals.memory.records("s_1", 1))
    await again.write(reply_begun(again.transcript), durable=False)
    assert await journals.memory.events_after("s_1", 0, EVERYTHING) == (2, follower.data)
    assert reply_begun(again.transcript) == []
