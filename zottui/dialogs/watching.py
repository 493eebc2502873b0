"""Dialogs that follow the events of all sessions, not only of the one on the screen."""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from zotd.wire.events import AnyEvent, SideDelta


@runtime_checkable
class Watching(Protocol):
    """A dialog that gets the daemon's events while it is open."""

    def see(self, event: AnyEvent) -> None:
        """Take an event of a subscribed topic, or a `SideDelta`; ignore what it is not about."""
        ...


def tell_beside(dialogs: Iterable[object], batch: Iterable[AnyEvent]) -> None:
    """Tell the dialogs of the events of a session that are only for the client that asked."""
    for event in batch:
        if isinstance(event, SideDelta):
            for dialog in watching(dialogs):
                dialog.see(event)


def watching(dialogs: Iterable[object]) -> list[Watching]:
    """Return the dialogs that implement `Watching`."""
    return [dialog for dialog in dialogs if isinstance(dialog, Watching)]
