"""What a tool call is confined to, as tools see it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from zotd.started_process import Started


class CallJail(Protocol):
    """What a tool call is confined to; paths are real ones, without links in them."""

    def may_read(self, path: str) -> bool:
        """Return whether the call may read this file."""
        ...

    def may_write(self, path: str) -> bool:
        """Return whether the call may make or change this file."""
        ...

    def start(self, argv: Sequence[str], start: Callable[[Sequence[str]], Started]) -> Started:
        """Call `start` once, with the command to run in place of `argv`, so that the process is confined. Blocks.

        Raises what the jail raises if the process would not be confined.
        """
        ...

    def ended(self) -> Sequence[str]:
        """Take back what the jail could not keep a command from, which has ended; return it as clauses, as `refused` does.

        Blocks for some system calls.
        """
        ...

    def refused(self, output: str) -> Sequence[str]:
        """Return what the jail has refused a command with this output, as clauses that follow "it may not"."""
        ...

    def closed_places(self, output: str) -> Sequence[str]:
        """Return real paths that a person can open, so that the command may change what it was refused. Blocks."""
        ...
