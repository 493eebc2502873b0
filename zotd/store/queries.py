"""Queries of the journal. Each function runs a single statement and therefore sees a single snapshot.

Cursors are closed explicitly and not left to the garbage collector: an open cursor, kept alive by a stored traceback,
would pin all later reads of the connection to its old snapshot.
"""

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import get_args

import msgspec
from msgspec import Struct

from zotd.core.lineage import Span
from zotd.core.ports import SessionRow
from zotd.core.records import DECODER, VERSION, AnyRecord, Settings
from zotd.store import slices
from zotd.store.batch import row_of
from zotd.store.connection import SqlConnection
from zotd.store.errors import UnreadableRecordError, UnreadableSessionError, is_damage
from zotd.wire import events

KINDS = frozenset(str(kind.__struct_config__.tag) for kind in get_args(AnyRecord))
"""Kinds of record that this version can decode; a newer program may have written others."""

Page = tuple[list[SessionRow], str | None]
"""Sessions, and what to pass as `before` to get the next ones; None on the last page."""

RECORDS = """
SELECT number, kind, v, body FROM records
WHERE session = (SELECT key FROM sessions WHERE id = :session) AND number >= :start
ORDER BY number
"""

EVENTS_AFTER = """
WITH wanted AS (SELECT key FROM sessions WHERE id = :session)
SELECT first_seq, last_seq, events FROM records
WHERE session = (SELECT key FROM wanted) AND first_seq > 0 AND first_seq >= coalesce((
    SELECT max(first_seq) FROM records
    WHERE session = (SELECT key FROM wanted) AND first_seq > 0 AND first_seq <= :seq
), 0)
ORDER BY first_seq
"""
"""Starts with the record that contains event `seq`; looks it up by the first `seq` of records, so that the same index
as below serves both queries."""

MESSAGES_BEFORE = """
SELECT first_seq, events FROM records
WHERE session = (SELECT key FROM sessions WHERE id = :session)
    AND first_seq > 0 AND first_seq >= :low AND first_seq < :high AND messages > 0
ORDER BY first_seq DESC
"""
"""`first_seq > 0` repeats the condition of the partial index; otherwise SQLite would not use it."""

_EXACT = "SELECT id, name, cwd, updated, records, seq, row FROM sessions WHERE id = ? AND state <> 'staged'"

_FIND = """
SELECT id, name, cwd, updated, records, seq, row FROM sessions
WHERE state <> 'staged' AND ((name = :text AND parent IS NULL) OR (id >= :text AND id < :end))
ORDER BY updated DESC, id DESC
"""

_LAST_CHARACTER = "\U0010ffff"
"""Sorts after every character of an id."""

_LIST = """
SELECT id, name, cwd, updated, records, seq, row FROM sessions
WHERE state <> 'staged' AND (:cwd IS NULL OR cwd = :cwd) AND (:state IS NULL OR state = :state)
    AND (:subagents OR parent IS NULL) AND (:user IS NULL OR user_name = :user)
    AND (:updated IS NULL OR (updated, id) < (:updated, :id))
ORDER BY updated DESC, id DESC LIMIT :limit
"""

MAX_SEQ = 2**63 - 1
"""Greater than every `seq`: the largest integer of SQLite."""


def records_from(connection: SqlConnection, session: str, start: int) -> list[AnyRecord]:
    """Return the records from number `start` on, oldest first.

    Raises:
        UnreadableRecordError: one of them is damaged, missing, or was written by a newer program.
    """
    found: list[AnyRecord] = []
    start = max(start, 1)
    with closing(connection.execute(RECORDS, {"session": session, "start": start})) as stored:
        try:
            for columns in stored:
                found.append(record_of(session, start + len(found), columns))
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            # Python's sqlite3 fetches one row ahead, so the damaged record may be the one after this number.
            raise UnreadableRecordError(session, start + len(found), str(error)) from error
    return found


def events_after(connection: SqlConnection, session: str, seq: int, limit_bytes: int) -> tuple[int, bytes]:
    """Read events as specified in `core.ports.Journal.events_after`; raises UnreadableSessionError."""
    with (
        damage_told(session),
        closing(connection.execute(EVENTS_AFTER, {"session": session, "seq": min(seq, MAX_SEQ)})) as shown,
    ):
        reached, lines = slices.after(shown, seq, limit_bytes)
        slices.check(lines)
        return reached, lines


