"""Property test: clients that follow a session get every event once and in order, however slow they are."""

import asyncio
from types import SimpleNamespace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.api.hub import Client, Clock, Disk, Manager, Wire
from tests.sessions.desk import TIME, Desk, new_row, session_of
from zotd.api.connection import ServerConnection
from zotd.api.context import Tally
from zotd.api.dispatch import Dispatcher
from zotd.api.methods import sessions
from zotd.api.outbox import FAREWELL_S, HIGH_WATER_BYTES, MAX_BYTES, MAX_FRAMES, STALL_S
from zotd.api.presence import Presences
from zotd.core import records
from zotd.ledger.ledger import Shown
from zotd.wire import events
from zotd.wire.content import Text

LONG = "x" * 100_000
"""Three of these are more than a page of a replay."""

MANY_TURNS = 10
"""Iterations of the event loop; more than anything takes that waits for neither the journal nor a client."""

# --- actions ------------------------------------------------------------------------------------------------------

who = st.integers(0, 2)
numbers = st.integers(0, 7)
few = st.integers(1, 4)
patience = st.sampled_from([0, 0, 1, 2, MANY_TURNS, MANY_TURNS])
"""Iterations that the event loop gets before the next action."""
cursors = st.sampled_from(["own", "own", "own", "start", "future", "epoch", "none", "none"])
kinds = st.sampled_from(["user", "user", "assistant", "long"])
highs = st.sampled_from([0, 0, HIGH_WATER_BYTES])


def shown(kind):
    match kind:
        case "user":
            return events.UserMessage([Text("hello")], TIME)
        case "assistant":
            return events.AssistantMessage([Text("well")], TIME)
        case _:
            return events.Notice("info", LONG)


def note(*shows):
    return Shown(records.Note(time=TIME, level="info", text="n"), shows)


