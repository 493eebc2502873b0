"""Dialogs that follow the events of all sessions, not only of the one on the screen."""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from zotd.wire.events import AnyEvent


@runtime_checkable
class Watching(Protocol):
    """A dialog that gets the daemon's events while it is open."""

    def see(self, event: AnyEvent) -> None:
        """Take an event of a subscribed topic; ignore what is not about sessions."""
        ...


def watching(dialogs: Iterable[object]) -> list[Watching]:
    """Return the dialogs that implement `Watching`."""
    return [dialog for dialog in dialogs if isinstance(dialog, Watching)]
