"""One connection follows one session: what it missed from the journal, then live, with no gap and no duplicate.

    catching up --(cursor has reached what is shown)--> live

The switch and the check happen in one step of the loop: it goes live when the client has exactly what is shown, so that
whatever is shown later is new to it. While catching up, committed events are not kept: they are read from the journal,
which is the authority. Live ones are kept, merged, as long as nothing newer replaces them.
"""

from collections.abc import Sequence

from zotd.api.context import Tally
from zotd.api.outbox import LiveBatch, Outbox
from zotd.sessions.session import Session
from zotd.store.errors import UnreadableSessionError
from zotd.wire import events
from zotd.wire.base import encode

PAGE_BYTES = 256 * 1024
"""Of missed events, read and sent at a time."""

_REPLACES_LIVE = (events.AssistantMessage, events.TurnStart, events.TurnEnd, events.ToolResultEvent, events.Done)


class OutboxSubscriber:
    """A `ledger.ledger.Subscriber` that writes to a connection's outbox."""

    def __init__(self, session: Session, outbox: Outbox, tally: Tally) -> None:
        """Subscribes at once; `catch_up` has to follow."""
        self.session = session
        self._outbox = outbox
        self._tally = tally
        self._is_live = False
        self._stopped = False
        self._kept = LiveBatch()
        session.ledger.subscribe(self)

    def committed(self, shown: Sequence[events.Event], data: bytes, last_seq: int) -> None:
        """Send them, if they are not read from the journal anyway."""
        if self._is_live:
            self._tally.count(events=len(shown))
            self._outbox.write(data, frames=len(shown), session=self.session.id, last_seq=last_seq)
        elif any(isinstance(event, _REPLACES_LIVE) for event in shown):
            self._kept = LiveBatch()

    def live(self, shown: Sequence[events.Event], data: bytes) -> None:
        """Send live events; while catching up, keep them."""
        if self._is_live:
            self._outbox.write_live(shown, data)
        else:
            self._kept.add(shown)
            self._outbox.check(self._kept.size)

    async def catch_up(self, cursor: int) -> None:
        """Send everything after `cursor`, which is not beyond what is shown; say `replay_complete`, and go live."""
        ledger = self.session.ledger
        if not self._stopped:  # else it has attached again while its snapshot was read
            self._outbox.sent[self.session.id] = cursor  # what the client has, should it be cut before it gets more
        while cursor < ledger.shown_seq and not self._stopped:
            try:
                reached, data = await ledger.journal.events_after(self.session.id, cursor, PAGE_BYTES)
            except UnreadableSessionError:
                break  # said below, instead of the events that cannot be shown; there will be no new ones
            await self._outbox.room()  # not behind the write: others of this connection may catch up as well
            if not self._stopped:
                if reached > ledger.shown_seq:  # stored, and not shown yet: it has its turn behind what is live by now
                    data = b"".join(data.splitlines(keepends=True)[: ledger.shown_seq - cursor])
                    reached = ledger.shown_seq
                self._tally.count(events=reached - cursor)
                self._outbox.write(data, session=self.session.id, last_seq=reached)
                cursor = reached
        if self._stopped:  # the client has left, or attached again: another follower serves it
            return
        # From here to the end of the method nothing else runs.
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
