"""Asking the daemon again and again: one question at a time, and of those that come meanwhile the newest is next.

So nothing waits for a pause, no timer runs, and a slow answer is never followed by a dozen old questions.
"""

from collections.abc import Callable, Coroutine
from typing import Generic, TypeVar

from zottui.ui_context import UiContext

T = TypeVar("T")


class Newest(Generic[T]):
    """Answers for the text that was wanted last."""

    def __init__(
        self,
        spawn: Callable[[Coroutine[object, object, None]], None],
        ask: Callable[[str], Coroutine[object, object, T]],
        take: Callable[[str, T], None],
    ) -> None:
        """`take` gets a text and its answer, but for texts that were overtaken by another."""
        self._spawn = spawn
        self._ask = ask
        self._take = take
        self._wanted: str | None = None
        self._asking = False

    def want(self, text: str) -> None:
        """Ask about `text` as soon as the question that is under way is answered; the others are forgotten."""
        self._wanted = text
        if not self._asking:
            self._asking = True
            self._spawn(self._run())

    async def _run(self) -> None:
        try:
            while self._wanted is not None:
                text, self._wanted = self._wanted, None
                answer = await self._ask(text)
                if self._wanted is None:
                    self._take(text, answer)
        finally:
            self._asking = False


class Refreshing:
    """One thing that is asked for whenever it may have changed; however often meanwhile, once more afterwards."""

    def __init__(self, desk: UiContext, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """`work` asks, and keeps the answer; what it raises becomes a note of `desk`."""
        self._asking = Newest(desk.spawn, lambda _: work(), lambda *_: desk.redraw())

    def want(self) -> None:
        """Have it done, soon; then the screen is drawn again."""
        self._asking.want("")
