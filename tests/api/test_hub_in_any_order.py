"""Whoever follows a session, however slowly and however often: all that it was promised comes once, and in order."""

import asyncio
from collections import deque
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.sessions.desk import TIME, Desk, new_row, session_of
from zotd.api.connection import Connection
from zotd.api.dispatch import Dispatcher
from zotd.api.house import Tally
from zotd.api.methods import sessions
from zotd.api.outbox import FAREWELL_S, HIGH_WATER_BYTES, MAX_BYTES, MAX_FRAMES, STALL_S
from zotd.api.presence import Presences
from zotd.core import records
from zotd.core.ports import StorageError
from zotd.sessions.ledger import Shown
from zotd.store.memory import Memory
from zotd.wire import events
from zotd.wire.api import SessionInfo
from zotd.wire.content import Text

PAGE = 50
"""Messages of a snapshot, when the client does not say how many."""

LONG = "x" * 100_000
"""Three of these are more than a page of a replay."""

MANY_TURNS = 10
"""Of the event loop: more than anything here takes that does not wait for the journal or for a client."""

REPLACING = {"assistant_message"}
"""Of the committed events here, those that say what live ones before them have said."""


# --- the neighbours ---------------------------------------------------------------------------------------------


class Clock(asyncio.SelectorEventLoop):
    """An event loop in which time passes when the test says so."""

    now = 0.0

    def time(self):
        return self.now


class Disk(Memory):
    """A journal in three steps: a commit is handed over, it is stored, and the session hears of it; reads take long."""

    def __init__(self):
        super().__init__()
        self.lines: list[bytes] = []
        """Every event that is stored; the first has the `seq` 1."""
        self.submitted = deque()
        self.unheard = deque()
        self.reads: list[asyncio.Future[bool]] = []
        """Those that wait; with True they get what was there when they began, else what is there now."""

    def commit(self, row, entries, *, durable, done):
        self.submitted.append((row, entries, durable, done))

    def store(self):
        row, entries, durable, done = self.submitted.popleft()
        outcomes: list[StorageError | None] = []
        super().commit(row, entries, durable=durable, done=outcomes.append)
        if outcomes == [None]:
            self.lines += [line for entry in entries for line in entry.events.splitlines()]
        self.unheard.append((done, outcomes[0]))

    def fail(self):
        *_, done = self.submitted.popleft()
        self.unheard.append((done, StorageError("no space left on device")))

    def tell(self):
        done, outcome = self.unheard.popleft()
        done(outcome)

    def answer(self, pick, *, early):
        self.reads.pop(pick % len(self.reads)).set_result(early)

    async def events_after(self, session, seq, limit_bytes):
        before = await super().events_after(session, seq, limit_bytes)
        return before if await self._wait() else await super().events_after(session, seq, limit_bytes)

    async def messages_before(self, session, seq, limit, left=()):
        before = await super().messages_before(session, seq, limit, left)
        return before if await self._wait() else await super().messages_before(session, seq, limit, left)

    async def _wait(self):
        gate = asyncio.get_running_loop().create_future()
        self.reads.append(gate)
        return await gate


class Manager:
    """Has one session."""

    def __init__(self, session):
        self.session = session
        self.hosting = SimpleNamespace(join=lambda _: None)

    async def get(self, _):
        return self.session

    def info(self, session):
        return SessionInfo(session.id, "", "/", "p", "m", "off", "yolo", session.state, TIME, TIME)

    def listen(self, _):
        return lambda: None

    def settle(self, session):
        pass


