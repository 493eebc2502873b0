"""The rows of `daemons`, for other daemons and for people."""

from collections.abc import Sequence

import msgspec

from zotd.store.connection import Row, SqlConnection
from zotd.store.members import FleetMember, MemberLoad, MemberState
from zotd.store.postgres.database import PostgresDatabase
from zotd.wire.base import ENCODER

HOLDER = """
SELECT daemons.number, daemons.home, daemons.name, daemons.address FROM sessions JOIN daemons ON number = owner WHERE id = ?
"""
"""The fields of a `FleetMember`."""

_LOADS = """
SELECT number, home, daemons.name, address, stopping, expires < clock_timestamp(), labels,
    count(sessions.key), count(sessions.key) FILTER (WHERE state IN ('running', 'waiting')),
    (SELECT count(*) FROM batch_prompts WHERE batch_prompts.state = 'running' AND daemon = daemons.number),
    CAST(EXTRACT(epoch FROM expires - clock_timestamp()) AS float8)
FROM daemons LEFT JOIN sessions ON owner = number GROUP BY number ORDER BY number
"""


_LEFT = """
SELECT greatest(extract(epoch FROM expires - clock_timestamp()), 0)::float8 FROM daemons WHERE number = ?
"""
"""Readiness probes ask this, so it must not cost more in a larger fleet."""


class LeasedMembers:
    """`zotd.store.members.FleetMembers` by the leases of the daemons."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    @property
    def home(self) -> str:
        """Identifies the home of this daemon."""
        return self._database.lease.home

    def announce(self, address: str) -> None:
        """Store the address with the next renewal of the lease, which is now."""
        self._database.lease.announce(address)

    def offer(self, labels: Sequence[str]) -> None:
        """Store the labels with the next renewal of the lease, which is now."""
        self._database.lease.offer(ENCODER.encode(list(labels)).decode())

    async def loads(self) -> Sequence[MemberLoad]:
        """Return all daemons, also those whose leases have expired."""
        rows = await self._database.read(lambda connection: connection.execute(_LOADS).fetchall())
        return [_load(row, self._database.lease.number) for row in rows]

    async def lease_s(self) -> float:
        """Return what is left of the lease of this daemon, by the server's clock; 0 if there is no such lease."""
        row = await self._database.look(_LEFT, (self._database.lease.number,))
        return 0.0 if row is None else float(row[0])


def holder(connection: SqlConnection, session: str) -> FleetMember | None:
    """Return the daemon that has the session; None if none has it."""
    found = connection.execute(HOLDER, (session,)).fetchone()
    return None if found is None else FleetMember(*found)


def _load(row: Row, this: int) -> MemberLoad:
    member, (is_stopping, has_expired, labels), figures = FleetMember(*row[:4]), row[4:7], row[7:]
    state: MemberState = "expired" if has_expired else "stopping" if is_stopping else "running"
    sessions, running, prompts, lease_s = figures
    offered = msgspec.json.decode(labels, type=list[str])
    return MemberLoad(member, state, member.number == this, sessions, running, offered, prompts, lease_s)
