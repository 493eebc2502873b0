"""One session with its neighbours in memory: what it tells the journal at the moments at which a crash may come."""

import asyncio

import pytest

from tests.runs.test_guarded_runs import Tool
from tests.sessions.desk import Desk, Watcher, new_row, session_of
from zotd.core.ports import Replay
from zotd.core.reply import CallArgs, CallEnd, CallStart, RequestAccepted, Stopped
from zotd.core.retry import Failure, ModelError
from zotd.store.journal import SqliteJournal
from zotd.store.memory import Memory
from zotd.tasks import contained
from zotd.testing.script_model import ScriptModel, says
from zotd.wire import events
from zotd.wire.errors import Code, CommandError


class Recorder(Memory):
    """A journal that remembers the row of every commit."""

    def __init__(self):
        super().__init__()
        self.states = []

    def commit(self, row, entries, *, durable, done):
        self.states.append(row.state)
        super().commit(row, entries, durable=durable, done=done)


@pytest.fixture
async def make():
    """`make(model)`: a session, its planner, its journal, and what it shows."""
    running = []
    async with asyncio.TaskGroup() as tasks:

        def make(*replies):
            journal, desk, watcher = Recorder(), Desk(ScriptModel(*replies)), Watcher()
            spawn = lambda name, work: running.append(contained(tasks, name, work))  # noqa: E731
            session = session_of(new_row(), journal, desk, spawn)
            session.ledger.subscribe(watcher)
            return session, desk, journal, watcher

        yield make
        for task in running:
            task.cancel()


async def prompt(session, text):
    """Resolves when the sender would have its answer."""
    await session.prompt(text, [], sender="", when_busy="queue", accepted=lambda _: None)


async def test_the_row_says_that_something_waits_from_the_moment_it_is_accepted(make):
    """A restart looks only into sessions that are not idle."""
    session, desk, journal, watcher = make(says("one"), says("two"))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(prompt(session, "a"))
        await asyncio.sleep(0)
        await prompt(session, "b")  # accepted while the first one is still being prepared
        assert journal.states == ["running"]
        desk.ready.set()
    for _ in range(2):
        await watcher.until(events.Done)
    await session.stopped()
    assert journal.states.index("idle") == len(journal.states) - 1


async def test_an_input_that_is_being_prepared_is_not_lost_when_another_one_comes(make):
    """Its run is not in the journal yet, and an order of the queue that does not name it would withdraw it."""
    session, desk, _, watcher = make(says("one"), says("two"), says("three"))
    desk.ready.set()
    await prompt(session, "a")
    await prompt(session, "b")
    desk.ready.clear()
    await watcher.until(events.Done)
    await desk.planning.wait()  # "b" has been taken
    await prompt(session, "c")
    shown = (await watcher.until(events.QueueChanged))[-1]
    assert [item.text for item in shown.items] == ["b", "c"]
    desk.ready.set()
    started = (await watcher.until(events.QueueChanged))[-1]
    assert [item.text for item in started.items] == ["c"]
    for _ in range(2):
        await watcher.until(events.Done)
    await session.stopped()
    said = ["".join(block.text for block in message.content) for message in session.ledger.transcript.messages]
    assert said == ["a", "one", "b", "two", "c", "three"]


async def test_a_run_whose_surroundings_cannot_be_read_fails_its_sender_only(make):
    session, desk, _, watcher = make(says("one"))
    desk.fault = CommandError(Code.BAD_REQUEST, "no such thing")
    desk.ready.set()
    with pytest.raises(CommandError, match="no such thing"):
        await prompt(session, "a")
    await session.stopped()
    assert session.state == "idle"
    await prompt(session, "b")
    await watcher.until(events.Done)
    await session.stopped()


async def test_an_abort_while_the_run_is_being_prepared_ends_it_at_once(make):
    session, desk, _, watcher = make(says("one"), says("two"))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(prompt(session, "a"))
        await asyncio.sleep(0)
        session.abort()
        desk.ready.set()
    seen = await watcher.until(events.Done)
    assert [event.stop for event in seen if isinstance(event, events.TurnEnd)] == ["aborted"]
    await prompt(session, "b")
    seen = await watcher.until(events.Done)
    assert [event.stop for event in seen if isinstance(event, events.TurnEnd)] == ["end_turn"]
    await session.stopped()


