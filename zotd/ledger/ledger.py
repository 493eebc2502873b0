"""One session's records and events: numbers them, commits them, and shows them once they are committed.

Whatever changes a session goes through `write` or `defer`: in one synchronous step the records are numbered, folded
into the transcript and handed to the journal (`defer`: with the next commit); their events reach subscribers when the
journal says that they are committed, in the same order (`docs/protocol.md`, Order). One event may be shown before its
commit, because a restart would record the same bytes: `begin_reply`.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import attrgetter

import msgspec
from msgspec import Struct, field

from zotd.core import model_questions, records
from zotd.core.budget import counted
from zotd.core.fold import Fold
from zotd.core.lineage import RewindPoint, records_left
from zotd.core.ports import Journal, JournalEntry, SessionRow, StorageError
from zotd.core.records import AnyRecord, UsageRow
from zotd.core.transcript import Transcript
from zotd.ledger.entries import PendingCommit, addressed, begins_reply, entry_of, has_failed, plain
from zotd.ledger.subscriber import Subscriber
from zotd.ledger.titles import title_of
from zotd.wire import events
from zotd.wire.base import ENCODER
from zotd.wire.content import Tokens

DEFERRED_S = 0.005
"""Longest time that a deferred record waits for another commit. A call of a `safe` tool such as `read` takes less, and
a person does not notice it when the call takes longer."""

_EVENTS, _RECORD = attrgetter("events"), attrgetter("record")


class LetGoError(StorageError):
    """The session has left memory while something of it was on its way: nothing was recorded."""

    def __init__(self, session: str) -> None:
        """`session` is the id of the session."""
        super().__init__(f"the session {session} was closed meanwhile; send it again")


class Shown(msgspec.Struct, frozen=True):
    """A record, and the events that it shows."""

    record: AnyRecord
    shows: Sequence[events.Event] = ()


class _Staged(Struct, frozen=True):
    """Numbered records with their events."""

    items: Sequence[Shown]
    entries: list[JournalEntry]
    shown: Sequence[events.Event]
    data: bytes
    """The events as NDJSON."""
    last_seq: int


class _ShownEarly(Struct, frozen=True):
    """A record whose event subscribers have got before its commit."""

    item: Shown
    seq: int
    takers: set[Subscriber] = field(default_factory=set)

    def put_before(self, items: Sequence[Shown]) -> Sequence[Shown]:
        """Return the records to store: the event is shown by the usage of its request, or else by its own record."""
        first = items[0] if items else None
        if first and isinstance(first.record, UsageRow) and first.record.purpose not in model_questions.BESIDE:
            return [Shown(first.record, [*self.item.shows, *first.shows]), *items[1:]]
        return [self.item, *items]


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
        self.watchers: list[Callable[[Sequence[Shown]], None]] = []
        """Told of committed records with their events, for figures, traces and warnings; they return at once and never raise."""
        self.failure_watchers: list[Callable[[], None]] = []
        """Told when the journal cannot write for the first time since `reset`; they return at once and never raise."""
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
        self._deferred: PendingCommit | None = None
        """What goes to the journal with the next commit, or when `_due` fires."""
        self._due: asyncio.TimerHandle | None = None
        self._early: _ShownEarly | None = None
        """Set until its event is committed; not in `row` yet while its `seq` is the next one."""
        self.settled = asyncio.Event()
        """All that was written or deferred is on disk, or has failed."""
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

    def reset(self, row: SessionRow, missed: Sequence[events.Event] = (), data: bytes = b"") -> None:
        """Begin anew from what the journal holds, after it could not write; subscribers stay. `load` may follow.

        `missed`: the stored events behind `shown_seq`, whose commits were reported as failed, and the same as NDJSON.
        """
        self.row = row
        self.transcript = Transcript()
        self._state = Fold(self.transcript, row.base)
        self.failure = None
        self.shown_seq = row.seq
        self.loaded = row.records == 0
        self._show(_Staged([], [], missed, data, row.seq), None)
        if self._early is not None and self._early.seq <= row.seq:
            self._early = None

    def let_go(self) -> None:
        """Refuse to write from now on."""
        self._hand_over_deferred()
        self.is_let_go = True

    @property
    def followers(self) -> int:
        """How many subscribers there are."""
        return len(self._subscribers)

    def title(self, text: str) -> None:
        """Name a session that has no name after its first prompt; stored with the next record."""
        if not self.row.name and text.strip():
            self.row = msgspec.structs.replace(self.row, name=title_of(text))

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
        refusal = self._refusal()
        if refusal is not None:
            done.set_exception(refusal)
            return done
        if past is not None:
            self._state.go_back(past)
        self._put(self._stage(items, usage, context, changes), accepted)
        self._hand_over(done, durable=durable)
        return done

    def defer(
        self,
        items: Sequence[Shown],
        *,
        usage: Tokens | None = None,
        context: int | None = None,
        then: Callable[[], None] | None = None,
        **changes: object,
    ) -> None:
        """Record `items` with the next commit, and at the latest after `DEFERRED_S`; they are shown then.

        The arguments are those of `write`; `then` is called when they have been shown.

        Raises:
            StorageError: an earlier commit has failed. If this one fails, `write` raises it from then on.
        """
        refusal = self._refusal()
        if refusal is not None:
            raise refusal
        pending = self._put(self._stage(items, usage, context, changes))
        if then is not None:
            pending.shows.append(then)
        self._hand_over_later()

    async def begin_reply(self, item: Shown) -> None:
        """Show the one event of this record: a model has begun to answer the request in flight. Waits until it is shown.

        Usually it is shown at once. The next commit stores it, with the usage of the request if that has come by then. If
        the process ends before, the next one finds a request without a reply, and records the same event with the same
        `seq` (`zotd.runs.recovery.reply_begun`). That requires that all earlier events are on disk: if not, this waits
        for a commit.

        Raises:
            StorageError: like `write`.
        """
        if self.journal.is_immediate or self._under_way or self._deferred is not None or self._refusal() is not None:
            await self.write([item], durable=False)
            return
        entry, (event,) = self._seal(item, 0, 0)
        self._early = early = _ShownEarly(item, entry.first_seq)
        for subscriber in list(self._subscribers):
            if subscriber.early(event, entry.events, early.seq):
                early.takers.add(subscriber)
        self.settled.clear()
        if len(early.takers) < len(self._subscribers):  # the others must not get what follows before it
            await self.write([], durable=False)
        else:
            self._hand_over_later()

    @property
    def is_ahead(self) -> bool:
        """Whether subscribers have got an event that is not committed yet; `settled` tells when it is."""
        return self._early is not None

    def _refusal(self) -> StorageError | None:
        return LetGoError(self.row.id) if self.is_let_go else self.failure

    def _stage(
        self, items: Sequence[Shown], usage: Tokens | None, context: int | None, changes: Mapping[str, object]
    ) -> _Staged:
        """Number and fold the items; the row is then the one after them."""
        if self._early is not None and self._owes_early and not begins_reply(map(_RECORD, items)):
            items = self._early.put_before(items)  # clients have the event, so no other one may get its number
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
            failed=has_failed(map(_RECORD, items), before=self.row.failed),
            updated=items[-1].record.time if items else self.row.updated,
            **changes,
        )
        return _Staged(items, entries, shown, b"".join(map(_EVENTS, entries)), self.row.seq)

    @property
    def _owes_early(self) -> bool:
        """Whether the event shown early is in no commit yet, or that commit has failed and `reset` went back."""
        return self._early is not None and self._early.seq == self.row.seq + 1

    def _put(self, staged: _Staged, accepted: Callable[[], None] | None = None) -> PendingCommit:
        """Add it to the next commit."""
        if self._deferred is None:
            self._deferred = PendingCommit()
            self.settled.clear()
        self._deferred.add(staged.entries, partial(self._show, staged, accepted))
        return self._deferred

    def _hand_over_later(self) -> None:
        if self.journal.is_immediate:
            self._hand_over_deferred()
        elif self._due is None:
            self._due = asyncio.get_running_loop().call_later(DEFERRED_S, self._hand_over_deferred)

    def _hand_over_deferred(self) -> None:
        if self._owes_early and self._refusal() is None:
            self._put(self._stage([], None, None, {}))
        if self._deferred is not None:
            self._hand_over(None, durable=False)

    def _hand_over(self, done: asyncio.Future[None] | None, *, durable: bool) -> None:
        """Commit what is deferred; `done` is called with the outcome."""
        pending, self._deferred = self._deferred, None
        assert pending is not None
        if self._due is not None:
            self._due.cancel()
            self._due = None
        self._under_way += 1
        # Clients may get the beginning of a reply before its commit. What they got before it must then be on disk:
        # after a power failure, the beginning of the reply would otherwise get another number.
        durable = durable or self.transcript.awaits_reply
        self.journal.commit(self.row, pending.entries, durable=durable, done=partial(self._committed, pending, done))

    def _committed(self, pending: PendingCommit, done: asyncio.Future[None] | None, error: StorageError | None) -> None:
        self._under_way -= 1
        if error is None and self.failure is not None:
            error = self.failure  # stored, as one before it that was reported as failed: `reset` shows both
        if error is not None:
            self.fail(error)
        else:
            for show in pending.shows:
                show()
        if not self._under_way and self._deferred is None and (self._early is None or not self._owes_early):
            self.settled.set()
        if done is None or done.done():  # the waiter was cancelled; the commit stays
            return
        done.set_result(None) if error is None else done.set_exception(error)

    def _spent(self, items: Sequence[Shown]) -> Tokens:
        spent = self.row.spent
        for item in items:
            if isinstance(item.record, UsageRow):
                spent += counted(item.record)
        return spent

    def _tell(self, items: Sequence[Shown]) -> None:
        for watcher in self.watchers:
            watcher(items)
        told = [event for item in items for event in item.shows]
        for observer in list(self.observers):
            observer(told)

    def fail(self, error: StorageError) -> None:
        """Refuse to write because of this, until `reset`."""
        if self.failure is None:  # the commits behind a failed one fail because of it: theirs is not the reason
            self.failure = error
            for watcher in self.failure_watchers:
                watcher()

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
        if item.shows:
            stamped = addressed(item.shows, self.row.id, first) if self._addressed else plain(item.shows)
        return entry_of(self.row.records + records_before + 1, item.record, first, stamped), stamped

    def _show(self, staged: _Staged, accepted: Callable[[], None] | None) -> None:
        if accepted is not None:
            accepted()
        if staged.items and (self.watchers or self.observers):
            self._tell(staged.items)
        self.shown_seq = staged.last_seq
        if not staged.shown:
            return
        takers = () if self._early is None else self._takers_of(self._early, staged.shown[0])
        for subscriber in list(self._subscribers):
            shown, data = staged.shown, staged.data
            if subscriber in takers:
                shown, data = shown[1:], data[data.index(b"\n") + 1 :]
            if shown:
                subscriber.committed(shown, data, staged.last_seq)

    def _takers_of(self, early: _ShownEarly, event: events.Event) -> Collection[Subscriber]:
        """Who got this committed event early."""
        if event.seq != early.seq:
            return ()
        self._early = None
        return early.takers
