"""One session's records and events: numbers them, commits them, and shows them once they are committed.

Whatever changes a session goes through `write`: in one synchronous step the records are numbered, folded into the
transcript and handed to the journal; their events reach subscribers when the journal says that they are committed,
in the same order (`docs/protocol.md`, Order).
"""

import asyncio
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Protocol

import msgspec

from zotd.core import records
from zotd.core.budget import counted
from zotd.core.fold import Fold
from zotd.core.lineage import RewindPoint, records_left
from zotd.core.ports import Journal, JournalEntry, SessionRow, StorageError
from zotd.core.records import AnyRecord, UsageRow
from zotd.core.transcript import Transcript
from zotd.ledger.titles import title_of
from zotd.wire import events
from zotd.wire.base import ENCODER
from zotd.wire.content import Tokens

MESSAGE_EVENTS = (events.UserMessage, events.AssistantMessage, events.ToolResultEvent)
"""Events that are messages of the history people see."""

DAEMON_EVENTS = (events.QueueChanged, events.SessionChanged, events.Rewound, events.Forked)
"""Events that do not exist on stdio (`docs/protocol.md`)."""


_EVENTS = attrgetter("events")


class LetGoError(StorageError):
    """The session has left memory while something of it was on its way: nothing was recorded."""

    def __init__(self, session: str) -> None:
        """`session` is the id of the session."""
        super().__init__(f"the session {session} was closed meanwhile; send it again")


class Subscriber(Protocol):
    """A follower of a session. Both methods return at once and never raise."""

    def committed(self, shown: Sequence[events.Event], data: bytes, last_seq: int) -> None:
        """Events with `seq`, and the same as NDJSON."""
        ...

    def live(self, shown: Sequence[events.Event], data: bytes) -> None:
        """Events without `seq`; may be merged."""
        ...


class Shown(msgspec.Struct, frozen=True):
    """A record, and the events that it shows."""

    record: AnyRecord
    shows: Sequence[events.Event] = ()


