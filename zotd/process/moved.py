"""A command that was started as a `Child` and goes on in the background, as a `BackgroundCommand` does.

    hand over ──> its output goes to a file ──> exits, and its group with it
                                      └──> stop(): as `Child.stop`; what has left the group until then is killed, too

It has no mark in its environment, so what leaves its group and outlives all that has started it is not found.
"""

import asyncio
import signal
from collections.abc import Callable

from zotd.process.background import GRACE_S
from zotd.process.bounded_output import BoundedOutput
from zotd.process.census import KERNEL, Identity, Kernel
from zotd.process.child import KILL_S, Child
from zotd.process.ladder import signal_all


class MovedCommand:
    """A running command; `Child.hand_over` was called. `follow` has to run until it returns."""

    mark = ""
    """It has none."""

    def __init__(self, child: Child, output: BoundedOutput, came: Callable[[bytes], None]) -> None:
        """Take ownership of the child; `came` gets each chunk of the output."""
        self.pid = child.pid
        self.code: int | None = None
        """As in `BackgroundCommand`."""
        self.output = output
        self._child = child
        self._came = came

    def take(self, data: bytes) -> None:
        """Take a chunk of its output."""
        self.output.feed(data)
        self._came(data)
        if self.output.is_behind:
            self._child.pause_output()

    async def follow(self) -> None:
        """Return when it has ended and its output is on disk. Cancelled, it kills the group."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.output.write_until_end(self._child.resume_output), name=f"output of {self.pid}")
            try:
                code = await self._child.wait()
                self.code = code if code >= 0 else 128 - code
            finally:
                self._child.signal_group(signal.SIGKILL)
                self.output.end()

    async def stop(self) -> None:
        """End it as `BackgroundCommand.stop` does, with all that descends from it now."""
        others = await asyncio.to_thread(descendants, self.pid)
        await self._child.stop(GRACE_S)
        await signal_all(others, signal.SIGKILL, KILL_S)


def descendants(pid: int, kernel: Kernel = KERNEL) -> list[Identity]:
    """Return the processes below this one, and those of the session that it leads. Blocks for 10 us a process."""
    known = {one: status for one in kernel.pids() if (status := kernel.status(one)) is not None}
    below = {pid}
    while more := {one for one, status in known.items() if status.parent in below} - below:
        below |= more
    return [
        Identity(one, status.started)
        for one, status in known.items()
        if one != pid and (one in below or status.session == pid)
    ]
