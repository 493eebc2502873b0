"""A subagent that works in the background, in the place of a command of a job."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from zotd.core.ports import ToolOutcome
from zotd.process.bounded_output import BoundedOutput
from zotd.wire.content import Text

STOPPED = 143
"""The exit code of a subagent that was stopped, as of a command that SIGTERM has ended."""

STOP_S = 6.0
"""Longest wait for a subagent that is stopped to end its run."""

FAULT = "the subagent failed inside zot; tell the user to look into the daemon's log"

log = logging.getLogger(__name__)

TaskWork = Callable[[Callable[[str], None]], Awaitable[ToolOutcome]]
"""Has the subagent work, and returns its answer; cancelled, it aborts the subagent. It is given what shows its progress."""


class BackgroundTask:
    """Satisfies `job_run.JobCommand`. Its output is the progress of the subagent, and then its answer."""

    pid = 0
    mark = ""

    def __init__(self, work: TaskWork, output: BoundedOutput, came: Callable[[bytes], None]) -> None:
        """`came` gets each piece of the output."""
        self.code: int | None = None
        """0 if it has done its task; None while it works, and if the end of the daemon has cut it."""
        self.output = output
        self.answer = ""
        self._work = work
        self._came = came
        self._working: asyncio.Task[ToolOutcome] | None = None
        self._is_stopped = False

    async def follow(self) -> None:
        """Return when it has answered, or was stopped. Cancelled, it leaves the subagent to the next daemon."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.output.write_until_end(lambda: None), name="output of a subagent")
            try:
                await self._follow(group)
            finally:
                self.output.end()

    async def stop(self) -> None:
        """Abort it."""
        self._is_stopped = True
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working], timeout=STOP_S)

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        if self._is_stopped:
            self.code = STOPPED
            return
        self._working = group.create_task(self._answer(), name="a subagent in the background")
        await asyncio.wait([self._working])
        if self._working.cancelled():
            self.code = STOPPED
            return
        outcome = self._working.result()
        self.answer = "".join(block.text for block in outcome.content if isinstance(block, Text))
        self._print(f"{self.answer}\n")
        self.code = int(outcome.is_error)

    async def _answer(self) -> ToolOutcome:
        try:
            return await self._work(self._print)
        except Exception:  # a fault of ours must not leave a job that nobody follows
            log.exception("a subagent in the background failed")
            return ToolOutcome.error(FAULT)

    def _print(self, text: str) -> None:
        data = text.encode(errors="replace")
        self.output.feed(data)
        self._came(data)
