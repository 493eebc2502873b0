"""Takes over what daemons have left whose leases have expired."""

from collections.abc import Sequence

import psycopg

from zotd.store.members import PLACE
from zotd.store.postgres.registration import RENEW_S, as_list

REAP_S = 1
"""Longest wait for a lock meanwhile: this daemon's own lease has to be renewed."""

_CUT_OFF = """
SELECT pg_terminate_backend(pid, 100) FROM pg_stat_activity JOIN daemons ON application = application_name
WHERE expires < clock_timestamp() AND number <> %s
"""
"""A daemon that was stopped while it sent a transaction holds its locks until its connection is ended.

Waits 100 ms for each: what has not ended by then keeps the locks of its row, which is left for the next renewal."""

_REAP = f"""
DELETE FROM daemons WHERE number IN (
    SELECT number FROM daemons AS ended WHERE expires < clock_timestamp() AND number <> %(me)s AND (
        expires < clock_timestamp() - make_interval(secs => {RENEW_S}) OR NOT EXISTS (
            SELECT FROM daemons AS near, jsonb_array_elements_text({as_list("ended.labels")}) AS label
            WHERE starts_with(label, '{PLACE}') AND {as_list("near.labels")} @> to_jsonb(label)
                AND NOT %(labels)s::jsonb @> to_jsonb(label)
                AND near.number <> ended.number AND NOT near.stopping AND near.expires > clock_timestamp()
        )
    ) FOR UPDATE SKIP LOCKED
) RETURNING number, name
"""  # noqa: S608  (constants of our own)
"""A row that a transaction of its daemon has locked is left for the next time.

If a daemon at the place of the one that has ended is there, which has the files of its sessions, others leave it to that one for
the time in which each daemon looks once."""

_INHERIT = "UPDATE sessions SET owner = %s WHERE owner = ANY(%s) AND state = ANY(%s) RETURNING id"

_BEQUEATH = "UPDATE handovers SET heir = %s WHERE NOT EXISTS (SELECT FROM daemons WHERE number = heir)"


def take_over(
    connection: psycopg.Connection, me: int, labels: str, states: Sequence[str]
) -> tuple[Sequence[tuple[int, str]], list[str]]:
    """Delete the rows of daemons whose leases have expired, and give this daemon what they were working on or were given.

    Args:
        connection: in no transaction.
        me: the number of this daemon.
        labels: those of this daemon, a list in JSON.
        states: those of the sessions that it takes.

    Returns:
        The numbers and names of these daemons, and the sessions.
    """
    taken: list[str] = []
    connection.execute(_CUT_OFF, (me,))
    with connection.transaction():
        connection.execute(f"SET LOCAL lock_timeout = '{REAP_S}s'")
        ended = connection.execute(_REAP, {"me": me, "labels": labels}).fetchall()
        if ended:
            values = (me, [number for number, _ in ended], list(states))
            taken = [session for (session,) in connection.execute(_INHERIT, values).fetchall()]
        connection.execute(_BEQUEATH, (me,))
    return ended, taken
