"""Repeated requests to the daemon: one at a time, and of those that queue up meanwhile only the newest is sent.

This needs no debounce timer: the first request goes out at once, and a slow answer never leads to a backlog.
"""

from collections.abc import Callable, Coroutine
from typing import Generic, Protocol, TypeVar

from zottui.ui_context import Redrawable, TaskSpawner

T = TypeVar("T")


class Newest(Generic[T]):
    """Requests an answer for a text, and drops answers to texts that are outdated."""

    def __init__(
        self,
        spawn: Callable[[Coroutine[object, object, None]], None],
        ask: Callable[[str], Coroutine[object, object, T]],
        take: Callable[[str, T], None],
    ) -> None:
        """`take` gets a text and its answer, unless another text was wanted in the meantime."""
        self._spawn = spawn
        self._ask = ask
        self._take = take
        self._wanted: str | None = None
        self._asking = False

    def want(self, text: str) -> None:
        """Request `text` once the current request is answered; replaces a text that still waits."""
        self._wanted = text
        if not self._asking:
            self._asking = True
            self._spawn(self._run())

    async def _run(self) -> None:
        try:
            while self._wanted is not None:
                text, self._wanted = self._wanted, None
                answer = await self._ask(text)
                # A newer text was wanted meanwhile: this answer is outdated, and the loop requests the newer one.
                if self._wanted is None:
                    self._take(text, answer)
        finally:
            # Also after an error or a cancellation, or `want` would never start a request again.
            self._asking = False


class RefreshContext(Redrawable, TaskSpawner, Protocol):
    """What `Refreshing` needs of the application."""


class Refreshing:
    """Reloads one thing whenever it may have changed. Several requests during a reload cause one more reload."""

    def __init__(self, ui: RefreshContext, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """`work` reloads it and stores the answer; an error becomes a note in `ui`."""
        self._asking = Newest(ui.spawn, lambda _: work(), lambda *_: ui.redraw())

    def want(self) -> None:
        """Schedule a reload; the screen is redrawn afterwards."""
        self._asking.want("")
