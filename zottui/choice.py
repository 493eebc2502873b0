"""What lists of names offer."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListChoice:
    """Something to choose from a list by its name."""

    name: str
    """What is inserted; a command's without its slash."""
    what: str = ""
    """A few words about it."""
    source: str = ""
    """The extension it comes from; empty: ours."""
    needs_argument: bool = False
    """A command that means nothing alone: Enter on a beginning of its name waits for more."""
