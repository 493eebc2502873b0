"""What is written is numbered, stored, and shown, in this order; what is loaded is what was written."""

import msgspec
import pytest

from zotd.core import records
from zotd.core.ports import SessionRow, StorageError
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger, Shown
from zotd.ledger.titles import TITLE_COLUMNS
from zotd.store.journal import SqliteJournal
from zotd.store.memory import Memory
from zotd.testing.histories import TIME
from zotd.wire import events
from zotd.wire.content import Text, Tokens

EVERYTHING = 10**9


class Journals:
    """A journal that keeps `done` back until it is told to go on; the port promises no earlier moment."""

    is_immediate = False

    def __init__(self):
        self.memory = Memory()
        self.held = []

    def commit(self, row, entries, *, durable, done):
        self.held.append((row, entries, durable, done))

    def commit_next(self):
        row, entries, durable, done = self.held.pop(0)
        self.memory.commit(row, entries, durable=durable, done=done)

    def fail_next(self):
        *_, done = self.held.pop(0)
        done(StorageError("no space left on device"))


class Follower:
    """A subscriber that writes down what it gets."""

    def __init__(self, log=None):
        self.log = [] if log is None else log
        self.shown = []
        self.data = b""
        self.last_seq = 0

    def early(self, shown, data, seq):
        self.committed([shown], data, seq)
        return True

    def committed(self, shown, data, last_seq):
        assert last_seq >= self.last_seq
        self.log.extend(type(event).__name__ for event in shown)
        self.shown += shown
        self.data += data
        self.last_seq = last_seq

    def live(self, shown, data):
        self.log.extend(type(event).__name__ for event in shown)
        self.shown += shown
        self.data += data


def new_row(**fields):
    fields = {"name": "", "created": TIME, "updated": TIME, "state": "idle"} | fields
    return SessionRow(id="s_1", cwd="/home", settings=records.Settings(provider="p", model="m"), **fields)


def ledger_of(journal, *, addressed=True):
    return Ledger(new_row(), journal, Transcript(), addressed=addressed)


def followed(ledger, log=None):
    follower = Follower(log)
    ledger.subscribe(follower)
    return follower


def note(text="n", *shows):
    return Shown(records.Note(time=TIME, level="info", text=text), shows)


def said(text="hello", **fields):
    return events.UserMessage([Text(text)], TIME, **fields)


@pytest.fixture(params=["memory", "sqlite"])
async def journal(request, tmp_path):
    """Both implementations of the port, one after the other."""
    if request.param == "memory":
        yield Memory()
        return
    opened = await SqliteJournal.open(tmp_path / "zot.db")
    yield opened
    await opened.close()


# --- numbering and order --------------------------------------------------------------------------------------


async def test_events_are_numbered_from_one_without_gaps(journal):
    ledger = ledger_of(journal)
    follower = followed(ledger)
    await ledger.write([note("a", said("1"), said("2")), note("b"), note("c", said("3"))], durable=False)
    await ledger.write([note("d", said("4"))], durable=True)
    assert [(event.session, event.seq, event.content) for event in follower.shown] == [
        ("s_1", seq, [Text(str(seq))]) for seq in (1, 2, 3, 4)
    ]
    assert (ledger.row.seq, ledger.row.records, ledger.shown_seq) == (4, 4, 4)


async def test_what_followers_got_is_what_the_journal_replays(journal):
    ledger = ledger_of(journal)
    follower = followed(ledger)
    for text in "abc":
        await ledger.write([note(text, said(text), events.TurnStart(1)), note(text)], durable=False)
    assert await journal.events_after("s_1", 0, EVERYTHING) == (6, follower.data)
    assert [events.DECODER.decode(line) for line in follower.data.splitlines()] == follower.shown


async def test_writes_that_do_not_wait_for_each_other_are_shown_in_their_order(journal):
    ledger = ledger_of(journal)
    follower = followed(ledger)
    writes = [ledger.write([note(str(n), said(str(n)))], durable=n % 2 == 0) for n in range(20)]
    for write in writes:
        await write
    assert [event.seq for event in follower.shown] == list(range(1, 21))


async def test_only_messages_are_counted_as_pages_of_the_history(journal):
    ledger = ledger_of(journal)
    result = events.ToolResultEvent("c", is_error=False, content=[])
    reply = events.AssistantMessage([Text("x")], TIME)
    await ledger.write(
        [note("a", events.TurnStart(1), said()), note("b", reply, events.TurnEnd("x"), result)], durable=False
    )
    lines = await journal.messages_before("s_1", None, 10)
    assert [msgspec.json.decode(line)["type"] for line in lines] == ["user_message", "assistant_message", "tool_result"]


