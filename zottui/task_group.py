"""Background tasks that end with the application at the latest."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager


class BackgroundTasks:
    """The background tasks of one application."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        """`failed` gets exceptions that a task should have handled itself."""
        self._failed = failed
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Allow tasks during the block, and cancel them at its end."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                self.cancel()

    def begin(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        """Start a task; only within `running`."""
        assert self._group is not None, "nothing begins before the application runs"
        task = self._group.create_task(self._watched(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is cancelled before its first step never awaits `work`; close it, or Python warns about it.
        task.add_done_callback(lambda _: work.close())
        return task

    async def _watched(self, work: Coroutine[object, object, None]) -> None:
        """Report an exception instead of raising it: a TaskGroup would cancel all other tasks."""
        try:
            await work
        except Exception as error:  # noqa: BLE001  (reported to `failed`, which ends the client)
            self._failed(error)

    def cancel(self) -> None:
        """Cancel the current tasks; later ones are not affected."""
        for task in self._tasks:
            task.cancel()
