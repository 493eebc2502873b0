"""How far the terminal is behind what was written to it: behind a thin line that can be seconds.

    frame + question ──> … ──> the terminal draws it, and answers ──> the next frame that no key has asked for
                         └──> keys are drawn at once meanwhile; finished lines wait

A kernel does not say what is under way: `TIOCOUTQ` of a pseudoterminal is 0, and 22 KB fit before a write blocks; behind
ssh there are buffers of megabytes. So the terminal itself is asked, with the question that each one answers (DA1).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

QUESTION = "\x1b[c"

PATIENCE_S = 4.0
"""A terminal that does not answer for so long is written to all the same: the answer is lost."""

THIN_S = 0.15
"""An answer that took longer came over a thin line, or a long one: then finished lines come in portions."""

PORTION_BYTES = 512
"""Of finished lines in a frame on such a line: what a key waits for, besides the area itself. 0.13 s at 4 KB/s."""

SETTLE_S = 0.3
"""How long another program that gets the terminal waits for an answer that is due."""


class Pace:
    """Of one terminal."""

    def __init__(self, *, asks: bool = False, expect: Callable[[bool], None] = lambda _: None) -> None:
        """`asks`: the terminal would understand it. `expect` is told whether an answer is due."""
        self._asks = asks
        self._expect = expect
        self._asked_at: float | None = None
        self._answered = asyncio.Event()
        self._lag_s: float | None = None
        """What the last answer took; None: there was none so far, and perhaps never is."""

    @property
    def held_until(self) -> float:
        """The time of the loop before which no frame is wanted that no key has asked for; 0: now is good."""
        return self._asked_at + PATIENCE_S if self._asked_at is not None and self._lag_s is not None else 0.0

    @property
    def is_behind(self) -> bool:
        """The terminal has not drawn yet what was written."""
        return self.held_until > asyncio.get_running_loop().time()

    @property
    def portion(self) -> int | None:
        """Bytes of finished lines that may be in the next frame, one line at least; None: all."""
        return PORTION_BYTES if self._lag_s is not None and self._lag_s > THIN_S else None

    def question(self) -> str:
        """What is to be written behind a frame; empty while an answer is due."""
        if not self._asks or self.is_behind:
            return ""
        self._asked_at = asyncio.get_running_loop().time()
        self._answered.clear()
        self._expect(True)
        return QUESTION

    def answered(self) -> None:
        """The terminal has answered."""
        if self._asked_at is not None:
            self._lag_s = asyncio.get_running_loop().time() - self._asked_at
            self._asked_at = None
            self._answered.set()
            self._expect(False)

    async def settled(self) -> None:
        """Wait for an answer that is due, for a moment: another program would read it as keys."""
        if self._asked_at is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_S):
                    await self._answered.wait()