async def test_nothing_is_shown_before_it_is_committed():
    journals = Journals()
    ledger = ledger_of(journals)
    follower = followed(ledger)
    first = ledger.write([note("a", said("a"))], durable=True)
    second = ledger.write([note("b", said("b"))], durable=True)
    assert (follower.shown, ledger.shown_seq, ledger.row.seq) == ([], 0, 2)
    journals.commit_next()
    assert ([event.seq for event in follower.shown], ledger.shown_seq) == ([1], 1)
    assert (first.done(), second.done()) == (True, False)
    journals.commit_next()
    assert ([event.seq for event in follower.shown], ledger.shown_seq) == ([1, 2], 2)
    assert second.done()


async def test_the_answer_precedes_the_events_it_causes_and_follows_the_commit():
    journals = Journals()
    ledger = ledger_of(journals)
    log: list[str] = []
    followed(ledger, log)
    written = ledger.write([note("a", said())], durable=True, accepted=lambda: log.append("accepted"))
    assert log == []
    journals.commit_next()
    assert log == ["accepted", "UserMessage"]
    await written


async def test_a_write_says_whether_it_must_survive_a_power_failure():
    journals = Journals()
    ledger = ledger_of(journals)
    ledger.write([note()], durable=True)
    ledger.write([note()], durable=False)
    assert [durable for _, _, durable, _ in journals.held] == [True, False]


async def test_a_written_record_is_in_the_transcript_at_once():
    ledger = ledger_of(Journals())
    ledger.write([Shown(records.Input(time=TIME, id="i", content=[Text("x")]))], durable=True)
    assert list(ledger.transcript.waiting) == ["i"]


async def test_a_writer_that_was_cancelled_does_not_keep_the_events_back():
    journals = Journals()
    ledger = ledger_of(journals)
    follower = followed(ledger)
    ledger.write([note("a", said())], durable=True).cancel()
    journals.commit_next()
    assert [event.seq for event in follower.shown] == [1]


# --- followers ------------------------------------------------------------------------------------------------


async def test_a_follower_gets_the_events_from_its_subscription_to_its_end(journal):
    ledger = ledger_of(journal)
    await ledger.write([note("a", said())], durable=False)
    follower = followed(ledger)
    assert ledger.followers == 1
    await ledger.write([note("b", said())], durable=False)
    ledger.unsubscribe(follower)
    ledger.unsubscribe(follower)
    await ledger.write([note("c", said())], durable=False)
    assert ([event.seq for event in follower.shown], ledger.followers) == ([2], 0)


async def test_a_follower_that_leaves_during_an_event_affects_no_other(journal):
    ledger = ledger_of(journal)

    class Leaver(Follower):
        def committed(self, shown, data, last_seq):
            super().committed(shown, data, last_seq)
            ledger.unsubscribe(self)

    leaver = Leaver()
    ledger.subscribe(leaver)
    stayer = followed(ledger)
    await ledger.write([note("a", said())], durable=False)
    await ledger.write([note("b", said())], durable=False)
    assert ([event.seq for event in leaver.shown], [event.seq for event in stayer.shown]) == ([1], [1, 2])


async def test_records_without_events_wake_no_follower(journal):
    ledger = ledger_of(journal)
    log: list[str] = []
    followed(ledger, log)
    await ledger.write([note()], durable=False)
    assert log == []


async def test_live_events_are_shown_at_once_without_seq_and_are_not_stored(journal):
    ledger = ledger_of(journal)
    follower = followed(ledger)
    ledger.live([events.TextDelta("x", session="s_1"), events.TextDelta("y", session="s_1")])
    ledger.live([])
    assert [msgspec.json.decode(line) for line in follower.data.splitlines()] == [
        {"type": "text_delta", "session": "s_1", "delta": text} for text in "xy"
    ]
    assert ledger.row.seq == 0
    assert await journal.events_after("s_1", 0, EVERYTHING) == (0, b"")


# --- on stdio -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            said("x", input="i_1", run="r_1"),
            {"type": "user_message", "content": [{"type": "text", "text": "x"}], "time": TIME},
        ),
        (events.TurnStart(1), {"type": "turn_start", "step": 1}),
        (events.Done(run="r_1"), {"type": "done"}),
        (
            events.ToolResultEvent("c", is_error=False, content=[], name="bash", extension="x", time=TIME),
            {"type": "tool_result", "id": "c", "is_error": False, "content": []},
        ),
    ],
    ids=lambda value: value.get("type") if isinstance(value, dict) else "",
)
async def test_on_stdio_an_event_carries_nothing_that_only_the_daemon_adds(event, line):
    ledger = ledger_of(Memory(), addressed=False)
    follower = followed(ledger)
    await ledger.write([note("a", event)], durable=False)
    assert msgspec.json.decode(follower.data) == line
    assert ledger.label is None


async def test_in_the_daemon_an_event_keeps_all_it_has():
    ledger = ledger_of(Memory())
    follower = followed(ledger)
    await ledger.write([note("a", said(input="i_1", run="r_1"), events.Done(run="r_1"))], durable=False)
    assert follower.shown == [
        said(input="i_1", run="r_1", session="s_1", seq=1),
        events.Done(run="r_1", session="s_1", seq=2),
    ]
    assert ledger.label == "s_1"