async def test_nothing_starts_when_the_process_ends_and_waiters_get_an_error(make):
    session, desk, journal, watcher = make([[RequestAccepted()], asyncio.Event()])
    desk.ready.set()
    await prompt(session, "a")
    await prompt(session, "b")
    await watcher.until(events.AssistantStart)
    session.abort(for_good=True)
    await session.stopped()
    assert len(desk.model.requests) == 1
    assert journal.states[-1] == "held"
    with pytest.raises(CommandError) as refused:
        await prompt(session, "c")
    assert refused.value.code == "shutting_down"


async def test_a_failed_run_holds_what_waits(make):
    gate = asyncio.Event()
    session, desk, journal, _ = make([gate, ModelError(Failure.REFUSED, "no")], says("two"))
    desk.ready.set()
    await prompt(session, "a")
    await prompt(session, "b")
    gate.set()
    await session.stopped()
    assert (session.state, journal.states[-1]) == ("held", "held")


async def test_an_abort_behind_a_done_does_not_touch_a_prompt_that_comes_later(make):
    session, desk, _, watcher = make(says("one"), says("two"))
    desk.ready.set()
    await prompt(session, "a")
    await watcher.until(events.Done)
    session.abort()
    await prompt(session, "b")
    shown = await watcher.until(events.Done)
    await session.stopped()
    assert [event.stop for event in shown if isinstance(event, events.TurnEnd)] == ["end_turn"]


class AtDone(Watcher):
    """Notes what a client is shown that attaches at the moment at which the end of a run is shown."""

    def __init__(self, session):
        super().__init__()
        self.session = session
        self.states = []

    def committed(self, shown, data, last_seq):
        super().committed(shown, data, last_seq)
        if any(isinstance(event, events.Done) for event in shown):
            self.states.append((self.session.state, self.session.work.run_info() is not None))


async def test_a_session_whose_last_done_has_been_shown_is_not_shown_as_running(make):
    """A client that attaches then gets no further event that would tell it so."""
    gate = asyncio.Event()
    session, desk, _, _ = make(
        [gate, *says("one")], says("two"), says("a summary"), [ModelError(Failure.REFUSED, "no")]
    )
    watcher = AtDone(session)
    session.ledger.subscribe(watcher)
    desk.ready.set()
    await prompt(session, "a")
    await prompt(session, "b")
    gate.set()
    for _ in range(2):
        await watcher.until(events.Done)
    assert watcher.states == [("running", False), ("idle", False)]  # "b" is to come
    await session.compact("", accepted=lambda _: None)
    await watcher.until(events.Done)
    await prompt(session, "c")
    await watcher.until(events.Done)
    await session.stopped()
    assert watcher.states[2:] == [("idle", False), ("idle", False)]


@pytest.fixture
async def stored(tmp_path):
    """`stored(tool, replies)`: the same, with this tool, in a journal on disk."""
    journal = await SqliteJournal.open(tmp_path / "zot.db")
    running = []
    async with asyncio.TaskGroup() as tasks:

        def make(tool, *replies):
            desk, watcher = Desk(ScriptModel(*replies), {tool.name: tool}), Watcher()
            desk.ready.set()
            spawn = lambda name, work: running.append(contained(tasks, name, work))  # noqa: E731
            session = session_of(new_row(), journal, desk, spawn)
            session.ledger.subscribe(watcher)
            return session, watcher

        yield make
        for task in running:
            task.cancel()
    await journal.close()


def reads():
    return [[RequestAccepted()], [CallStart(0, "read"), CallArgs(0, "{}"), CallEnd(0), Stopped("tool_use")]]


async def test_a_reply_is_shown_and_stored_while_its_call_still_reads(stored):
    tool = Tool("read", replay=Replay.SAFE)
    session, watcher = stored(tool, reads(), says("done"))
    await prompt(session, "a")
    seen = await watcher.until(events.ToolStart)
    kinds = [events.AssistantStart, events.AssistantMessage, events.ToolCallEvent, events.TurnEnd, events.ToolStart]
    assert [type(event) for event in seen if type(event) in kinds] == kinds
    stored_seq, _ = await session.ledger.journal.events_after(session.id, 0, 10**6)
    assert stored_seq == session.ledger.shown_seq == max(event.seq or 0 for event in seen)
    tool.end.set()
    await watcher.until(events.Done)
    await session.stopped()


async def test_a_run_whose_calls_only_read_syncs_each_of_its_steps_once(stored):
    tool = Tool("read", replay=Replay.SAFE)
    tool.end.set()
    session, watcher = stored(tool, reads(), reads(), reads(), says("done"))
    before = session.ledger.journal.database.counts.synced
    await prompt(session, "a")
    await watcher.until(events.Done)
    await session.stopped()
    requests, end = 4, 1
    assert session.ledger.journal.database.counts.synced - before == requests + end
