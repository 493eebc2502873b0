"""Checks every page, row, record and indexed text of a database without changing it (`zotctl verify`)."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from pathlib import Path

import msgspec

from zotd.store import lost_log, search, sums
from zotd.store.batch import row_of
from zotd.store.connection import SqlConnection
from zotd.store.errors import UnreadableRecordError, UnreadableSessionError
from zotd.store.migrations import MIGRATIONS
from zotd.store.queries import record_of
from zotd.store.schema import read_at_rest, refuse_torn, schema_of

MAX_PROBLEMS = 100
"""Enough to see what happened; a damaged page can cause thousands."""

_RECORDS = """
SELECT number, kind, v, body, first_seq, last_seq, events, messages FROM records
WHERE session = ? ORDER BY number
"""

_SESSIONS = "SELECT key, id, row FROM sessions WHERE state <> 'staged' ORDER BY key"
"""Without staged sessions, which are incomplete by design."""

_SHADOWS = ("data", "idx", "content", "docsize", "config")
"""Suffixes of the tables in which FTS5 stores an index."""


@dataclass
class VerificationReport:
    """Contents and faults of a database."""

    sessions: int = 0
    records: int = 0
    messages: int = 0
    size_bytes: int = 0
    """Size of the database, excluding its write-ahead log."""
    schema: int = 0
    version: str = ""
    """Version of the program that last opened it for writing."""
    problems: list[str] = field(default_factory=list)
    """At most `MAX_PROBLEMS` sentences; empty if the database is intact."""

    def complain(self, sentence: str) -> None:
        """Add a problem, up to `MAX_PROBLEMS`."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(sentence)


class _Event(msgspec.Struct):
    type: str
    seq: int


_EVENT = msgspec.json.Decoder(_Event)


def verify(path: Path) -> VerificationReport:
    """Check a snapshot of the database in the file `path`; the daemon may continue to write to it.

    Raises:
        StorageError: the database cannot be read at all, or lacks a part without which the daemon does not start.
            NewerSchemaError if a newer program wrote it.
    """
    refuse_torn(path)
    lost = _lost_commits(path)
    report = read_at_rest(path, partial(_report, path))
    if lost is not None:
        report.complain(lost)
    return report


def verify_contents(connection: SqlConnection) -> VerificationReport:
    """Check the records, rows and sums of all sessions, in any database of the newest schema."""
    report = VerificationReport(schema=len(MIGRATIONS))
    _look_at_sessions(connection, report)
    _look_at_sums(connection, report)
    return report


def _lost_commits(path: Path) -> str | None:
    """Return what is missing in the log of a killed daemon, as a sentence."""
    index = lost_log.known(path)
    if index is None:
        return None
    sentence = lost_log.lost(index, lost_log.frames_in(path, index))
    # A running daemon may have written to the log between the two reads; then the comparison means nothing.
    return sentence if lost_log.known(path) == index else None


def _report(path: Path, connection: sqlite3.Connection) -> VerificationReport:
    connection.execute("ATTACH '' AS scratch")  # a temporary file, which is removed with the connection
    connection.execute("BEGIN")  # one snapshot for all checks
    report = VerificationReport(schema=schema_of(connection), size_bytes=path.stat().st_size)
    for look in (_look_at_pages, _look_at_sessions, _look_at_sums, _look_at_index):
        try:
            look(connection, report)
        except sqlite3.DatabaseError as error:
            report.complain(f"the database cannot be read: {error}")
        except Exception as error:  # noqa: BLE001  (an impossible value is damage; continue with the other checks)
            report.complain(f"the database is damaged: {type(error).__name__}: {error}")
    return report


def _look_at_pages(connection: sqlite3.Connection, report: VerificationReport) -> None:
    (report.version,) = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone() or ("",)
    for (line,) in connection.execute(f"PRAGMA integrity_check({MAX_PROBLEMS})"):
        if line != "ok":
            report.complain(line)