# --- a journal that cannot write ------------------------------------------------------------------------------


async def test_what_could_not_be_stored_is_neither_answered_nor_shown():
    journals = Journals()
    ledger = ledger_of(journals)
    log: list[str] = []
    followed(ledger, log)
    written = ledger.write([note("a", said())], durable=True, accepted=lambda: log.append("accepted"))
    journals.fail_next()
    with pytest.raises(StorageError, match="no space left"):
        await written
    assert (log, ledger.shown_seq) == ([], 0)


async def test_after_a_failure_nothing_more_reaches_the_journal():
    journals = Journals()
    ledger = ledger_of(journals)
    failed = ledger.write([note("a")], durable=True)
    journals.fail_next()
    later = ledger.write([note("b", said())], durable=True)
    for write in (failed, later):
        with pytest.raises(StorageError, match="no space left"):
            await write
    assert journals.held == []
    assert ledger.row.records == 1


async def test_what_was_stored_and_reported_as_failed_is_shown_with_what_was_stored_behind_it_by_reset():
    journals = Journals()
    ledger = ledger_of(journals)
    follower = followed(ledger)
    writes = [ledger.write([note(text, said(text))], durable=True) for text in ("a", "b")]
    journals.memory.commit(*journals.held[0][:2], durable=True, done=lambda _: None)
    journals.fail_next()
    journals.commit_next()
    for write in writes:
        with pytest.raises(StorageError, match="no space left"):
            await write
    assert (follower.shown, ledger.shown_seq) == ([], 0)
    row = await journals.memory.row("s_1")
    _, stored = await journals.memory.events_after("s_1", 0, EVERYTHING)
    ledger.reset(row, events.DECODER.decode_lines(stored), stored)
    assert [event.content for event in follower.shown] == [[Text("a")], [Text("b")]]
    assert (follower.data, ledger.shown_seq) == (stored, 2)


async def test_a_failure_without_waiters_is_kept():
    journals = Journals()
    ledger = ledger_of(journals)
    ledger.write([note("a")], durable=True).cancel()
    journals.fail_next()
    assert str(ledger.failure) == "no space left on device"


async def test_a_journal_that_has_other_records_refuses_and_shows_nothing(journal):
    await ledger_of(journal).write([note("a", said())], durable=False)
    other = ledger_of(journal)
    follower = followed(other)
    with pytest.raises(StorageError):
        await other.write([note("b", said())], durable=False)
    assert (follower.shown, other.failure is not None) == ([], True)


# --- the row --------------------------------------------------------------------------------------------------


async def test_the_row_keeps_the_figures_of_the_session(journal):
    ledger = ledger_of(journal)
    await ledger.write([note()], durable=False, usage=Tokens(1, 2, 3, 4, 0.5), context=100)
    await ledger.write([note()], durable=False, usage=Tokens(1, 1, 1, 1, 0.25))
    last = records.Note(time="2026-11-22T00:00:00.000Z", level="info", text="x")
    await ledger.write([Shown(last)], durable=False, context=7, name="mine", state="held")
    row = ledger.row
    assert (row.usage, row.context, row.name, row.state) == (Tokens(2, 3, 4, 5, 0.75), 7, "mine", "held")
    assert row.updated == last.time
    assert await journal.row("s_1") == row


async def test_a_nameless_session_is_called_after_the_first_line_of_its_first_prompt():
    ledger = ledger_of(Memory())
    ledger.title("  \n ")
    assert ledger.row.name == ""
    ledger.title("\n  mend the door\nand the roof")
    ledger.title("something else")
    assert ledger.row.name == "mend the door"


async def test_a_title_is_cut_to_a_column():
    ledger = ledger_of(Memory())
    ledger.title("x" * 1000)
    assert ledger.row.name == "x" * (TITLE_COLUMNS - 1) + "…"


async def test_settings_may_be_written_without_the_transcript_in_memory(journal):
    ledger = ledger_of(journal)
    prompt = records.Input(time=TIME, id="i", content=[Text("x")])
    await ledger.write([Shown(prompt), Shown(attempt("i"))], durable=False)
    unloaded = Ledger(ledger.row, journal, Transcript(), addressed=True)
    assert not unloaded.loaded
    changed = msgspec.structs.replace(ledger.row.settings, model="n")
    await unloaded.write(
        [Shown(records.ConfigRecord(time=TIME, settings=changed, name="n"))], durable=False, settings=changed
    )
    assert (unloaded.row.messages, unloaded.row.base, unloaded.row.settings.model) == (1, ledger.row.base, "n")
    unloaded.load(await journal.records("s_1", unloaded.row.base))
    assert (unloaded.loaded, unloaded.transcript.messages) == (True, ledger.transcript.messages)


def attempt(key):
    return records.Attempt(time=TIME, run="r", step=1, number=1, provider="p", model="m", input=key)
