"""Registers a daemon in the database: it gets a number that no other one ever has, and a lease."""

import psycopg

from zotd.store.postgres.identity import DaemonIdentity

LEASE_S = 10.0
"""How long a lease is valid after a renewal. Two renewals may fail before it ends."""

RENEW_S = 3.0
"""Time between two renewals."""

EXPIRES = f"clock_timestamp() + make_interval(secs => {LEASE_S})"
"""When a lease expires that is renewed now, by the server's clock."""

_REPLACE = "DELETE FROM daemons WHERE home = %s"

_NUMBER = "UPDATE meta SET value = (value::bigint + 1)::text WHERE key = 'generation' RETURNING value::bigint"

_REGISTER = f"INSERT INTO daemons VALUES (%s, %s, %s, {EXPIRES}, false, %s, %s)"  # noqa: S608  (an expression of our own)


def as_list(labels: str) -> str:
    """Return the expression of a list in JSON for a column of labels, which may be those of a daemon of an earlier version.

    That one stored the character NUL, too, with which every statement that reads the list would fail.
    """
    return rf"replace({labels}, '\u0000', '\ufffd')::jsonb"


def register(connection: psycopg.Connection, identity: DaemonIdentity, address: str = "") -> int:
    """Give a daemon a number and a lease, in place of an earlier daemon of its home; in the caller's transaction."""
    connection.execute(_REPLACE, (identity.home,))
    (number,) = connection.execute(_NUMBER).fetchone() or (0,)
    connection.execute(_REGISTER, (number, identity.home, identity.name, identity.application, address))
    return int(number)
