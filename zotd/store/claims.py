"""What differs between databases when daemons claim work that belongs to all of them."""

from collections.abc import Callable
from typing import Protocol

from zotd.store.connection import SqlConnection


class ClaimRules(Protocol):
    """Who may work on what; clauses are parts of statements of `zotd.store.batches`."""

    lock: str
    """Ends a query of rows that are changed next."""
    lock_free: str
    """The same, and leaves out rows that another daemon is changing."""
    adoptable: str
    """Condition for a prompt (`batch_prompts`) whose claim is, or may become, that of the daemon `:me`.

    It is its own, or follows the session to this daemon, or neither the daemon that has claimed it nor one that has its
    session is there any more.
    """
    is_shared: bool
    """Whether other daemons use the database."""

    @property
    def number(self) -> int:
        """Number of this daemon."""
        ...

    def tell(self, connection: SqlConnection) -> None:
        """Tell all daemons, this one included, that prompts or results have changed, when the caller's transaction is over."""
        ...

    def listen(self, told: Callable[[], None]) -> None:
        """Call this on the event loop when another daemon has told. It may be lost, so look from time to time."""
        ...


class SoleClaims:
    """`ClaimRules` of a file, which no other daemon uses."""

    lock = ""
    """Only one thread writes."""
    lock_free = ""
    """Only one thread writes."""
    adoptable = ":me = 0"
    """Any: the daemon before has ended."""
    is_shared = False
    """There is no other daemon."""
    number = 0
    """Of every daemon of the file, one after the other."""

    def tell(self, connection: SqlConnection) -> None:
        """There is no other daemon."""

    def listen(self, told: Callable[[], None]) -> None:
        """There is no other daemon."""
