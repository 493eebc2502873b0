"""Events as they are stored and sent, the journal entries that hold them, and those of one commit."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from zotd.core import records
from zotd.core.ports import JournalEntry
from zotd.core.records import AnyRecord
from zotd.wire import events
from zotd.wire.base import ENCODER

MESSAGE_EVENTS = (events.UserMessage, events.AssistantMessage, events.ToolResultEvent)
"""Events that are messages of the history people see."""

DAEMON_EVENTS = (events.QueueChanged, events.SessionChanged, events.Rewound, events.Forked, events.PlanChanged)
"""Events that do not exist on stdio (`docs/protocol.md`)."""

_ADDED: Mapping[type[events.Event], Mapping[str, None]] = {
    events.UserMessage: {"input": None, "run": None, "sender": None},
    events.ToolResultEvent: {"name": None, "extension": None, "time": None},
    events.Done: {"run": None},
}
"""Fields that do not exist on stdio."""


class PendingCommit(msgspec.Struct):
    """Records that the journal gets as one commit; complete once it is handed over."""

    entries: list[JournalEntry] = msgspec.field(default_factory=list)
    shows: list[Callable[[], None]] = msgspec.field(default_factory=list)
    """Called in this order when the journal has them all."""

    def add(self, entries: Sequence[JournalEntry], show: Callable[[], None]) -> None:
        """Add records behind the earlier ones; `show` is called when the journal has them."""
        self.entries += entries
        self.shows.append(show)


def addressed(shows: Sequence[events.Event], session: str, first_seq: int) -> list[events.Event]:
    """Return the events with the session and their numbers."""
    return [msgspec.structs.replace(event, session=session, seq=seq) for seq, event in enumerate(shows, first_seq)]


def plain(shows: Sequence[events.Event]) -> list[events.Event]:
    """Return the events as `zot rpc` sends them: without what only the daemon adds (`docs/protocol.md`)."""
    found: list[events.Event] = []
    for event in shows:
        if (added := _ADDED.get(type(event))) is not None:
            found.append(msgspec.structs.replace(event, **added))
        elif isinstance(event, events.GuardNote):
            found.append(events.ExtNotify(event.extension, "warn", event.text))
        elif not isinstance(event, DAEMON_EVENTS):
            found.append(event)
    return found


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


def has_failed(stored: Iterable[AnyRecord], *, before: bool) -> bool:
    """Whether the last run has ended with an error, after these records."""
    for record in stored:
        match record:
            case records.Attempt() | records.Clear() | records.RewindRow():
                before = False
            case records.Note(level="error"):
                before = True
            case _:
                pass
    return before


def begins_reply(stored: Iterable[AnyRecord]) -> bool:
    """Whether the first of the records is the beginning of a reply."""
    first = next(iter(stored), None)
    return isinstance(first, records.Attempt) and first.answered
