"""Cuts pages of events out of stored records, for the journal in SQLite and the one in memory.

The events of a record are dense: its line n (from 0) has the `seq` `first_seq + n`. Cutting therefore needs no
decoding.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from zotd.core.lineage import Span
from zotd.core.ports import Stored
from zotd.wire import events
from zotd.wire.events import tag_of

MESSAGES = frozenset({tag_of(events.UserMessage), tag_of(events.AssistantMessage), tag_of(events.ToolResultEvent)})
"""Types of the events that make up the history people see."""


class _Head(msgspec.Struct):
    type: str


_HEAD = msgspec.json.Decoder(_Head)


def is_message(line: bytes) -> bool:
    """Whether an event is a message of the history people see; raises `MsgspecError` when it is no event."""
    return _HEAD.decode(line).type in MESSAGES


def check(lines: bytes) -> None:
    """Raise `MsgspecError` or `UnicodeDecodeError` if one of these lines is no event.

    SQLite does not detect data that a disk has changed, and a client cannot continue after a line that is not JSON. The
    check takes less than a microsecond per line.
    """
    lines.decode()  # the JSON decoder does not check the encoding of strings that it skips
    for line in lines.splitlines():
        _HEAD.decode(line)


def after(shown: Iterable[tuple[int, int, bytes]], seq: int, limit_bytes: int) -> tuple[int, bytes]:
    """Return the `seq` of the last event and the events after `seq` as NDJSON; `seq` itself if there are none.

    `shown` is (`first_seq`, `last_seq`, events) of records with events, oldest first; it is consumed only as far as
    needed. The page ends before the record that would exceed `limit_bytes`, but contains at least one record.
    """
    parts: list[bytes] = []
    size = 0
    for first, last, lines in shown:
        if last <= seq:
            continue
        # The cursor may be within a record: skip the events before it.
        part = lines if first > seq else b"".join(lines.splitlines(keepends=True)[seq + 1 - first :])
        if parts and size + len(part) > limit_bytes:
            break
        parts.append(part)
        size += len(part)
        seq = last
    return seq, b"".join(parts)


def between(left: Sequence[Span], below: int) -> Iterator[Span]:
    """Yield the ranges below `below` that are outside of the spans `left`, newest first, as half-open intervals."""
    for first, last in reversed(left):
        if last + 1 < below:
            yield last + 1, below
        below = min(below, first)
    yield 1, below


def first(found: Iterable[Stored], limit_bytes: int) -> Iterator[Stored]:
    """Yield the first records that fit into `limit_bytes`, but at least one; consumes no more than needed."""
    size = 0
    for stored in found:
        size += len(stored.body) + len(stored.events)
        # A single record may exceed the limit; without it the reader would never get past that record.
        if size > limit_bytes and size > len(stored.body) + len(stored.events):
            return
        yield stored


def last_message(stored: Stored) -> int | None:
    """Return the `seq` of the last message among the record's events."""
    if not stored.messages:
        return None
    lines = stored.events.splitlines()
    return max(stored.first_seq + place for place, line in enumerate(lines) if is_message(line))


def newest_messages(shown: Iterable[tuple[int, bytes]], seq: int | None, limit: int) -> list[bytes]:
    """Return the newest `limit` message events below `seq` (None: no bound), oldest first, without newlines.

    `shown` is (`first_seq`, events) of records with messages, newest first; it is consumed only as far as needed.
    """
    found: list[bytes] = []
    for first, lines in shown:
        if len(found) >= limit:
            break
        below = lines.splitlines() if seq is None else lines.splitlines()[: max(0, seq - first)]
        found += filter(is_message, reversed(below))
    return found[:limit][::-1]