def messages_before(
    connection: SqlConnection, session: str, seq: int | None, *, limit: int, left: Sequence[Span] = ()
) -> list[bytes]:
    """Read message events as specified in `core.ports.Journal.messages_before`; raises UnreadableSessionError."""
    below = MAX_SEQ if seq is None else min(seq, MAX_SEQ)
    with damage_told(session), closing(_shown_before(connection, session, below, left)) as shown:
        found = slices.newest_messages(shown, seq, limit)
        for line in found:
            events.DECODER.decode(line)
        return found


def row(connection: SqlConnection, session: str) -> SessionRow | None:
    """Return the session with exactly this id, or None; raises UnreadableSessionError if its row is damaged."""
    with damage_told(session):
        # Staged sessions are incomplete, and invisible until they are published.
        found = connection.execute("SELECT row FROM sessions WHERE id = ? AND state <> 'staged'", (session,)).fetchone()
    return row_of(session, *found) if found else None


def find(connection: SqlConnection, text: str) -> list[SessionRow]:
    """Return the session with this id; otherwise those with this name or id prefix, newest `updated` first.

    Not subagents with this name: models choose their names, and must not make those of people ambiguous.
    """
    if not text:
        return []
    # An exact id takes precedence: a session must not become unreachable because another one is named like its id.
    exact = connection.execute(_EXACT, (text,)).fetchall()
    return list(
        map(listed_row, exact or connection.execute(_FIND, {"text": text, "end": text + _LAST_CHARACTER}).fetchall())
    )


class PageQuery(Struct, frozen=True, kw_only=True):
    """Which sessions a page has."""

    cwd: str | None = None
    state: str | None = None
    before: str | None = None
    limit: int = 100
    subagents: bool = True
    user: str | None = None

    def concerns(self, row: SessionRow) -> bool:
        """Whether a page with no limit, from the beginning, has this session if its state is right."""
        return self.cwd in {None, row.cwd} and self.user in {None, row.user} and (self.subagents or row.parent is None)


def page(connection: SqlConnection, query: PageQuery) -> Page:
    """Return a page of sessions, newest first; see `Journal.list`."""
    updated, _, key = (query.before or "").partition(" ")
    limit = query.limit
    # One row more than wanted tells whether there is another page.
    wanted = {
        "cwd": query.cwd,
        "state": query.state,
        "updated": updated or None,
        "id": key,
        "limit": limit + 1,
        "subagents": query.subagents,
        "user": query.user,
    }
    rows = list(map(listed_row, connection.execute(_LIST, wanted).fetchall()))
    if len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]
    return rows[:limit], f"{last.updated} {last.id}"


def listed_row(columns: tuple[object, ...]) -> SessionRow:
    """Decode a row; for a damaged one use the other columns and the state `blocked`, because a list must not fail.

    On a damaged page a column may have a value of another type.
    """
    *texts, records, seq, stored = columns
    session, name, cwd, updated = (text if isinstance(text, str) else "" for text in texts)
    try:
        return row_of(session, stored)
    except UnreadableSessionError:
        unknown = Settings(provider="", model="")
        seq, records = (number if isinstance(number, int) else 0 for number in (seq, records))
        return SessionRow(session, name, cwd, updated, updated, unknown, "blocked", seq=seq, records=records)


def _shown_before(
    connection: SqlConnection, session: str, below: int, left: Sequence[Span]
) -> Generator[tuple[int, bytes]]:
    """Yield records with messages below that `seq`, newest first, without reading those in `left`."""
    for low, high in slices.between(left, below):
        wanted = {"session": session, "low": low, "high": high}
        with closing(connection.execute(MESSAGES_BEFORE, wanted)) as found:
            yield from found


@contextmanager
def damage_told(session: str) -> Iterator[None]:
    """Convert errors caused by a damaged page or event into UnreadableSessionError."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        raise UnreadableSessionError(session, str(error)) from error
    # TypeError and AttributeError: a damaged column may have a value of another type.
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise UnreadableSessionError(session, f"an event is damaged: {error}") from error


def record_of(session: str, expected: int, columns: tuple[int, object, object, bytes]) -> AnyRecord:
    """Decode a record from its number, kind, version and body.

    Raises:
        UnreadableRecordError: it is damaged, does not have the number `expected`, or was written by a newer program.
    """
    number, kind, v, body = columns
    if number != expected:
        raise UnreadableRecordError(session, expected, "it is missing")
    if not isinstance(v, int) or not isinstance(kind, str):
        raise UnreadableRecordError(session, number, "its columns are damaged")
    # Before decoding: a newer record might decode with the old definition, and lose the fields it does not know.
    if v > VERSION or kind not in KINDS:
        raise UnreadableRecordError(session, number, f"a newer version wrote it: kind {kind}, version {v}")
    try:
        record: AnyRecord = DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        raise UnreadableRecordError(session, number, str(error)) from error
    return record
