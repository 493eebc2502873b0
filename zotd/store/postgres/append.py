"""One commit of a session as one statement, which changes nothing if it does not continue what is stored.

A refused commit therefore does not end the transaction that it shares with others.
"""

from collections.abc import Sequence
from typing import Self

import psycopg
from msgspec import Struct

from zotd.core.ports import JournalEntry, SessionRow, StorageError
from zotd.core.records import UsageRow, kind_of
from zotd.store import partials, sums, user_days
from zotd.store.batch import ROW_BYTES, check_continues, row_values
from zotd.store.postgres.dialect import SharedConnection
from zotd.store.postgres.lease import FencedError
from zotd.store.usage import figures_of_row
from zotd.wire.base import ENCODER

_SUMS = ", ".join(["%(hours)s::text[]", "%(models)s::text[]", *(f"%({name})s::float8[]" for name in sums.COLUMNS)])

_APPEND = f"""
WITH head AS (
    INSERT INTO sessions (id, name, cwd, state, updated, records, seq, row, jobs, parent, user_name, owner)
    SELECT %(id)s, %(name)s, %(cwd)s, %(state)s, %(updated)s, %(records)s, %(seq)s, %(row)s, %(jobs)s, %(parent)s, %(user)s,
        %(owner)s
    WHERE EXISTS (SELECT FROM daemons WHERE number = %(owner)s)
        AND ((%(old_records)s = 0 AND %(old_seq)s = 0) OR EXISTS (SELECT FROM sessions WHERE id = %(id)s))
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, cwd = excluded.cwd, state = excluded.state,
        updated = excluded.updated, records = excluded.records, seq = excluded.seq, row = excluded.row, jobs = excluded.jobs
    WHERE sessions.owner = %(owner)s AND sessions.records = %(old_records)s AND sessions.seq = %(old_seq)s
    RETURNING key
),
summed AS (
    INSERT {sums.INTO} SELECT head.key, entry.* FROM head, unnest({_SUMS}) AS entry {sums.ADDING}
),
replaced AS (DELETE FROM partials WHERE %(ends)s AND session = (SELECT key FROM head)),
{{}}
appended AS (
    INSERT INTO records (session, number, kind, v, time, body, first_seq, last_seq, events, messages)
    SELECT head.key, entry.* FROM head, unnest(%(numbers)s::bigint[], %(kinds)s::text[], %(versions)s::integer[],
        %(times)s::text[], %(bodies)s::bytea[], %(firsts)s::bigint[], %(lasts)s::bigint[], %(events)s::bytea[],
        %(messages)s::integer[]) AS entry
)
SELECT key FROM head
"""  # noqa: S608  (names of our own)

APPEND = _APPEND.format("")
"""Its parameters are `Append.values`."""

APPEND_OF_USER = _APPEND.format(f"""
counted AS (
    INSERT INTO user_days (user_name, day, daemon, usd)
    SELECT %(user)s::text, left(entry.hour, {user_days.DAY_CHARS}), %(owner)s::bigint, sum(entry.cost + entry.estimated)
    FROM head, unnest(%(hours)s::text[], %(cost_usd)s::float8[], %(estimated_usd)s::float8[]) AS entry (hour, cost, estimated)
    GROUP BY left(entry.hour, {user_days.DAY_CHARS}) {user_days.ADDING}
),""")  # noqa: S608  (names of our own)
"""The same for a session of a user, with requests."""

_STORED = "SELECT records, seq FROM sessions WHERE id = %s"

_OTHERS = "SELECT FROM sessions WHERE id = %s AND owner IS DISTINCT FROM %s"

_COLUMNS = ("id", "name", "cwd", "state", "updated", "records", "seq", "row", "jobs")


