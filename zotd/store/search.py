"""Full-text search over the messages of all sessions: updates the index and queries it.

The table `texts` has one row per message. Its rowid is composed of the record's key and the message's position among
the record's events, so newer messages have larger rowids, and the session and `seq` need not be stored again.

The index is updated after the commits and not in them (`docs/decisions/0011-search-behind-the-commits.md`): `meta` has
the key of the last indexed record, and `advance` indexes the next ones.
"""

import logging
import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from typing import Protocol

import msgspec

from zotd.store import slices
from zotd.store.connection import SqlConnection
from zotd.store.errors import is_damage
from zotd.store.forks import OWN
from zotd.wire.reports import Hit

LINE_BITS = 16
"""Bits of a rowid for the position among the record's events, which leaves 47 for the record's key. A record has a few
events; messages after the 65,536th are not indexed."""

SLICE_BYTES = 64 * 1024
"""Size of the events that one `advance` indexes. It takes 1 to 3 ms, which is how long a commit may have to wait."""

SLICE_RECORDS = 1_000
"""Number of records that one `advance` examines; most have no message."""

TOOL_CHARS = 8 * 1024
"""Indexed part of a tool result, from its start. Searches are usually for text near the top, and logs would otherwise
take up most of the index."""

MESSAGE_CHARS = 64 * 1024
"""Indexed part of a prompt or reply; only pasted files are longer."""

SNIPPET_TOKENS = 24
"""Length of a snippet around the first match: about a line and a half. SQLite allows 64."""

SNIPPET_CHARS = 400
"""Limit of a snippet, because a single token can be as long as a message, such as an encoded image."""

ROLES = {"user_message": "user", "assistant_message": "assistant", "tool_result": "tool"}
"""Role by the type of the event that shows the message."""

PLACES = 1 << LINE_BITS
"""Places for the messages of a record."""

MAX_ROWID = 2**63 - 1
"""Above every text's number."""

TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')
"""A phrase in quotes, or a word, of a query."""

_FIND = f"""
SELECT texts.rowid, sessions.id, sessions.name, sessions.cwd,
    records.first_seq + (texts.rowid & :places), records.time, texts.role, snippet(texts, 0, '', '', '…', :tokens)
FROM texts
CROSS JOIN records ON records.key = texts.rowid >> :bits
CROSS JOIN sessions ON sessions.key = records.session
WHERE texts MATCH :words AND texts.rowid < :before AND sessions.state <> 'staged' AND {OWN}
ORDER BY texts.rowid DESC LIMIT :limit
"""  # noqa: S608  (the condition is ours)
"""Messages that a fork shares are found in the other session only. CROSS JOIN fixes the order of the tables: the index
yields its rows newest first, so the query stops at the limit."""

_MARK = "SELECT CAST(value AS BIGINT) FROM meta WHERE key = 'searchable'"

_NEXT = "SELECT key FROM records WHERE key > ? ORDER BY key LIMIT ?"
"""Selects only the key: columns after a large body are at the end of a chain of pages, one of which may be damaged."""

_SHOWN = "SELECT CASE WHEN messages > 0 THEN events END FROM records WHERE key = ?"

_LAST = "SELECT coalesce(max(key), 0) FROM records"

_INDEXED = "SELECT key, events FROM records WHERE messages > 0 AND key <= ? ORDER BY key"

_ADD = "INSERT OR REPLACE INTO texts (rowid, text, role) VALUES (?, ?, ?)"

log = logging.getLogger(__name__)


