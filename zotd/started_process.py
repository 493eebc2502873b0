"""What is known of a process that was just started."""

from typing import Protocol, TypeVar


class StartedProcess(Protocol):
    """A child of this process, which was not reaped yet."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...


Started = TypeVar("Started", bound=StartedProcess)
"""What the start of a process returns."""
