"""Looking at an extension's code in a thread before its process starts, and when it has begun to run."""

import asyncio
from collections.abc import Callable

from zotd.exthost.manifest import Manifest

Vet = Callable[[Manifest], str | None]
"""Why it must not run, as the end of a sentence; None: it may. Blocks."""


class Vetting:
    """What one extension waits for; used on one event loop."""

    def __init__(self, vet: Vet) -> None:
        self._vet = vet
        self._waiting: set[int] = set()

    def look(self, manifest: Manifest, tell: Callable[[str | None], None]) -> None:
        """Look at its code, and `tell` on the event loop why it must not run, or None."""

        def done(looked: asyncio.Future[str | None]) -> None:
            error = looked.exception()
            tell(looked.result() if error is None else f"cannot be checked: {error}")

        asyncio.get_running_loop().run_in_executor(None, self._vet, manifest).add_done_callback(done)

    def before(self, number: int, manifest: Manifest, tell: Callable[[str | None], None]) -> None:
        """The same for a process that has not started; nothing is told after `give_up`."""

        def passed(fault: str | None) -> None:
            if self.give_up(number):
                tell(fault)

        self._waiting.add(number)
        self.look(manifest, passed)

    def give_up(self, number: int) -> bool:
        """This process is not wanted any more; False when it was not waited for."""
        is_waiting = number in self._waiting
        self._waiting.discard(number)
        return is_waiting