class Hub(RuleBasedStateMachine):
    """A session, its journal, and three clients."""

    def __init__(self):
        super().__init__()
        self.loop = Clock()
        self.faults: list[object] = []
        self.loop.set_exception_handler(lambda _, context: self.faults.append(context))
        self.disk = Disk()
        self.tasks: list[asyncio.Task[None]] = []
        self.session = session_of(new_row(), self.disk, Desk(None), self.spawn)  # type: ignore[arg-type]  # no runs
        self.manager = Manager(self.session)
        self.house = SimpleNamespace(
            tally=Tally(),
            fleet=None,
            manager=self.manager,
            listen=self.manager.listen,
            presences=Presences(),
            opened_by_people=set(),
            spawn=self.spawn,
        )
        self.live_ones = 0
        self.clients = [Client(self.disk) for _ in range(3)]
        for client in self.clients:
            client.connect(Wire(self.loop))
        self.do(lambda: [self.connect(client) for client in self.clients], 0)

    def spawn(self, name, work):
        self.tasks.append(self.loop.create_task(work, name=name))

    def connect(self, client):
        wire = Wire(self.loop)
        handlers = {"attach": sessions.attach, "detach": sessions.detach}
        dispatcher = Dispatcher(self.manager, handlers)  # type: ignore[arg-type]  # as far as used
        wire.connection = ServerConnection(wire, context=self.house, dispatcher=dispatcher, peer="a test")  # type: ignore[arg-type]
        client.connect(wire)

    def do(self, action, turns):
        """Run `action` on the loop, give it some iterations, and check what the clients have read."""
        self.loop.call_soon(action)  # after what is ready, so it may run between two steps of any task
        for _ in range(1 + turns):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()
        assert self.faults == []
        for task in [task for task in self.tasks if task.done()]:
            self.tasks.remove(task)
            task.result()
        for client in self.clients:
            client.look()

    # --- the session ---

    def write(self, items):
        if self.session.ledger.failure is None:
            self.session.ledger.write(items, durable=False).add_done_callback(asyncio.Future.exception)

    @rule(what=st.lists(kinds, min_size=1, max_size=3), at_once=st.booleans(), turns=patience)
    def it_commits(self, what, at_once, turns):
        shows = [shown(kind) for kind in what]
        self.do(lambda: self.write([note(*shows)] if at_once else [note(one) for one in shows]), turns)

    @rule(what=kinds, turns=patience)
    def it_commits_successfully(self, what, turns):
        self.do(lambda: self.write_through(what), turns)

    def write_through(self, what):
        self.write([note(shown(what))])
        self.disk_catches_up()

    @rule(count=few, progress=st.booleans(), turns=patience)
    def it_shows_live_events(self, count, progress, turns):
        self.do(lambda: self.show_live(count, progress), turns)

    def show_live(self, count, progress, filling=""):
        found: list[events.Event] = []
        for _ in range(count):
            self.live_ones += 1
            text = f"{self.live_ones}@{self.session.ledger.shown_seq} {filling}"
            found.append(
                events.ToolProgress("c", text, session="s_1") if progress else events.TextDelta(text, session="s_1")
            )
        self.session.ledger.live(found)

    # --- its journal ---

    def disk_catches_up(self):
        while self.disk.submitted:
            self.disk.store()
        while self.disk.unheard:
            self.disk.tell()

    @precondition(lambda self: self.disk.submitted)
    @rule(count=few)
    def a_commit_reaches_the_disk(self, count):
        for _ in range(min(count, len(self.disk.submitted))):
            self.disk.store()

    @precondition(lambda self: self.disk.unheard)
    @rule(count=few, turns=patience)
    def a_commit_is_reported(self, count, turns):
        self.do(lambda: [self.disk.tell() for _ in range(min(count, len(self.disk.unheard)))], turns)

    @precondition(lambda self: self.disk.reads)
    @rule(pick=numbers, early=st.booleans(), turns=patience)
    def a_read_ends(self, pick, early, turns):
        self.do(lambda: self.disk.answer(pick, early=early), turns)

    @precondition(lambda self: self.disk.submitted)
    @rule(really=numbers, turns=patience)
    def a_commit_fails(self, really, turns):
        if not really:
            self.do(self.disk.fail, turns)

    @precondition(lambda self: self.session.ledger.failure and not self.disk.submitted and not self.disk.unheard)
    @rule(turns=patience)
    def the_session_begins_anew(self, turns):
        async def begin():
            row = await self.disk.row("s_1") or new_row()
            await self.session.reload(row)
            await self.session.load()

        self.do(lambda: self.spawn("reload", begin()), turns)

    # --- its clients ---

    @rule(client=who, where=cursors, turns=patience)
    def a_client_attaches(self, client, where, turns):
        """Attach; also repeatedly, and while an attach is in progress."""
        one = self.clients[client]
        if one.wire.is_closed:
            self.do(lambda: self.connect(one), 0)
        self.do(lambda: one.attach(where), turns)

    @rule(client=who, where=cursors, what=kinds, before=st.integers(0, 3), turns=patience)
    def a_client_attaches_while_it_commits(self, client, where, what, before, turns):
        self.a_client_attaches(client, where, before)
        self.do(lambda: self.write_through(what), turns)

    @rule(client=who, turns=patience)
    def a_client_detaches(self, client, turns):
        one = self.clients[client]
        if not one.wire.is_closed:
            self.do(lambda: one.send("detach"), turns)

    @rule(client=who, high=highs)
    def a_client_stops_reading(self, client, high):
        self.clients[client].wire.high = high

    @rule(client=who, size=st.sampled_from([1, 100, 10_000, 200_000]), turns=patience)
    def a_client_reads_something(self, client, size, turns):
        self.do(lambda: self.clients[client].wire.take(size), turns)

    @rule(client=who, turns=patience)
    def a_client_reads_again(self, client, turns):
        self.do(lambda: self.read_again(self.clients[client].wire), turns)

    def read_again(self, wire):
        wire.high = None
        wire.take(len(wire.held))

    @rule(client=who, turns=patience)
    def a_client_is_lost(self, client, turns):
        self.do(self.clients[client].wire.abort, turns)

    @rule(seconds=st.sampled_from([FAREWELL_S, STALL_S]), turns=patience)
    def time_passes(self, seconds, turns):
        def forward():
            self.loop.now += seconds

        self.do(forward, turns)

    @precondition(lambda self: self.session.ledger.failure is None)
    @rule(client=who, kind=st.sampled_from(["frames", "bytes", "live"]))
    def a_client_never_reads(self, client, kind):
        """Let the client read nothing until it is disconnected."""
        one = self.clients[client]
        self.do(lambda: None, MANY_TURNS)
        if one.stage != "live" or one.answered != one.requests or one.wire.is_closed:
            return
        one.wire.high = 0
        for _ in range(3 + MAX_BYTES // len(LONG)):  # one for the wire, and one that the limit does not count
            self.do(lambda: self.pile_up(kind), MANY_TURNS)
        assert one.wire.is_closed or self.session.ledger.failure is not None

    def pile_up(self, kind):
        match kind:
            case "frames":
                self.write([note(*[shown("user")] * (MAX_FRAMES // 10))])
            case "bytes":
                self.write([note(shown("long"))])
            case _:
                self.show_live(1, progress=True, filling=" " * len(LONG))
        self.disk_catches_up()

    # --- invariants ---

    @invariant()
    def the_queue_of_a_client_is_bounded(self):
        for client in self.clients:
            waiting = client.wire.connection._outbox._waiting
            assert sum(piece.frames for piece in waiting) <= MAX_FRAMES
            assert sum(len(piece.encode()) for piece in list(waiting)[:-1]) <= MAX_BYTES

    def teardown(self):
        """Once everything works again, every client gets every event, whatever happened before."""
        try:
            self.drain()
            for client in self.clients:
                if client.wire.is_closed or not client.wants_to_follow:
                    self.a_client_attaches(self.clients.index(client), "own", MANY_TURNS)
            self.drain()
            for client in self.clients:
                assert (client.stage, client.seq) == ("live", len(self.disk.lines))
            assert self.tasks == []
        finally:
            self.close()

    def drain(self):
        self.do(self.disk_catches_up, MANY_TURNS)
        for client in self.clients:
            self.do(lambda client=client: self.read_again(client.wire), MANY_TURNS)
        while self.disk.reads:
            self.do(lambda: self.disk.answer(0, early=False), MANY_TURNS)

    def close(self):
        for client in self.clients:
            client.wire.abort()
        for task in self.tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()


@pytest.mark.timeout(240)  # a failing example takes a minute to shrink; a passing run takes seconds
def test_clients_get_every_event_once_and_in_order_whatever_happens():
    thorough = settings(max_examples=150, stateful_step_count=40, deadline=None, report_multiple_bugs=False)
    run_state_machine_as_test(Hub, settings=thorough)


# --- regressions ----------------------------------------------------------------------------------------------------


@pytest.fixture
def hub():
    machine = Hub()
    yield machine
    machine.teardown()


def test_a_late_response_to_a_superseded_attach_has_no_effect(hub):
    hub.it_commits_successfully("user", MANY_TURNS)
    hub.a_client_attaches(0, "none", MANY_TURNS)
    hub.a_client_attaches(0, "start", MANY_TURNS)
    hub.a_client_stops_reading(0, 0)
    hub.a_read_ends(0, early=False, turns=MANY_TURNS)
    hub.time_passes(STALL_S, MANY_TURNS)
    hub.a_client_reads_again(0, MANY_TURNS)
    assert hub.clients[0].evictions == 1


def test_stored_but_unshown_events_are_not_replayed_early(hub):
    hub.it_commits_successfully("user", MANY_TURNS)
    hub.a_client_attaches(0, "start", MANY_TURNS)
    hub.it_shows_live_events(1, progress=False, turns=MANY_TURNS)
    hub.it_commits(["assistant"], at_once=True, turns=0)
    hub.a_commit_reaches_the_disk(1)
    hub.a_read_ends(0, early=False, turns=MANY_TURNS)
    assert (hub.clients[0].stage, hub.clients[0].seq) == ("live", 1)


def test_an_attach_of_a_disconnected_client_does_not_wait_for_it_to_read(hub):
    hub.a_client_stops_reading(0, 0)
    hub.a_client_attaches(0, "none", MANY_TURNS)
    hub.do(lambda: [hub.pile_up("live") for _ in range(2 + MAX_BYTES // len(LONG))], MANY_TURNS)
    assert hub.clients[0].wire.is_closed
    hub.a_read_ends(0, early=False, turns=MANY_TURNS)
    assert hub.tasks == []


def test_the_cursor_after_a_replay_never_exceeds_the_shown_events(hub):
    hub.it_commits_successfully("user", MANY_TURNS)
    hub.a_client_attaches(0, "start", MANY_TURNS)
    hub.it_commits(["user"], at_once=True, turns=0)
    hub.a_commit_reaches_the_disk(1)
    hub.a_read_ends(0, early=False, turns=MANY_TURNS)
    hub.a_client_detaches(0, MANY_TURNS)
    hub.a_client_attaches(0, "own", MANY_TURNS)
    assert hub.clients[0].stage == "live"
