"""An entry of a completion list."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListChoice:
    """A name that completion can insert."""

    name: str
    """The inserted text; a command's name without the slash."""
    what: str = ""
    """A short description."""
    source: str = ""
    """The extension that provides it; empty: built in."""
    needs_argument: bool = False
    """Whether the command needs an argument: then Enter on a partial name completes it instead of running it."""
