"""The event loop for an extension's coroutines.

A separate module, so that extensions without coroutines never import asyncio, which doubles the start-up time. The loop
runs in a thread, because the main thread reads stdin, which may be a file that a loop cannot watch.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine


class Loop:
    """One asyncio loop in a thread. Not a TaskGroup: this package also runs on Python 3.9."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="event loop", daemon=True)
        self._thread.start()

    def start(
        self, coroutine: Coroutine[object, object, None], started: Callable[[Callable[[], object]], None]
    ) -> None:
        """Run a coroutine that handles its own errors. `started` is called on the loop with a function that cancels it."""

        def spawn() -> None:
            task = self._loop.create_task(coroutine)
            self._tasks.add(task)  # the loop keeps only weak references
            task.add_done_callback(self._tasks.discard)
            started(lambda: self._loop.call_soon_threadsafe(task.cancel))

        self._loop.call_soon_threadsafe(spawn)

    def close(self, patience_s: float) -> bool:
        """Cancel all tasks and stop; return False if that takes longer than `patience_s`."""
        # Only stopped here: `_run` cancels the tasks in the thread of the loop, as asyncio requires.
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(patience_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self._loop.run_until_complete(asyncio.wait(tasks))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
