"""Measures how far the terminal lags behind the output, which may be seconds on a slow connection.

    frame + question ──> … ──> the terminal draws it and answers ──> the next frame without a key press
                         └──> typed keys are drawn at once meanwhile; finished lines wait

The kernel does not tell how much output is under way: `TIOCOUTQ` of a pseudoterminal is 0, 22 KB fit before a write
blocks, and ssh buffers megabytes. So the terminal itself is asked with a query that all of them answer (DA1). Why:
docs/decisions/0051.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

QUESTION = "\x1b[c"

PATIENCE_S = 4.0
"""Seconds after which an answer counts as lost and frames are drawn again."""

THIN_S = 0.15
"""An answer that took longer means a slow connection: finished lines are then written in portions."""

PORTION_BYTES = 512
"""Finished lines in one frame on a slow connection. A key waits for them and the live area: 0.13 s at 4 KB/s."""

SETTLE_S = 0.3
"""Seconds to wait for a pending answer before another program gets the terminal."""


class Pace:
    """Decides when the next frame may be drawn on one terminal."""

    def __init__(self, *, asks: bool = False, expect: Callable[[bool], None] = lambda _: None) -> None:
        """`asks`: the terminal understands DA1. `expect` is called with True when an answer is pending, with False after."""
        self._asks = asks
        self._expect = expect
        self._asked_at: float | None = None
        self._answered = asyncio.Event()
        # Seconds that the last answer took; None: the terminal has never answered, so frames do not wait for it.
        self._lag_s: float | None = None

    @property
    def held_until(self) -> float:
        """Loop time before which only keys may cause a frame; 0: no restriction."""
        # A terminal that has never answered may not know the query. Frames must not wait for it at all.
        return self._asked_at + PATIENCE_S if self._asked_at is not None and self._lag_s is not None else 0.0

    @property
    def is_behind(self) -> bool:
        """Whether the terminal has not yet drawn the last frame."""
        return self.held_until > asyncio.get_running_loop().time()

    @property
    def portion(self) -> int | None:
        """Characters of finished lines for the next frame, at least one line; None: all lines."""
        return PORTION_BYTES if self._lag_s is not None and self._lag_s > THIN_S else None

    def question(self) -> str:
        """Return the query to write after a frame; empty while an answer is pending."""
        if not self._asks or self.is_behind:
            return ""
        self._asked_at = asyncio.get_running_loop().time()
        self._answered.clear()
        self._expect(True)
        return QUESTION

    def answered(self) -> None:
        """Take the terminal's answer."""
        if self._asked_at is not None:
            self._lag_s = asyncio.get_running_loop().time() - self._asked_at
            self._asked_at = None
            self._answered.set()
            self._expect(False)

    async def settled(self) -> None:
        """Wait at most `SETTLE_S` for a pending answer, which another program would read as typed keys."""
        if self._asked_at is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_S):
                    await self._answered.wait()
