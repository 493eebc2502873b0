"""Full-text search over what people saw in all sessions: keeping the index, and asking it.

The table `texts` has one row per message that a record showed. Its rowid is made of the record's key and of the
message's place among the record's events, so a newer message has a larger one, and the session and the `seq` are
found without storing them again.

The index is kept behind the commits, never in them (`docs/decisions/0011-search-behind-the-commits.md`): `meta` holds
the key of the last record that is in it, and `advance` takes the next ones.
"""

import logging
import re
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing

import msgspec

from zotd.store import slices
from zotd.store.errors import is_damage
from zotd.store.forks import OWN
from zotd.wire.reports import Hit

LINE_BITS = 16
"""Of a rowid, for the place among the record's events. A record shows a handful of them; what stands behind the
65,536th is not found. The key has 47 bits left."""

SLICE_BYTES = 64 * 1024
"""Events that one `advance` takes before it stops: 1 to 3 ms, so that a commit that comes meanwhile hardly waits."""

SLICE_RECORDS = 1_000
"""Records that one `advance` looks at; most have no message."""

TOOL_CHARS = 8 * 1024
"""Of a tool result, from its start: what is searched for there stands near the top, and logs would be most of the
index otherwise."""

MESSAGE_CHARS = 64 * 1024
"""Of a prompt or a reply; only a pasted file is longer."""

SNIPPET_TOKENS = 24
"""About a line and a half around the first word that was found; SQLite allows 64."""

SNIPPET_CHARS = 400
"""A single token can be as long as a message: an encoded picture, say."""

ROLES = {"user_message": "user", "assistant_message": "assistant", "tool_result": "tool"}
"""By the type of the event that shows the message."""

_PLACES = 1 << LINE_BITS

_MAX_ROWID = 2**63 - 1

_TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')

_FIND = f"""
SELECT texts.rowid, sessions.id, sessions.name, sessions.cwd,
    records.first_seq + (texts.rowid & :places), records.time, texts.role, snippet(texts, 0, '', '', '…', :tokens)
FROM texts
CROSS JOIN records ON records.key = texts.rowid >> :bits
CROSS JOIN sessions ON sessions.key = records.session
WHERE texts MATCH :words AND texts.rowid < :before AND sessions.state <> 'staged' AND {OWN}
ORDER BY texts.rowid DESC LIMIT :limit
"""  # noqa: S608  (the condition is ours)
"""What a fork has of another session is found there. CROSS JOIN keeps the order of the tables: the index gives its rows
newest first, and stops at the limit."""

_MARK = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'searchable'"

_NEXT = "SELECT key FROM records WHERE key > ? ORDER BY key LIMIT ?"
"""Nothing but the key: what stands behind a large body lies at the end of a chain of pages, one of which may be
damaged."""

_SHOWN = "SELECT CASE WHEN messages > 0 THEN events ELSE x'' END FROM records WHERE key = ?"

_LAST = "SELECT coalesce(max(key), 0) FROM records"

_INDEXED = "SELECT key, events FROM records WHERE messages > 0 AND key <= ? ORDER BY key"

_ADD = "INSERT OR REPLACE INTO texts (rowid, text, role) VALUES (?, ?, ?)"

log = logging.getLogger(__name__)