class Wire(asyncio.Transport):
    """A transport whose peer reads when the test says so; what was read is in `read`."""

    def __init__(self, loop):
        super().__init__()
        self.connection: Connection
        self.read = bytearray()
        self.held = bytearray()
        self.high: int | None = None
        """The peer does not read, and beyond so many bytes the transport has enough; None: it reads."""
        self.is_paused = False
        self.is_closed = False
        self.is_gone = False
        self._loop = loop

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def resume_reading(self):
        pass

    def is_closing(self):
        return self.is_closed

    def write(self, data):
        self.held += data
        if self.high is None:
            self.take(len(self.held))
        elif len(self.held) > self.high and not self.is_paused:
            self.is_paused = True
            self.connection.paused()

    def take(self, size):
        """The peer reads so many bytes."""
        self.read += self.held[:size]
        del self.held[:size]
        if self.is_paused and len(self.held) <= (self.high or 0) // 4:
            self.is_paused = False
            self.connection.resumed()
        if self.is_closed and not self.held:
            self.abort()

    def close(self):
        self.is_closed = True
        if not self.held:
            self.abort()

    def abort(self):
        """Also what a peer does that breaks down: nothing more is read."""
        self.is_closed = True
        self.held.clear()
        if not self.is_gone:
            self.is_gone = True
            self._loop.call_soon(self.connection.lost)


# --- a client -----------------------------------------------------------------------------------------------------


class Client:
    """Follows the session, and checks every frame that it reads."""

    def __init__(self, disk):
        self.disk = disk
        self.seq = 0
        """Of the last event that it has: its cursor."""
        self.wire: Wire
        self.requests = 0
        self.evictions = 0

    def connect(self, wire):
        self.wire = wire
        self.asked: dict[int, dict[str, object] | None] = {}
        """Its attachments by request, each with its cursor."""
        self.answered = 0
        """The last of its requests that has an answer."""
        self.stage = "away"
        self.known = 0
        """`seq` as far as this connection has told it."""
        self.replaced = 0
        self.last_live: int | None = None

    # --- what it sends ---

    def send(self, command, **fields):
        self.requests += 1
        frame = {"type": command, "id": self.requests, "session": "s_1"} | fields
        self.wire.connection.received(msgspec.json.encode(frame) + b"\n")

    def attach(self, where):
        own = {"epoch": self.disk.epoch, "seq": self.seq}
        cursor = {
            "own": own,
            "start": own | {"seq": 0},
            "future": own | {"seq": self.seq + 1000},
            "epoch": own | {"epoch": "another"},
            "none": None,
        }[where]
        self.asked[self.requests + 1] = cursor
        self.send("attach", **({"after": cursor} if cursor else {}))

    @property
    def wants_to_follow(self):
        return self.requests in self.asked

    # --- what it reads ---

    def look(self):
        *lines, rest = self.wire.read.split(b"\n")
        self.wire.read[:] = rest
        for line in lines:
            self._take(bytes(line))

    def _take(self, line):
        assert self.stage != "evicted", "something follows the last frame"
        frame = msgspec.json.decode(line)
        match frame:
            case {"type": "response"}:
                assert frame["success"], frame
                self._answer(frame["id"], frame.get("data"))
            case {"type": "evicted", "last_seq": last_seq}:
                assert last_seq == self.known
                self.evictions += 1
                self.stage = "evicted"
            case {"type": "replay_complete", "seq": seq}:
                assert (self.stage, seq) == ("replay", self.seq)
                self.stage = "live"
            case {"seq": seq}:
                self._committed(frame["type"], seq, line)
            case {"type": "notice"}:
                assert self.stage in ("replay", "live")
            case {"type": "text_delta", "delta": text} | {"type": "tool_progress", "text": text}:
                self._live(text)
            case _:
                assert (frame["type"], self.stage) == ("presence", "live")

    def _answer(self, request, data):
        if request < self.answered:  # an attachment that it has given up since
            return
        self.answered = request
        if request not in self.asked:
            self.stage = "away"
            return
        self.stage, self.replaced, self.last_live = "replay", 0, None
        cursor = self.asked[request]
        if data["mode"] == "snapshot":
            assert data.get("reason") == self._why_not(cursor, data)
            assert [message["seq"] for message in data["messages"]] == self._messages(data["seq"])
            self.seq = data["seq"]
        else:
            assert self._why_not(cursor, data) is None
            assert cursor is not None
            self.seq = cursor["seq"]
        self.known = self.seq

    def _why_not(self, cursor, data):
        if cursor is None:
            return None
        if cursor["epoch"] != self.disk.epoch:
            return "epoch"
        return "future" if cursor["seq"] > data["seq"] else None

    def _messages(self, last):
        numbered = enumerate(self.disk.lines[:last], 1)
        return [seq for seq, line in numbered if b'_message"' in line[:40]][-PAGE:]

    def _committed(self, kind, seq, line):
        assert self.stage in ("replay", "live"), "it does not follow the session"
        assert seq == self.seq + 1
        assert seq <= len(self.disk.lines), "it is not stored"
        assert line == self.disk.lines[seq - 1]
        self.seq = self.known = seq
        if kind in REPLACING:
            self.replaced = seq

    def _live(self, text):
        assert self.stage == "live"
        for piece in text.split():
            number, shown_seq = map(int, piece.split("@"))
            assert shown_seq <= self.seq, "it has come before what was shown before it"
            assert shown_seq >= self.replaced, "what it says has been said"
            assert self.last_live in (None, number - 1), "one was lost, or came twice"
            self.last_live = number


