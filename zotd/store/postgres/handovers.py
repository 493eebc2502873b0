"""Gives sessions of this daemon to another one, in a transaction: the owner, the timers, and a note for the heir."""

import logging
from collections.abc import Sequence

from zotd.store.connection import SqlConnection
from zotd.store.members import PLACE
from zotd.store.postgres.notifications import WAKE
from zotd.store.postgres.registration import as_list

_HEIRS = f"""
SELECT number, EXISTS (
    SELECT FROM jsonb_array_elements_text({as_list("labels")}) AS label
    WHERE starts_with(label, '{PLACE}') AND CAST(:labels AS jsonb) @> to_jsonb(label)
)
FROM daemons WHERE number <> :me AND NOT stopping AND expires > clock_timestamp() ORDER BY number FOR KEY SHARE
"""  # noqa: S608  (constants of our own)
"""With whether they are at a place of this daemon."""

_GIVE = "UPDATE sessions SET owner = :heir WHERE owner = :me AND id = ANY(:sessions) RETURNING id"

_GIVE_TIMERS = "UPDATE timers SET owner = :heir WHERE owner = :me AND session = ANY(:sessions)"

_NOTE = """
INSERT INTO handovers SELECT unnest(:sessions::text[]), :heir, :goes_on
ON CONFLICT (session) DO UPDATE SET heir = excluded.heir, goes_on = handovers.goes_on OR excluded.goes_on
"""
"""A session that has not been received yet and is given to a third daemon goes on there, too."""

_FORWARD = "UPDATE handovers SET heir = :heir WHERE heir = :me"

log = logging.getLogger(__name__)


class Heirs:
    """The daemons that could go on with sessions of this one; their rows are kept until the end of the transaction."""

    def __init__(self, connection: SqlConnection, me: int, labels: str) -> None:
        """`labels`: those of this daemon, a list in JSON."""
        found = connection.execute(_HEIRS, {"me": me, "labels": labels}).fetchall()
        self.all = [number for number, _ in found]
        self.best = [number for number, is_near in found if is_near] or self.all
        """Those at the place of this daemon, which have the files already; if there is none, all."""


def hand_over(connection: SqlConnection, sessions: Sequence[str], me: int, heir: int, *, goes_on: bool) -> bool:
    """Give those of these sessions that are this daemon's to the heir; return whether there are any."""
    values = {"me": me, "heir": heir}
    given = [key for (key,) in connection.execute(_GIVE, {**values, "sessions": list(sessions)}).fetchall()]
    connection.execute(_GIVE_TIMERS, {**values, "sessions": given})
    connection.execute(_NOTE, {"heir": heir, "sessions": given, "goes_on": goes_on})
    connection.execute(f"NOTIFY {WAKE}")
    if given:
        log.info("handed over to daemon %d: %s", heir, ", ".join(given))
    return bool(given)


def forward(connection: SqlConnection, me: int, heir: int) -> None:
    """Have the heir go on with what was given to this daemon, and was not received yet."""
    connection.execute(_FORWARD, {"me": me, "heir": heir})
