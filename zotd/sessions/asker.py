"""Who sends a slash command, and hears what came of it."""

from collections.abc import Callable

from msgspec import Struct, field
from msgspec.structs import replace

from zotd.runs.queue import SubmitRequest
from zotd.wire.api import CommandResult, Started


class Asker(Struct, frozen=True):
    """The client that sent a slash command, and how to answer it."""

    sender: str
    """Name of the sender in the queue and the log."""
    respond: Callable[[CommandResult], None]
    """Answers; called before any event that the command causes."""
    client: str | None = None
    """The connection's id, which the extension is told."""
    insert: Callable[[str], None] | None = None
    """Puts text into the editor of the one who asked; None: there is no editor."""
    request: SubmitRequest = field(default_factory=SubmitRequest)
    """What the one who asked wants of the run that the command starts."""
    can_decide: bool = False
    """The one who asked may approve calls, so also a mode that allows more."""

    def accepted(self, started: Started) -> None:
        """Answer that it has begun a run, or waits for its turn."""
        result = CommandResult("prompt", input=started.input, run=started.run)
        self.respond(replace(result, position=started.position, started=started.started))
