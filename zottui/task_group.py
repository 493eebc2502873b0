"""Work that goes on beside the keys, and ends with the application at the latest."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager


class BackgroundTasks:
    """The tasks of one application."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        """None before `running`; `failed` is told what none of them should have raised."""
        self._failed = failed
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """For the time of this block tasks can begin; at its end they are cancelled."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                self.cancel()

    def begin(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        """A task that does it."""
        assert self._group is not None, "nothing begins before the application runs"
        task = self._group.create_task(self._watched(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # it may have been cancelled before it began
        return task

    async def _watched(self, work: Coroutine[object, object, None]) -> None:
        """A mistake in one task must not cancel the others in the middle of what they do."""
        try:
            await work
        except Exception as error:  # noqa: BLE001  (whatever it is)
            self._failed(error)

    def cancel(self) -> None:
        """End what is under way; what begins later is not affected."""
        for task in self._tasks:
            task.cancel()
