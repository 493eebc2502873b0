"""`zotd.store.claims.ClaimRules` of daemons with leases."""

from collections.abc import Callable

from zotd.store.connection import SqlConnection
from zotd.store.postgres.lease import Lease
from zotd.store.postgres.notifications import WORK


class LeasedClaims:
    """Claims are those of the daemon with this lease."""

    lock = "FOR UPDATE"
    lock_free = "FOR UPDATE SKIP LOCKED"
    adoptable = """(
        daemon = :me
        OR EXISTS (SELECT FROM sessions WHERE id = session AND owner = :me)
        OR NOT EXISTS (SELECT FROM daemons WHERE number = daemon)
            AND NOT EXISTS (SELECT FROM sessions JOIN daemons ON daemons.number = owner WHERE id = session)
    )"""
    is_shared = True

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    @property
    def number(self) -> int:
        """Number of this daemon; another one after it has lost its lease."""
        return self._lease.number

    def tell(self, connection: SqlConnection) -> None:
        """Notify all daemons when the transaction is over."""
        connection.execute(f"NOTIFY {WORK}")

    def listen(self, told: Callable[[], None]) -> None:
        """Call this on the event loop for each notification of another daemon, and of this one."""
        self._lease.listen(told)
