"""Questions that follow the keys: one is under way at a time, and the newest text is asked next.

So nothing waits for a pause in the typing, no timer runs, and a slow answer is never followed by a dozen old questions.
"""

from collections.abc import Callable, Coroutine
from typing import Generic, TypeVar

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
