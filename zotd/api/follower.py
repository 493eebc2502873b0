"""Sends one session's events to one connection: missed ones from the journal, then live ones, without gap or duplicate.

    catching up --(cursor has reached the last event shown)--> live

The comparison and the switch happen without an await in between, so every later event is new to the client. While
catching up, committed events are ignored here, because they are read from the journal. Live events are kept and merged,
until a committed event replaces them.
"""

from collections.abc import Callable, Sequence

from zotd.api.context import Tally
from zotd.api.outbox import LiveBatch, Outbox
from zotd.sessions.session import Session
from zotd.store.errors import UnreadableSessionError
from zotd.wire import events
from zotd.wire.base import encode

PAGE_BYTES = 256 * 1024
"""Missed events that are read and sent at a time."""

_REPLACES_LIVE = (events.AssistantMessage, events.TurnStart, events.TurnEnd, events.ToolResultEvent, events.Done)
"""Committed events that contain, or make obsolete, the live events before them."""


class OutboxSubscriber:
    """A `ledger.ledger.Subscriber` that writes to a connection's outbox."""

    def __init__(self, session: Session, outbox: Outbox, tally: Tally, *, evicted: Callable[[], object]) -> None:
        """Subscribe at once; the caller has to call `catch_up`. `evicted` is called when another daemon has the session."""
        self.session = session
        self._outbox = outbox
        self._tally = tally
        self._evicted = evicted
        self._is_live = False
        self._stopped = False
        self._kept = LiveBatch()
        session.ledger.subscribe(self)

    def committed(self, shown: Sequence[events.Event], data: bytes, last_seq: int) -> None:
        """Send committed events if live; otherwise they are read from the journal."""
        if self._is_live:
            self._tally.count(events=len(shown))
            self._outbox.write(data, frames=len(shown), session=self.session.id, last_seq=last_seq)
            if any(isinstance(event, events.Done) for event in shown):
                # Not at the end of the iteration: before that, an aborted run closes its request.
                self._outbox.flush()
        elif any(isinstance(event, _REPLACES_LIVE) for event in shown):
            self._kept = self._kept.lasting()

    def early(self, shown: events.Event, data: bytes, seq: int) -> bool:  # noqa: ARG002  (the bytes are enough)
        """Send the event if live; otherwise it is read from the journal once it is committed."""
        if self._is_live:
            self._tally.count(events=1)
            self._outbox.write(data, session=self.session.id, last_seq=seq)
        return self._is_live

    def live(self, shown: Sequence[events.Event], data: bytes) -> None:
        """Send live events; while catching up, keep them."""
        if any(isinstance(event, events.Evicted) for event in shown):
            self._outbox.write(data)
            self._evicted()
        elif self._is_live:
            self._outbox.write_live(shown, data)
        else:
            self._kept.add(shown)
            self._outbox.check(self._kept.size)

    async def catch_up(self, cursor: int) -> None:
        """Send all events after `cursor`, which must not exceed the shown ones, then `replay_complete`, and go live."""
        ledger = self.session.ledger
        if not self._stopped:  # else the client has attached again while its snapshot was read
            self._outbox.sent[self.session.id] = cursor  # what the client has, for the `evicted` event
        while cursor < ledger.shown_seq and not self._stopped:
            try:
                reached, data = await ledger.journal.events_after(self.session.id, cursor, PAGE_BYTES)
            except UnreadableSessionError:
                break  # reported below; a damaged session gets no new events
            # Before the write, because several sessions of a connection may catch up at the same time.
            await self._outbox.room()
            if not self._stopped:
                if reached > ledger.shown_seq:  # committed but not shown yet: `committed` sends them when they are
                    data = b"".join(data.splitlines(keepends=True)[: ledger.shown_seq - cursor])
                    reached = ledger.shown_seq
                self._tally.count(events=reached - cursor)
                self._outbox.write(data, session=self.session.id, last_seq=reached)
                cursor = reached
        if self._stopped:  # the client has disconnected, or attached again and has another follower
            return
        # No await from here on, or an event that is shown in between would be lost.
        if ledger.damage is not None:
            cursor = ledger.shown_seq
        blocked = ledger.damage or ledger.failure
        if blocked is not None:
            notice = events.Notice("error", str(blocked), session=self.session.id)
            self._outbox.write(encode(notice) + b"\n")
        self._is_live = True
        complete = encode(events.ReplayComplete(session=self.session.id, seq=cursor)) + b"\n"
        self._outbox.write(complete, session=self.session.id, last_seq=cursor)
        self._outbox.write(self._kept.encode())
        self._kept = LiveBatch()

    def stop(self) -> None:
        """Stop following, even while catching up."""
        self._stopped = True
        self.session.ledger.unsubscribe(self)