# --- what happens -------------------------------------------------------------------------------------------------

who = st.integers(0, 2)
numbers = st.integers(0, 7)
few = st.integers(1, 4)
patience = st.sampled_from([0, 1, 2, MANY_TURNS, MANY_TURNS])
"""Turns that the event loop gets before the next thing happens."""
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
        self.session = session_of(new_row(), self.disk, Desk(None), self.spawn)  # type: ignore[arg-type]  # nothing runs
        self.manager = Manager(self.session)
        self.house = SimpleNamespace(
            tally=Tally(), manager=self.manager, presences=Presences(), opened_by_people=set(), spawn=self.spawn
        )
        self.live_ones = 0
        self.clients = [Client(self.disk) for _ in range(3)]
        self.loop.run_until_complete(self.connect_all())

    async def connect_all(self):
        for client in self.clients:
            self.connect(client)

    def spawn(self, name, work):
        self.tasks.append(self.loop.create_task(work, name=name))

    def connect(self, client):
        wire = Wire(self.loop)
        handlers = {"attach": sessions.attach, "detach": sessions.detach}
        dispatcher = Dispatcher(self.manager, handlers)  # type: ignore[arg-type]  # what they use
        wire.connection = Connection(wire, house=self.house, dispatcher=dispatcher, peer="a test")  # type: ignore[arg-type]
        client.connect(wire)

    def do(self, action, turns):
        """Do it on the loop; give that some turns, and look at what clients have read."""

        async def work():
            action()
            for _ in range(turns):
                await asyncio.sleep(0)

        self.loop.run_until_complete(work())
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
    def it_commits_and_all_goes_well(self, what, turns):
        self.do(lambda: self.write([note(shown(what))]), 0)
        self.do(self.disk_catches_up, turns)

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
    def the_session_hears_of_a_commit(self, count, turns):
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
        """Also for the second time, and while the first is under way."""
        one = self.clients[client]
        if one.wire.is_closed:
            self.do(lambda: self.connect(one), 0)
        self.do(lambda: one.attach(where), turns)

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
        """Until it is cut."""
        one = self.clients[client]
        self.do(lambda: None, MANY_TURNS)
        if one.stage != "live" or not one.wants_to_follow or one.wire.is_closed:
            return
        one.wire.high = 0
        for _ in range(2 + MAX_BYTES // len(LONG)):
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

    # --- what holds at all times ---

    @invariant()
    def what_waits_for_a_client_is_bounded(self):
        for client in self.clients:
            waiting = client.wire.connection._outbox._waiting
            assert sum(piece.frames for piece in waiting) <= MAX_FRAMES
            assert sum(len(piece.encode()) for piece in waiting) <= MAX_BYTES

    def teardown(self):
        """Whatever came before: once everything works again, everybody gets everything."""
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


@pytest.mark.timeout(120)  # a failing example takes a minute to shrink; a passing run takes seconds
def test_no_order_of_events_costs_a_client_anything():
    thorough = settings(max_examples=100, stateful_step_count=40, deadline=None, report_multiple_bugs=False)
    run_state_machine_as_test(Hub, settings=thorough)
