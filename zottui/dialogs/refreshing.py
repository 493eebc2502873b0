"""Asking the daemon again when something has changed, never twice at a time."""

from collections.abc import Callable, Coroutine

from zottui.desk import Desk


class Refreshing:
    """One thing that is asked for. However often it is wanted meanwhile, it is asked for once more, afterwards."""

    def __init__(self, desk: Desk, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """`work` asks, and keeps the answer; what it raises becomes a note of `desk`."""
        self._desk = desk
        self._work = work
        self._is_wanted = False
        self._is_busy = False

    def want(self) -> None:
        """Have it done, soon; then the screen is drawn again."""
        self._is_wanted = True
        if not self._is_busy:
            self._is_busy = True
            self._desk.spawn(self._run())

    async def _run(self) -> None:
        try:
            while self._is_wanted:
                self._is_wanted = False
                await self._work()
                self._desk.redraw()
        finally:
            self._is_busy = False
