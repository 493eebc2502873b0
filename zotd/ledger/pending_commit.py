"""Records of a session that the journal gets as one commit, and what is shown once it has them."""

from collections.abc import Callable, Sequence

from zotd.core.ports import JournalEntry


class PendingCommit:
    """Gathers records until the commit is handed to the journal; then it is complete."""

    def __init__(self) -> None:
        self.entries: list[JournalEntry] = []
        self._shows: list[Callable[[], None]] = []

    def add(self, entries: Sequence[JournalEntry], show: Callable[[], None]) -> None:
        """Add records behind the earlier ones; `show` is called when the journal has them."""
        self.entries += entries
        self._shows.append(show)

    def then(self, show: Callable[[], None]) -> None:
        """Call `show` after everything that was added so far has been shown."""
        self._shows.append(show)

    def show(self) -> None:
        """Show all of it, in order."""
        for show in self._shows:
            show()
