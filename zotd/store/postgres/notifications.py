"""What daemons of a database tell each other at once. A notification can be lost, and only makes a daemon look earlier."""

from collections.abc import Collection

import psycopg

WAKE = "zot_lease"
"""A daemon has handed over sessions, which the renewal of the other one's lease finds."""

WORK = "zot_work"
"""Prompts wait, or results have come."""


def arrived(connection: psycopg.Connection) -> Collection[str]:
    """Return the names of the notifications that have arrived, without waiting; none if the connection is lost."""
    found: set[str] = set()
    try:
        connection.pgconn.consume_input()
    except psycopg.Error:
        return found
    while (notification := connection.pgconn.notifies()) is not None:
        found.add(notification.relname.decode())
    return found