class Ledger:
    """The only writer of a session's row, transcript and journal."""

    def __init__(self, row: SessionRow, journal: Journal, transcript: Transcript, *, addressed: bool) -> None:
        """`addressed`: events carry `session` and `seq`; on stdio they carry neither."""
        self.row = row
        self.journal = journal
        self.failure: StorageError | None = None
        """Why the journal could not write; what is in memory is ahead of the disk then, until `reset`."""
        self._addressed = addressed
        self._subscribers: dict[Subscriber, None] = {}
        self.observers: list[Callable[[Sequence[events.Event]], None]] = []
        """Told of committed events, as they are before a carrier's changes; they return at once and never raise."""
        self._failed: Callable[[], None] | None = None
        self.shown_seq = row.seq
        """`seq` of the last event that subscribers have got."""
        self._state = Fold(transcript, row.base)
        self.transcript = transcript
        """What the records say, as far as they are loaded. `reset` replaces it; do not keep it over an `await`."""
        self.label = row.id if addressed else None
        """The `session` field of events."""
        self.loaded = row.records == 0
        """The transcript is in memory. Without it only settings may be written; a long session is then cheap to show."""
        self._under_way = 0
        """Commits that the journal has not answered."""
        self.settled = asyncio.Event()
        """All that was written is on disk, or has failed."""
        self.settled.set()
        self.is_let_go = False
        """The session has left memory, so nothing more is written: the next one that is read would not know of it."""

    @property
    def damage(self) -> StorageError | None:
        """Why nothing more is written: what is stored of the session cannot all be read."""
        return self.journal.damage(self.row.id)

    def load(self, stored: Sequence[AnyRecord]) -> None:
        """Fold the records from number `row.base` on, as the journal has them."""
        numbered = list(enumerate(stored, self.row.base))
        rewinds = [RewindPoint(n, one.to, n, one.to) for n, one in numbered if isinstance(one, records.RewindRow)]
        self._state.replay(numbered, records_left(rewinds))
        self.loaded = True

    def reset(self, row: SessionRow) -> None:
        """Begin anew from what the journal holds, after it could not write; subscribers stay. `load` may follow."""
        self.row = row
        self.transcript = Transcript()
        self._state = Fold(self.transcript, row.base)
        self.failure = None
        self.shown_seq = row.seq
        self.loaded = row.records == 0

    def let_go(self) -> None:
        """Refuse to write from now on."""
        self.is_let_go = True

    def watch_failure(self, failed: Callable[[], None]) -> None:
        """Call `failed` when the journal cannot write for the first time since `reset`; it returns at once."""
        self._failed = failed

    @property
    def followers(self) -> int:
        """How many subscribers there are."""
        return len(self._subscribers)

    def title(self, text: str) -> None:
        """Name a session that has no name after its first prompt; stored with the next record."""
        if not self.row.name and text.strip():
            self.row = msgspec.structs.replace(self.row, name=title_of(text))

    @property
    def rest(self) -> str:
        """`state` of the row when nothing runs; what waits makes a restart look into the session."""
        return "held" if self.transcript.waiting else "idle"

    def subscribe(self, subscriber: Subscriber) -> None:
        """Everything shown after this call goes to `subscriber` too."""
        self._subscribers[subscriber] = None

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Harmless when it is not subscribed."""
        self._subscribers.pop(subscriber, None)

    def live(self, shown: Sequence[events.Event]) -> None:
        """Show events that are not records; they already carry the session."""
        if not shown or not self._subscribers:
            return
        data = ENCODER.encode_lines(shown)
        for subscriber in list(self._subscribers):
            subscriber.live(shown, data)

    def write(
        self,
        items: Sequence[Shown],
        *,
        durable: bool,
        usage: Tokens | None = None,
        context: int | None = None,
        accepted: Callable[[], None] | None = None,
        past: Fold | None = None,
        **changes: object,
    ) -> asyncio.Future[None]:
        """Record `items`; the result is done when they are committed and shown, and fails with StorageError.

        `usage` is added to the session's figures, `context` replaces the size of the last request, `changes` are
        other fields of the row. `accepted` is called when they are committed, before any event is shown: there the
        response goes out that has to precede the events it causes. `past`: what the transcript goes back to first.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        failure = LetGoError(self.row.id) if self.is_let_go else self.failure
        if failure is not None:
            done.set_exception(failure)
            return done
        if past is not None:
            self._state.go_back(past)
        entries, shown = self._record(items)
        self.row = msgspec.structs.replace(
            self.row,
            seq=self.row.seq + len(shown),
            records=self.row.records + len(entries),
            messages=len(self.transcript.messages) if self.loaded else self.row.messages,
            usage=self.row.usage + usage if usage else self.row.usage,
            spent=self._spent(items),
            context=self.row.context if context is None else context,
            base=self._state.base if self.loaded else self.row.base,
            failed=_has_failed(items, before=self.row.failed),
            updated=items[-1].record.time if items else self.row.updated,
            **changes,
        )
        data = b"".join(map(_EVENTS, entries))
        last = self.row.seq

        def finish(error: StorageError | None) -> None:
            self._under_way -= 1
            if not self._under_way:
                self.settled.set()
            if error is not None:
                self._fail(error)
            else:
                if accepted is not None:
                    accepted()
                self._show(items, shown, data, last)
            if done.done():  # the waiter was cancelled; the commit stays
                return
            done.set_result(None) if error is None else done.set_exception(error)

        self._under_way += 1
        self.settled.clear()
        self.journal.commit(self.row, entries, durable=durable, done=finish)
        return done

    def _spent(self, items: Sequence[Shown]) -> Tokens:
        spent = self.row.spent
        for item in items:
            if isinstance(item.record, UsageRow):
                spent += counted(item.record)
        return spent

    def _tell(self, items: Sequence[Shown]) -> None:
        if self.observers:
            told: list[events.Event] = []
            for item in items:
                told += item.shows
            for observer in list(self.observers):
                observer(told)

    def _fail(self, error: StorageError) -> None:
        if self.failure is None:  # the commits behind a failed one fail because of it: theirs is not the reason
            self.failure = error
            if self._failed is not None:
                self._failed()

    def _record(self, items: Sequence[Shown]) -> tuple[list[JournalEntry], list[events.Event]]:
        """Number the items and fold them; their entries, and their events in order."""
        entries: list[JournalEntry] = []
        shown: list[events.Event] = []
        for item in items:
            entry, stamped = self._seal(item, len(entries), len(shown))
            entries.append(entry)
            shown.extend(stamped)
            if self.loaded:
                self._state.apply(entry.number, item.record)
        return entries, shown

    def _seal(self, item: Shown, records_before: int, events_before: int) -> tuple[JournalEntry, list[events.Event]]:
        first = self.row.seq + events_before + 1
        stamped: list[events.Event] = []
        for event in item.shows:
            if self._addressed:
                stamped.append(msgspec.structs.replace(event, session=self.row.id, seq=first + len(stamped)))
            elif not isinstance(event, DAEMON_EVENTS):
                stamped.append(_plain(event))
        return entry_of(self.row.records + records_before + 1, item.record, first, stamped), stamped

    def _show(self, items: Sequence[Shown], shown: list[events.Event], data: bytes, last: int) -> None:
        self._tell(items)
        self.shown_seq = last
        if shown:
            for subscriber in list(self._subscribers):
                subscriber.committed(shown, data, last)


def entry_of(number: int, record: AnyRecord, first_seq: int, shown: Sequence[events.Event]) -> JournalEntry:
    """The record with this number and its events, as they are sent; the first of them has `first_seq`."""
    messages = 0
    for event in shown:
        messages += isinstance(event, MESSAGE_EVENTS)
    return JournalEntry(
        number=number,
        record=record,
        first_seq=first_seq if shown else 0,
        last_seq=first_seq + len(shown) - 1 if shown else 0,
        events=ENCODER.encode_lines(shown) if shown else b"",
        messages=messages,
    )


def _has_failed(items: Sequence[Shown], *, before: bool) -> bool:
    """Whether the last run has ended with an error, after these records."""
    for item in items:
        match item.record:
            case records.Attempt() | records.Clear() | records.RewindRow():
                before = False
            case records.Note(level="error"):
                before = True
            case _:
                pass
    return before


def _plain(event: events.Event) -> events.Event:
    """The event as `zot rpc` sends it: without what only the daemon adds (`docs/protocol.md`)."""
    match event:
        case events.UserMessage():
            return msgspec.structs.replace(event, input=None, run=None, sender=None)
        case events.ToolResultEvent():
            return msgspec.structs.replace(event, name=None, extension=None, time=None)
        case events.Done():
            return msgspec.structs.replace(event, run=None)
        case events.GuardNote(extension=extension, text=text):
            return events.ExtNotify(extension, "warn", text)
        case _:
            return event