class _DamagedIndexError(Exception):
    """SQLite reported damage in the index."""

    def __init__(self, reason: sqlite3.DatabaseError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _DamagedRecordError(Exception):
    """SQLite reported damage in a record."""

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
    """Translate a query into FTS5 syntax, each word and each "phrase in quotes" as a string; empty if there are none.

    No other character has a meaning, so every query is valid. `foo_bar` and `a/b.py` become phrases of their parts.
    """
    terms = (phrase or word for phrase, word in TERM.findall(query.replace("\0", " ")))
    return " ".join(f'"{term}"' for term in terms if any(map(str.isalnum, term)))


def find(connection: SqlConnection, query: str, before: int | None, limit: int) -> list[tuple[int, Hit]]:
    """Return messages with all words of `query`, newest first, each with the `before` value for the page after it."""
    wanted = words(query)
    if not wanted:
        return []
    below = MAX_ROWID if before is None else min(before, MAX_ROWID)
    form = {"places": PLACES - 1, "bits": LINE_BITS, "tokens": SNIPPET_TOKENS}
    found = connection.execute(_FIND, {"words": wanted, "before": below, "limit": limit, **form}).fetchall()
    return [
        (place, Hit(session, name, cwd, seq, time, role, line_of(snippet)))
        for place, session, name, cwd, seq, time, role, snippet in found
    ]


def is_behind(connection: SqlConnection) -> bool:
    """Whether some records are not indexed yet."""
    return _number(connection, _MARK) < _number(connection, _LAST)


class Texts(Protocol):
    """The full-text index of one kind of database; a text's number is its message's place, see above."""

    def find(self, connection: SqlConnection, query: str, before: int | None, limit: int) -> list[tuple[int, Hit]]:
        """Return messages with all words of `query`, newest first, each with the `before` value for the page after it."""
        ...

    def add(self, connection: SqlConnection, rows: Sequence[tuple[int, str, str]]) -> None:
        """Add texts, each with its number, the text and its role."""
        ...

    def begin_anew(self, connection: SqlConnection) -> None:
        """Empty the index, so that it is built again."""
        ...


class Fts5:
    """`Texts` in SQLite."""

    def find(self, connection: SqlConnection, query: str, before: int | None, limit: int) -> list[tuple[int, Hit]]:
        """Return the messages that `find` returns."""
        return find(connection, query, before, limit)

    def add(self, connection: SqlConnection, rows: Sequence[tuple[int, str, str]]) -> None:
        """Add texts, in place of those of deleted records that had these numbers."""
        connection.executemany(_ADD, rows)

    def begin_anew(self, connection: SqlConnection) -> None:
        """Drop the index and make it again."""
        begin_anew(connection)


FTS5 = Fts5()


class SearchIndex:
    """Keeps the index of one database up to date; used in the writer's thread.

    A transaction in which SQLite has reported damage cannot be committed. The damage is therefore remembered, and the
    next transaction avoids it.
    """

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self.met = 0
        """Number of damaged records and indexes found so far."""
        self._unreadable: set[int] = set()
        self._is_damaged = False

    def find(self, connection: SqlConnection, query: str, before: int | None, limit: int) -> list[tuple[int, Hit]]:
        """Return the messages with all words of `query`; see `Texts.find`."""
        return self._texts.find(connection, query, before, limit)

    def begin_anew(self, connection: SqlConnection) -> None:
        """Empty a damaged index, so that it is built again; see `Texts.begin_anew`."""
        self._texts.begin_anew(connection)

    def keep_up(self, connection: SqlConnection) -> bool:
        """Call `advance`, skipping unreadable records, and rebuilding the index first if it is damaged.

        Raises sqlite3.DatabaseError at newly found damage; call it again in another transaction.
        """
        if self._is_damaged:
            self._texts.begin_anew(connection)
            self._is_damaged = False
        try:
            return advance(connection, self._unreadable, self._texts)
        except _DamagedRecordError as error:
            log.warning("record %s of the journal cannot be searched: %s", error.key, error.reason)
            self._unreadable.add(error.key)
            self.met += 1
            raise error.reason from None
        except _DamagedIndexError as error:
            self._is_damaged = True
            self.met += 1
            raise error.reason from None


def advance(connection: SqlConnection, unreadable: Collection[int] = (), texts: Texts = FTS5) -> bool:
    """Index the next records inside the caller's transaction; return True if there may be more.

    Skips records whose key is `unreadable`: their session reports the damage when it is opened.
    """
    mark = _number(connection, _MARK)
    size_bytes = 0
    rows = connection.execute(_NEXT, (mark, SLICE_RECORDS)).fetchall()
    for (key,) in rows:
        if key not in unreadable:
            size_bytes += _add(connection, key, texts)
        mark = key
        # Advanced past unreadable records as well, or every slice would meet them again.
        if size_bytes >= SLICE_BYTES:
            break
    _set_mark(connection, mark)
    return bool(rows)


def begin_anew(connection: SqlConnection) -> None:
    """Empty a damaged index so that it is rebuilt, which loses nothing: all its data is in the records.

    Raises sqlite3.DatabaseError if the damage is so severe that SQLite cannot drop the table.
    """
    log.error("the search index is damaged; rebuilding it")
    # Recreated from its stored definition, because a later migration may have changed it.
    (made,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'texts'").fetchone()
    connection.execute("DROP TABLE texts")
    connection.execute(made)
    _set_mark(connection, 0)


def forget(connection: SqlConnection, session: int, above: int = 0) -> None:
    """Remove the texts of a session's records with numbers above `above`; takes 40 us per message.

    Call it before the records are deleted, because it needs their keys. A damaged index is emptied instead, so that
    damage does not prevent a deletion.
    """
    query = "SELECT key FROM records WHERE session = ? AND number > ? AND messages > 0"
    keys = connection.execute(query, (session, above)).fetchall()
    # By ranges of rowids, which FTS5 can look up; its other columns have no index.
    spans = [(key * PLACES, (key + 1) * PLACES) for (key,) in keys]
    try:
        connection.executemany("DELETE FROM texts WHERE rowid >= ? AND rowid < ?", spans)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        begin_anew(connection)


def step_back(connection: SqlConnection) -> None:
    """Adjust the mark after a deletion: SQLite reuses the highest keys for records that are not indexed yet."""
    last = _number(connection, _LAST)
    if last < _number(connection, _MARK):
        _set_mark(connection, last)


def expected(connection: SqlConnection) -> Iterator[tuple[int, str, str]]:
    """Yield the expected rows of the index up to its mark, by rowid: rowid, text and role of each message."""
    mark = _number(connection, _MARK)
    with closing(connection.execute(_INDEXED, (mark,))) as found:
        for key, events in found:
            yield from texts_of(key, events)


def _add(connection: SqlConnection, key: int, texts: Texts) -> int:
    # Two statements instead of INSERT ... SELECT, to tell a damaged record from a damaged index.
    try:
        (events,) = connection.execute(_SHOWN, (key,)).fetchone()
        events = events or b""
    except sqlite3.DatabaseError as error:
        raise _DamagedRecordError(key, error) from error
    try:
        texts.add(connection, texts_of(key, events))
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        raise _DamagedIndexError(error) from error
    return len(events)


def texts_of(key: int, events: bytes) -> list[tuple[int, str, str]]:
    """Return the rows for the messages among a record's events."""
    found: list[tuple[int, str, str]] = []
    for place, line in enumerate(events.splitlines()[:PLACES]):
        try:
            message = _MESSAGE.decode(line) if slices.is_message(line) else None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.warning("record %s of the journal cannot be searched: %s", key, error)
            continue
        if message is not None:
            role = ROLES[message.type]
            text = "\n".join(block.text for block in message.content if block.type == "text")
            found.append((key * PLACES + place, text[: TOOL_CHARS if role == "tool" else MESSAGE_CHARS], role))
    return found


def _number(connection: SqlConnection, query: str) -> int:
    (number,) = connection.execute(query).fetchone()
    return int(number)


def _set_mark(connection: SqlConnection, key: int) -> None:
    connection.execute("UPDATE meta SET value = ? WHERE key = 'searchable'", (str(key),))


def line_of(snippet: str) -> str:
    """Return a snippet as one line of limited length."""
    return " ".join(snippet.split())[:SNIPPET_CHARS]
