"""Events as they are stored and sent, and the journal entries that hold them."""

from collections.abc import Sequence

import msgspec

from zotd.core import records
from zotd.core.ports import JournalEntry
from zotd.core.records import AnyRecord
from zotd.wire import events
from zotd.wire.base import ENCODER

MESSAGE_EVENTS = (events.UserMessage, events.AssistantMessage, events.ToolResultEvent)
"""Events that are messages of the history people see."""

DAEMON_EVENTS = (events.QueueChanged, events.SessionChanged, events.Rewound, events.Forked)
"""Events that do not exist on stdio (`docs/protocol.md`)."""


def addressed(shows: Sequence[events.Event], session: str, first_seq: int) -> list[events.Event]:
    """Return the events with the session and their numbers."""
    return [msgspec.structs.replace(event, session=session, seq=seq) for seq, event in enumerate(shows, first_seq)]


def plain(shows: Sequence[events.Event]) -> list[events.Event]:
    """Return the events as `zot rpc` sends them: without what only the daemon adds (`docs/protocol.md`)."""
    return [_plain(event) for event in shows if not isinstance(event, DAEMON_EVENTS)]


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


def _plain(event: events.Event) -> events.Event:
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


def has_failed(stored: Sequence[AnyRecord], *, before: bool) -> bool:
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
