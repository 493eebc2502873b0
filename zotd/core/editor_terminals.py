"""The port to terminals of an editor, in which a command may run."""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct


class TerminalEnd(Struct, frozen=True):
    """How it ended in a terminal, as the editor says."""

    output: str = ""
    """The end of the output, if that is longer than was asked for."""
    is_truncated: bool = False
    code: int | None = None
    """The exit code; None: a signal ended it, or the editor does not say."""
    error: str = ""
    """Why it is not known, as a clause that follows "the editor"; empty: it is."""


class EditorTerminal(Protocol):
    """A terminal that an editor was asked for."""

    async def ended(self) -> TerminalEnd:
        """Return how it ended, once the editor has said so, refuses, or has gone. Never raises; safe to cancel."""
        ...

    def watch(self, then: Callable[[], None]) -> None:
        """Call `then` when `ended` has something to return."""
        ...

    def kill(self) -> None:
        """Have the editor end what runs there, and make no terminal if it has made none yet."""
        ...

    def give_up(self, why: str) -> None:
        """Ask this editor no more, and tell people so; `why` is a clause that follows "the editor"."""
        ...


class EditorTerminals(Protocol):
    """The terminals of the editors of one session."""

    @property
    def sockets(self) -> str:
        """A directory in which paths of sockets are short enough."""
        ...

    def open(self, call: str, argv: Sequence[str], *, cwd: str, output_bytes: int) -> EditorTerminal:
        """Ask the editor to run `argv` in a terminal that it shows for the tool call `call`.

        `output_bytes`: how much of the output it keeps at least until the end.
        """
        ...
