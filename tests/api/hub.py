"""One session with a journal and clients, each of which proceeds only when the test says so."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import msgspec

from tests.sessions.desk import TIME
from zotd.api.connection import ServerConnection
from zotd.core.ports import JournalEntry, SessionRow, StorageError
from zotd.store.memory import Memory
from zotd.wire import api

Done = Callable[[StorageError | None], None]

PAGE = 50
"""Default number of messages in a snapshot."""

REPLACING = {"assistant_message"}
"""Committed events that contain, or make obsolete, the live events before them."""


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose clock is advanced by the test."""

    now = 0.0

    def time(self):
        return self.now


class Disk(Memory):
    """A journal in three steps: a commit is submitted, stored, and reported; reads take as long as the test wants."""

    def __init__(self):
        super().__init__()
        self.lines: list[bytes] = []
        """Every stored event; the first one has `seq` 1."""
        self.submitted: deque[tuple[SessionRow, Sequence[JournalEntry], bool, Done]] = deque()
        self.unheard: deque[tuple[Done, StorageError | None]] = deque()
        self.reads: list[asyncio.Future[bool]] = []
        """Pending reads; with True they return what was stored when they began, else what is stored now."""

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
    """A manager with a single session."""

    def __init__(self, session):
        self.session = session
        self.extension_pool = SimpleNamespace(join=lambda _: None)
        self.models = SimpleNamespace(warm=lambda _: None)

    async def get(self, _):
        return self.session

    def info(self, session):
        return api.SessionInfo(session.id, "", "/", "p", "m", "off", "yolo", session.state, TIME, TIME)

    def listen(self, _):
        return lambda: None

    def settle(self, session):
        pass


class Wire(asyncio.Transport):
    """A transport whose peer reads when the test says so; `read` has what was read."""

    def __init__(self, loop):
        super().__init__()
        self.connection: ServerConnection
        self.read = bytearray()
        self.held = bytearray()
        self.high: int | None = None
        """Size of the buffer that counts as full while the peer does not read; None: it reads."""
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
        if self.is_gone:
            return  # as asyncio's do: what is written to a lost connection is dropped
        self.held += data
        if self.high is None:
            self.take(len(self.held))
        elif len(self.held) > self.high and not self.is_paused:
            self.is_paused = True
            self.connection.paused()

    def take(self, size):
        """Let the peer read this many bytes."""
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
        """Also simulates a peer that breaks down: nothing more is read."""
        self.is_closed = True
        self.held.clear()
        if not self.is_gone:
            self.is_gone = True
            self._loop.call_soon(self.connection.lost)


# --- clients ------------------------------------------------------------------------------------------------------


class Client:
    """Follows the session, and checks every frame that it reads."""

    def __init__(self, disk):
        self.disk = disk
        self.seq = 0
        """`seq` of the last event received: the cursor."""
        self.wire: Wire
        self.requests = 0
        self.evictions = 0

    def connect(self, wire):
        self.wire = wire
        self.asked: dict[int, api.Cursor | None] = {}
        """Cursors of its attach requests, by request."""
        self.answered = 0
        """The last request that was answered."""
        self.stage = "away"
        self.known = 0
        """The highest `seq` that this connection has reported."""
        self.replaced = 0
        self.last_live: int | None = None

    # --- sending ---

    def send(self, command, **fields):
        self.requests += 1
        frame = {"type": command, "id": self.requests, "session": "s_1"} | fields
        self.wire.connection.received(msgspec.json.encode(frame) + b"\n")

    def attach(self, where):
        cursor = {
            "own": api.Cursor(self.disk.epoch, self.seq),
            "start": api.Cursor(self.disk.epoch, 0),
            "future": api.Cursor(self.disk.epoch, self.seq + 10**6),
            "epoch": api.Cursor("another", self.seq),
            "none": None,
        }[where]
        self.asked[self.requests + 1] = cursor
        self.send("attach", **({"after": cursor} if cursor else {}))

    @property
    def wants_to_follow(self):
        return self.requests in self.asked

    # --- reading ---

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
                assert last_seq <= self.known  # less if it was about to attach again, which misses nothing
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
        if request < self.answered:  # superseded by a later attach
            return
        self.answered = request
        if request not in self.asked:
            self.stage = "away"
            return
        self.stage, self.replaced, self.last_live = "replay", 0, None
        cursor = self.asked[request]
        if data["mode"] == "snapshot":
            assert data.get("reason") == self._why_not(cursor)
            assert [message["seq"] for message in data["messages"]] == self._messages(data["seq"])
            self.seq = data["seq"]
        else:
            assert self._why_not(cursor) is None
            assert cursor is not None
            self.seq = cursor.seq
        self.known = self.seq

    def _why_not(self, cursor):
        if cursor is None:
            return None
        if cursor.epoch != self.disk.epoch:
            return "epoch"
        return "future" if cursor.seq > len(self.disk.lines) else None

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
