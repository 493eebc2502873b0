"""Dialogs that show more than this client's session."""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from zotd.wire.events import AnyEvent


@runtime_checkable
class Watching(Protocol):
    """A dialog that wants to know what happens in the daemon, as long as it is open."""

    def see(self, event: AnyEvent) -> None:
        """Take an event of the topic `sessions`; others are ignored."""
        ...


def watching(dialogs: Iterable[object]) -> list[Watching]:
    """Those of them that do."""
    return [dialog for dialog in dialogs if isinstance(dialog, Watching)]
