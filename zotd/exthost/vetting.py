"""Checks an extension's code against its grant, in a thread, before its process starts and again after its hello."""

import asyncio
from collections.abc import Callable

from zotd.exthost.manifest import Manifest

Vet = Callable[[Manifest], str | None]
"""Returns why the extension must not run, as the end of a sentence, or None. Blocks."""


class Vetting:
    """Pending checks of one extension. Belongs to one event loop."""

    def __init__(self, vet: Vet) -> None:
        self._vet = vet
        self._waiting: set[int] = set()

    def look(self, manifest: Manifest, tell: Callable[[str | None], None]) -> None:
        """Check its code; call `tell` on the event loop with the reason why it must not run, or None."""

        def done(looked: asyncio.Future[str | None]) -> None:
            error = looked.exception()
            # A check that fails counts as a refusal: code that cannot be read cannot be the granted code.
            tell(looked.result() if error is None else f"cannot be checked: {error}")

        asyncio.get_running_loop().run_in_executor(None, self._vet, manifest).add_done_callback(done)

    def before(self, number: int, manifest: Manifest, tell: Callable[[str | None], None]) -> None:
        """Like `look`, for a process that has not started. `tell` is not called after `give_up`."""

        def passed(fault: str | None) -> None:
            if self.give_up(number):
                tell(fault)

        self._waiting.add(number)
        self.look(manifest, passed)

    def give_up(self, number: int) -> bool:
        """Forget a process that is no longer needed; return False if it was not waited for."""
        is_waiting = number in self._waiting
        self._waiting.discard(number)
        return is_waiting
