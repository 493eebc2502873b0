"""The branches of a session, which rewinds create, and its forks (see `zotd.store.forks`)."""

from msgspec import Struct

from zotd.store import history, slices
from zotd.store.connection import SqlConnection
from zotd.wire import events
from zotd.wire.content import Text
from zotd.wire.reports import Branch, Fork

FIRST_WORDS_CHARS = 100
"""Maximum length of the excerpt from the first message of a branch; about a line."""

_FORKS = """
SELECT sessions.id, sessions.name, forks.at FROM forks
JOIN sessions ON sessions.key = forks.session
WHERE forks.origin = (SELECT key FROM sessions WHERE id = ?) ORDER BY forks.at, sessions.key
"""

_ORIGIN = """
SELECT sessions.id, sessions.name, forks.at FROM forks JOIN sessions ON sessions.key = forks.origin
WHERE forks.session = (SELECT key FROM sessions WHERE id = ?)
"""

SPAN = """
SELECT coalesce(sum(messages), 0) FROM records
WHERE session = (SELECT key FROM sessions WHERE id = ?) AND first_seq > 0 AND first_seq >= ? AND first_seq < ?
"""

FIRST_MESSAGE = """
SELECT events FROM records
WHERE session = (SELECT key FROM sessions WHERE id = ?) AND first_seq > 0 AND first_seq >= ? AND first_seq < ?
    AND messages > 0
ORDER BY first_seq LIMIT 1
"""


class Branches(Struct, frozen=True):
    """The data of a `session.tree` response."""

    origin: Fork | None
    """The session that this one was forked from, if it still exists."""
    branches: list[Branch]
    forks: list[Fork]


def branches(connection: SqlConnection, session: str, last: int) -> Branches:
    """Return the branches of the session, whose last event is `last`, its origin, and its forks, oldest first."""
    found = connection.execute(_ORIGIN, (session,)).fetchone()
    origin = Fork(*found) if found else None
    forks = [Fork(*columns) for columns in connection.execute(_FORKS, (session,)).fetchall()]
    return Branches(origin, _parts(connection, session, last), forks)


def _parts(connection: SqlConnection, session: str, last: int) -> list[Branch]:
    """Return the parts between rewinds; each continues from a message of an earlier part."""
    rewinds = history.rewinds(connection, session)
    starts = [(1, None), *((rewind.seq, rewind.to_seq) for rewind in rewinds)]
    # Each rewind ends the branch before it and begins the next one; its own event belongs to the new branch.
    ends = [*(rewind.seq - 1 for rewind in rewinds), last]
    return [
        _part(connection, session, (start, end), at)
        for (start, at), end in zip(starts, ends, strict=True)
        if start <= end  # a rewind directly after another one leaves a branch without events
    ]


def _part(connection: SqlConnection, session: str, span: tuple[int, int], at: int | None) -> Branch:
    first, last = span
    bounds = (session, first, last + 1)
    (messages,) = connection.execute(SPAN, bounds).fetchone()
    found = connection.execute(FIRST_MESSAGE, bounds).fetchone()
    time, words = _words(*found) if found else (None, "")
    return Branch(first, last, messages, words, at=at, time=time)


def _words(lines: bytes) -> tuple[str | None, str]:
    """Return the time of the record's first message and the beginning of its text."""
    line = next(filter(slices.is_message, lines.splitlines()))
    match events.DECODER.decode(line):
        case events.UserMessage(content=content, time=time) | events.AssistantMessage(content=content, time=time):
            words = " ".join(block.text for block in content if isinstance(block, Text)).split()
            return time, " ".join(words)[:FIRST_WORDS_CHARS]
        case other:
            return getattr(other, "time", None), ""
