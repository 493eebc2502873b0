"""Cuts pages of events out of records: what both journals do with the lines that they stored.

The events of a record are dense: its line n (from 0) has the `seq` `first_seq + n`. So nothing is decoded to cut.
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
    """Raise `MsgspecError` or `UnicodeDecodeError` when one of these lines is no event: SQLite does not notice what a disk has changed in it.

    Under a microsecond for each, and a client cannot go on behind a line that is no JSON.
    """
    lines.decode()  # of a text that is not looked at, the decoder would not say that it is no UTF-8
    for line in lines.splitlines():
        _HEAD.decode(line)


def after(shown: Iterable[tuple[int, int, bytes]], seq: int, limit_bytes: int) -> tuple[int, bytes]:
    """The events after `seq` as NDJSON, and the `seq` of the last one (`seq` itself when there is none).

    `shown` is (`first_seq`, `last_seq`, events) of records with events, oldest first; no more of it is taken than
    needed. Stops before the record with which it would exceed `limit_bytes`, but never before the first.
    """
    parts: list[bytes] = []
    size = 0
    for first, last, lines in shown:
        if last <= seq:
            continue
        part = lines if first > seq else b"".join(lines.splitlines(keepends=True)[seq + 1 - first :])
        if parts and size + len(part) > limit_bytes:
            break
        parts.append(part)
        size += len(part)
        seq = last
    return seq, b"".join(parts)


def between(left: Sequence[Span], below: int) -> Iterator[Span]:
    """What lies below `below` and in none of the stretches `left`, newest first, each without its upper bound."""
    for first, last in reversed(left):
        if last + 1 < below:
            yield last + 1, below
        below = min(below, first)
    yield 1, below


def first(found: Iterable[Stored], limit_bytes: int) -> Iterator[Stored]:
    """The first of these records: at least one, and no more than fit; no more is taken than needed."""
    size = 0
    for stored in found:
        size += len(stored.body) + len(stored.events)
        if size > limit_bytes and size > len(stored.body) + len(stored.events):
            return
        yield stored


def last_message(stored: Stored) -> int | None:
    """The `seq` of the last message that the record shows."""
    if not stored.messages:
        return None
    lines = stored.events.splitlines()
    return max(stored.first_seq + place for place, line in enumerate(lines) if is_message(line))


def newest_messages(shown: Iterable[tuple[int, bytes]], seq: int | None, limit: int) -> list[bytes]:
    """The newest `limit` message events with a `seq` below `seq` (None: of all), oldest first, without newlines.

    `shown` is (`first_seq`, events) of records with messages, newest first; no more of it is taken than needed.
    """
    found: list[bytes] = []
    for first, lines in shown:
        if len(found) >= limit:
            break
        below = lines.splitlines() if seq is None else lines.splitlines()[: max(0, seq - first)]
        found += filter(is_message, reversed(below))
    return found[:limit][::-1]