class Append(Struct, frozen=True):
    """An encoded commit for the writer's thread."""

    row: SessionRow
    entries: Sequence[JournalEntry]
    bodies: Sequence[bytes]
    values: dict[str, object]
    owner: int
    is_recognizable: bool
    """Whether it has records, by which it is found afterwards, and `send` needs no answer. It needs one if a request was cut:
    what that used is found in the records before."""

    @classmethod
    def of(cls, row: SessionRow, entries: Sequence[JournalEntry], owner: int) -> Self:
        """Encode the records on the event loop, because the caller may change them later.

        `owner`: the number of this daemon, which nothing but the session's owner in the database has to be.
        """
        entries = tuple(entries)
        bodies = [ENCODER.encode(entry.record) for entry in entries]
        values = dict(zip(_COLUMNS, row_values(row), strict=True)) | {
            "parent": None if row.parent is None else row.parent.session,
            "user": row.user,
            "owner": owner,
            "old_records": row.records - len(entries),
            "old_seq": row.seq - sum(entry.events.count(b"\n") for entry in entries),
            "ends": any(map(partials.is_replaced_by, entries)),
            "numbers": [entry.number for entry in entries],
            "kinds": [kind_of(entry.record) for entry in entries],
            "versions": [entry.record.v for entry in entries],
            "times": [entry.record.time for entry in entries],
            "bodies": bodies,
            "firsts": [entry.first_seq for entry in entries],
            "lasts": [entry.last_seq for entry in entries],
            "events": [entry.events for entry in entries],
            "messages": [entry.messages for entry in entries],
            **_used(entries),
        }
        is_cut = any(kind_of(entry.record) in sums.KINDS and type(entry.record) is not UsageRow for entry in entries)
        return cls(row, entries, bodies, values, owner, bool(entries) and not is_cut)

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory that it uses until it is written."""
        lines = sum(len(entry.events) for entry in self.entries)
        return ROW_BYTES * (1 + len(self.entries)) + lines + sum(map(len, self.bodies))

    def check(self) -> None:
        """Raise StorageError if the entries do not follow each other up to the row; needs no database."""
        old_records = self.row.records - len(self.entries)
        old_seq = self.row.seq - sum(entry.events.count(b"\n") for entry in self.entries)
        check_continues(self.row, self.entries, records=old_records, seq=old_seq)

    def send(self, connection: psycopg.Connection) -> psycopg.Cursor:
        """Send the statement; its cursor has one row if the commit was applied, and none if it was refused."""
        counts = self.row.user and self.values["hours"]
        applied = connection.execute(APPEND_OF_USER if counts else APPEND, self.values)
        if not self.is_recognizable and (found := applied.fetchone()) is not None:
            cut = [
                (found[0], entry.number, entry.record.time, body)
                for entry, body in zip(self.entries, self.bodies, strict=True)
                if kind_of(entry.record) in sums.KINDS and type(entry.record) is not UsageRow
            ]
            shared = SharedConnection(connection)
            added = sums.counted_usd(sums.add(shared, cut))
            if self.row.user:
                user_days.add(shared, self.row.user, self.owner, added)
        return applied

    def is_stored(self, connection: psycopg.Connection) -> bool:
        """Return whether it was applied, as long as nobody else can have continued the session."""
        found = connection.execute(_STORED, (self.row.id,)).fetchone()
        return found is not None and bool(found[0] >= self.row.records)

    def refusal(self, connection: psycopg.Connection) -> StorageError:
        """Return why the statement has changed nothing, if this daemon has a lease."""
        if connection.execute(_OTHERS, (self.row.id, self.owner)).rowcount == 1:
            return FencedError(f"session {self.row.id} does not belong to this daemon any more")
        records, seq = connection.execute(_STORED, (self.row.id,)).fetchone() or (0, 0)
        try:
            check_continues(self.row, self.entries, records=records, seq=seq)
        except StorageError as error:
            return error
        return StorageError(f"session {self.row.id} was not saved: a commit before this one failed")


def _used(entries: Sequence[JournalEntry]) -> dict[str, object]:
    """Return the columns of the usage that the records state, added up by hour and model."""
    stated = [entry.record for entry in entries if type(entry.record) is UsageRow]
    added = sums.added_up((0, record.time, figures_of_row(record)) for record in stated)
    rows = [sums.columns(row) for row in added.values()]
    figures = {name: [float(row[place]) for row in rows] for place, name in enumerate(sums.COLUMNS)}
    return {"hours": [hour for _, hour, _ in added], "models": [model for _, _, model in added], **figures}
