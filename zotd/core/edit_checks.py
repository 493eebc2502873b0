"""The port to what looks for errors in files that sessions have edited."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from zotd.wire.diagnostics import LanguageServerInfo

CheckEdit = Callable[[str, bytes | None, bytes], Awaitable[str]]
"""Returns what the model is told of the errors that a change has caused, or nothing; takes a bounded time.

Gets the real path of the file, its content before (None: there was no file), and after.
"""


class EditingSession(Struct, frozen=True):
    """A session whose edits are checked."""

    id: str
    cwd: str
    """Its working directory, a real path."""
    env: Mapping[str, str]
    """Of the user."""
    told: Callable[[str], None]
    """Shows people a sentence about the session."""


class EditChecker(Protocol):
    """Checks the edits of all sessions."""

    async def new_errors(self, session: EditingSession, path: str, before: bytes | None, after: bytes) -> str:
        """See `CheckEdit`."""
        ...

    async def leave(self, session_id: str) -> None:
        """End what runs for this session only."""
        ...

    async def stop(self) -> None:
        """End everything."""
        ...

    async def listing(self) -> Sequence[LanguageServerInfo]:
        """Return what runs."""
        ...