def _look_at_sessions(connection: SqlConnection, report: VerificationReport) -> None:
    for key, session, stored in connection.execute(_SESSIONS).fetchall():
        report.sessions += 1
        try:
            row = row_of(session, stored)
            ends = _look_at_records(connection, report, key, session)
            if ends != (row.records, row.seq):
                report.complain(
                    f"session {session} ends with record {ends[0]} and event {ends[1]}, and its row differs"
                )
        except UnreadableSessionError as error:
            report.complain(str(error))
        except (sqlite3.DatabaseError, TypeError, ValueError, AttributeError) as error:  # a damaged page
            report.complain(f"session {session}: its records cannot all be read: {error}")
    # Foreign keys are declared but not enforced by SQLite, unless a connection asks for it.
    query = "SELECT count(*) FROM records WHERE session NOT IN (SELECT key FROM sessions)"
    (orphans,) = connection.execute(query).fetchone()
    if orphans:
        report.complain(f"{orphans} records belong to no session")


def _look_at_records(connection: SqlConnection, report: VerificationReport, key: int, session: str) -> tuple[int, int]:
    """Return the last record's number and the last event's `seq`; raise UnreadableSessionError at the first fault."""
    due = seq = 0
    with closing(connection.execute(_RECORDS, (key,))) as found:
        for number, kind, v, body, *span, lines, messages in found:
            due += 1
            record_of(session, due, (number, kind, v, body))
            before, seq = seq, _last_seq(session, due, seq, lines)
            if span != ([before + 1, seq] if lines else [0, 0]):
                raise UnreadableRecordError(session, due, "its event numbers do not match its events")
            report.records += 1
            report.messages += messages
    return due, seq


def _last_seq(session: str, number: int, seq: int, lines: bytes) -> int:
    """Return the `seq` of the last event of a record whose events follow `seq`."""
    for line in lines.splitlines():
        seq += 1
        try:
            if isinstance(line, bytes):
                line.decode()  # the JSON decoder does not check the encoding of strings that it skips
            event = _EVENT.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise UnreadableRecordError(session, number, f"event {seq}: {error}") from error
        if event.seq != seq:
            raise UnreadableRecordError(session, number, f"it has event {event.seq} where {seq} is expected")
    return seq


def _look_at_sums(connection: SqlConnection, report: VerificationReport) -> None:
    if report.schema < len(MIGRATIONS) or report.problems:
        return  # the sums still include the usage of damaged records, so they would differ
    for session in sums.differing(connection):
        report.complain(f"session {session}: the sums of its usage do not match its records")


def _look_at_index(connection: sqlite3.Connection, report: VerificationReport) -> None:
    if report.schema < len(MIGRATIONS):
        return  # written by an older program; the index is completed after the upgrade
    stored = connection.execute("SELECT rowid, text, role FROM texts ORDER BY rowid")
    with closing(stored):
        # Both are sorted by rowid and compared as streams, because the texts may not fit into memory.
        if not all(wanted == found for wanted, found in zip_longest(search.expected(connection), stored)):
            report.complain("the search index does not match the records: some words are not found")
    try:
        _look_into_index(connection)
    except sqlite3.DatabaseError as error:
        report.complain(f"the search index is damaged ({error}): some words are not found")


def _look_into_index(connection: sqlite3.Connection) -> None:
    """Run FTS5's integrity check on a copy of the index, because the check is a write."""
    (made,) = connection.execute("SELECT sql FROM main.sqlite_master WHERE name = 'texts'").fetchone()
    connection.execute(made.replace("TABLE texts", "TABLE scratch.texts", 1))
    for part in _SHADOWS:
        connection.execute(f"DELETE FROM scratch.texts_{part}")  # noqa: S608  (names of our own, as in the next line)
        connection.execute(f"INSERT INTO scratch.texts_{part} SELECT * FROM main.texts_{part}")  # noqa: S608
    connection.execute("INSERT INTO scratch.texts (texts) VALUES ('integrity-check')")
