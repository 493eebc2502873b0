"""A program that runs one command for longer than the daemon lives, records its output and its end, and then exits.

    stdin: `SupervisorOrder` ──> the state is created ──> the command runs ─┬─> exits ──────────────────┬─> all that it has started
                                                                            └─> SIGTERM to this program ┘   ends ──> the end is recorded

It is the parent of the command because only a parent gets an exit code. It keeps its own entries in the ledger of children, as a
daemon does: if it is killed, the sweep of a daemon of its home ends the command (`zotd.process.orphan_reaper`).

Run by `zotd.process.supervised_command`; not a command for people.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Coroutine
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from zotd.decodable import decodable
from zotd.process.background import BackgroundCommand, start_in_background
from zotd.process.bounded_output import BoundedOutput
from zotd.process.census import Identity, identify, world
from zotd.process.orphan_reaper import OrphanReaper
from zotd.process.subreaper import orphans_adopted
from zotd.process.supervisor_state import (
    ENDED,
    RUNNING,
    STARTING,
    SupervisorOrder,
    SupervisorState,
    create_state,
    replace_state,
)

KEPT_BASES = 2
"""Files of the output whose offsets are recorded: the one that readers have open, and its successor."""


class _Record:
    """The state file of this supervisor."""

    def __init__(self, path: Path, state: SupervisorState) -> None:
        self.state = state
        self._path = path

    def create(self) -> bool:
        """Create the file; False if a daemon has given this supervisor up."""
        return create_state(self._path, self.state)

    def change(self, **changes: object) -> None:
        """Replace the file by one with these fields changed."""
        self.state = replace(self.state, **changes)
        replace_state(self._path, self.state)

    def moved(self, inode: int, base: int) -> None:
        """Record where the successor of the output's file begins, before it replaces that. Called on a thread."""
        self.change(bases=[*self.state.bases, (inode, base)][-KEPT_BASES:])


async def supervise(order: SupervisorOrder) -> None:
    """Run the command to its end. Raises OSError if its state cannot be recorded; the command does not run then, or is ended."""
    me = identify(os.getpid()) or Identity(os.getpid(), 0)
    record = _Record(Path(order.state), SupervisorState(state=STARTING, world=world(), supervisor=me))
    if not record.create():
        return
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    output = BoundedOutput(Path(order.output), order.limit_bytes, moved=record.moved)
    async with asyncio.TaskGroup() as group:
        reaper = OrphanReaper(Path(order.home), partial(_own, group))
        with orphans_adopted():
            began = time.time()
            try:
                command = _started(order, output, reaper)
            except (OSError, ValueError) as error:
                record.change(state=ENDED, error=str(error))
                return
            # If the state cannot be recorded, the group cancels this task, which kills the command.
            followed = group.create_task(command.follow(), name="command")
            record.change(state=RUNNING, pid=command.pid, mark=command.mark, began=began)
            stopper = group.create_task(_stop_after(stop, command), name="stop")
            await followed
            stopper.cancel()
            await reaper.close()
    took_s = round(time.time() - began, 3)
    record.change(state=ENDED, exit=command.code, output_bytes=output.total, failure=output.failure, took_s=took_s)


def _started(order: SupervisorOrder, output: BoundedOutput, reaper: OrphanReaper) -> BackgroundCommand:
    claim = reaper.claim(order.what)
    return start_in_background(
        order.argv, cwd=order.cwd, env=order.env, output=output, claim=claim, jail=None, came=_not_heard
    )


async def _stop_after(stop: asyncio.Event, command: BackgroundCommand) -> None:
    await stop.wait()
    await command.stop()


def _own(group: asyncio.TaskGroup, name: str, work: Coroutine[object, object, None]) -> None:
    group.create_task(work, name=name)


def _not_heard(_: bytes) -> None:
    """Readers look at the file."""


def main() -> None:
    """Run the command of the order on stdin."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=decodable(SupervisorOrder))
    asyncio.run(supervise(order))


if __name__ == "__main__":
    main()
