"""Functions of the program that are told of events: `Agent.on`."""

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar, cast

from zot.errors import OptionError
from zot.results import FinishedCall
from zotd.wire import events

Heard = events.Event | FinishedCall
"""What a handler can be told of."""

E = TypeVar("E", bound=Heard)

Handler = Callable[[E], Awaitable[None] | None]

log = logging.getLogger(__name__)


class EventHandlers:
    """The functions that are told of an agent's events, in the order in which they were added."""

    def __init__(self) -> None:
        self._handlers: list[tuple[type[Heard], Handler[Heard]]] = []

    def __iter__(self) -> Iterator[tuple[type[Heard], Handler[Heard]]]:
        return iter(tuple(self._handlers))

    def add(self, kind: type[E], handler: Handler[E]) -> None:
        """Tell `handler` of each event of this kind, from the next one on."""
        # The handler is told of nothing else.
        self._handlers.append((cast("type[Heard]", kind), cast("Handler[Heard]", handler)))

    async def tell(self, *happened: Heard | None) -> None:
        """Call the functions one after another about what happened; what one of them raises is logged."""
        for event in happened:
            for kind, handler in self:
                if event is not None and isinstance(event, kind):
                    await _call(handler, event)


def check_kind(kind: object) -> None:
    """Raise OptionError for what is no class of events, and not `FinishedCall`."""
    if not (isinstance(kind, type) and issubclass(kind, Heard)):
        raise OptionError(f"on: expected a class of zot.events, or FinishedCall, not {kind!r:.80}")


async def _call(handler: Handler[Heard], event: Heard) -> None:
    try:
        waiting = handler(event)
        if waiting is not None:
            await waiting
    except Exception:  # what only looks on must not end the run
        log.exception("a function that was told of %s failed", type(event).__name__)