class _DamagedIndexError(Exception):
    """A statement met damage in the index."""

    def __init__(self, reason: sqlite3.DatabaseError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _DamagedRecordError(Exception):
    """A statement met damage in a record."""

    def __init__(self, key: int, reason: sqlite3.DatabaseError) -> None:
        super().__init__(str(reason))
        self.key = key
        self.reason = reason


class _Block(msgspec.Struct):
    type: str
    text: str = ""


class _Message(msgspec.Struct):
    type: str
    content: list[_Block]


_MESSAGE = msgspec.json.Decoder(_Message)


def words(query: str) -> str:
    """The query as FTS5 understands it, each word and each "phrase in quotes" as a string; empty: there is none.

    No other character means anything, so no query is wrong. `foo_bar` and `a/b.py` become phrases of their parts.
    """
    terms = (phrase or word for phrase, word in _TERM.findall(query.replace("\0", " ")))
    return " ".join(f'"{term}"' for term in terms if any(map(str.isalnum, term)))


def find(connection: sqlite3.Connection, query: str, before: int | None, limit: int) -> list[tuple[int, Hit]]:
    """Messages with all words of `query`, newest first, each with its place: what `before` may be for the next page."""
    wanted = words(query)
    if not wanted:
        return []
    below = _MAX_ROWID if before is None else min(before, _MAX_ROWID)
    form = {"places": _PLACES - 1, "bits": LINE_BITS, "tokens": SNIPPET_TOKENS}
    found = connection.execute(_FIND, {"words": wanted, "before": below, "limit": limit, **form}).fetchall()
    return [
        (place, Hit(session, name, cwd, seq, time, role, _line(snippet)))
        for place, session, name, cwd, seq, time, role, snippet in found
    ]


def is_behind(connection: sqlite3.Connection) -> bool:
    """Whether there are records that are not in the index."""
    return _number(connection, _MARK) < _number(connection, _LAST)


class SearchIndex:
    """Keeps the index of one database up with its records; used by the thread that writes.

    Once SQLite has met damage in a transaction, that one can no longer be committed. So what was met is remembered, and
    the next one passes by it.
    """

    def __init__(self) -> None:
        self.met = 0
        """How many damaged things were met so far."""
        self._unreadable: set[int] = set()
        self._is_damaged = False

    def keep_up(self, connection: sqlite3.Connection) -> bool:
        """`advance`, without the records that cannot be read, and from the beginning when the index was damaged.

        Raises sqlite3.DatabaseError at damage that was not met before; call it again in another transaction.
        """
        if self._is_damaged:
            begin_anew(connection)
            self._is_damaged = False
        try:
            return advance(connection, self._unreadable)
        except _DamagedRecordError as error:
            log.warning("record %s of the journal cannot be searched: %s", error.key, error.reason)
            self._unreadable.add(error.key)
            self.met += 1
            raise error.reason from None
        except _DamagedIndexError as error:
            self._is_damaged = True
            self.met += 1
            raise error.reason from None


def advance(connection: sqlite3.Connection, unreadable: Collection[int] = ()) -> bool:
    """Take the next records into the index, inside the caller's transaction; True when there may be more.

    Without those whose key is `unreadable`: their session says so itself when it is opened.
    """
    mark = _number(connection, _MARK)
    size_bytes = 0
    rows = connection.execute(_NEXT, (mark, SLICE_RECORDS)).fetchall()
    for (key,) in rows:
        if key not in unreadable:
            size_bytes += _add(connection, key)
        mark = key
        if size_bytes >= SLICE_BYTES:
            break
    _set_mark(connection, mark)
    return bool(rows)


def begin_anew(connection: sqlite3.Connection) -> None:
    """Empty a damaged index, so that everything is taken into it again: it holds nothing that the records do not.

    Raises sqlite3.DatabaseError when the damage is such that SQLite cannot even drop it.
    """
    log.error("the search index is damaged; rebuilding it")
    (made,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'texts'").fetchone()
    connection.execute("DROP TABLE texts")
    connection.execute(made)
    _set_mark(connection, 0)


def forget(connection: sqlite3.Connection, session: int, above: int = 0) -> None:
    """Remove the texts of the session with this key, before its records: 40 us for each message.

    Of the records with a number over `above`. A damaged index is emptied: it keeps nobody from deleting.
    """
    query = "SELECT key FROM records WHERE session = ? AND number > ? AND messages > 0"
    keys = connection.execute(query, (session, above)).fetchall()
    spans = [(key * _PLACES, (key + 1) * _PLACES) for (key,) in keys]
    try:
        connection.executemany("DELETE FROM texts WHERE rowid >= ? AND rowid < ?", spans)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        begin_anew(connection)


def step_back(connection: sqlite3.Connection) -> None:
    """After records are gone: SQLite gives the highest keys again, and the new records must not count as known."""
    last = _number(connection, _LAST)
    if last < _number(connection, _MARK):
        _set_mark(connection, last)


def expected(connection: sqlite3.Connection) -> Iterator[tuple[int, str, str]]:
    """What the index should hold as far as it goes: rowid, text and role of each message, by rowid."""
    mark = _number(connection, _MARK)
    with closing(connection.execute(_INDEXED, (mark,))) as found:
        for key, events in found:
            yield from _rows(key, events)


def _add(connection: sqlite3.Connection, key: int) -> int:
    try:
        (events,) = connection.execute(_SHOWN, (key,)).fetchone()
    except sqlite3.DatabaseError as error:
        raise _DamagedRecordError(key, error) from error
    try:
        connection.executemany(_ADD, _rows(key, events))
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        raise _DamagedIndexError(error) from error
    return len(events)


def _rows(key: int, events: bytes) -> list[tuple[int, str, str]]:
    """The rows for the messages among a record's events."""
    found: list[tuple[int, str, str]] = []
    for place, line in enumerate(events.splitlines()[:_PLACES]):
        try:
            message = _MESSAGE.decode(line) if slices.is_message(line) else None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.warning("record %s of the journal cannot be searched: %s", key, error)
            continue
        if message is not None:
            role = ROLES[message.type]
            text = "\n".join(block.text for block in message.content if block.type == "text")
            found.append((key * _PLACES + place, text[: TOOL_CHARS if role == "tool" else MESSAGE_CHARS], role))
    return found


def _number(connection: sqlite3.Connection, query: str) -> int:
    (number,) = connection.execute(query).fetchone()
    return int(number)


def _set_mark(connection: sqlite3.Connection, key: int) -> None:
    connection.execute("UPDATE meta SET value = ? WHERE key = 'searchable'", (str(key),))


def _line(snippet: str) -> str:
    return " ".join(snippet.split())[:SNIPPET_CHARS]
