"""A host of children that can be killed: `python a_host.py HOME KIND COMMAND...`; prints what the children print.

KIND `service` claims each command as a service, `tool` only records it.
"""

import asyncio
import os
import sys
from pathlib import Path

from zotd.process import OrphanReaper, spawn, start_service
from zotd.tasks import contained


class Echo:
    """Callbacks of a service."""

    def output(self, data: bytes) -> None:
        os.write(1, data)

    def errors(self, data: bytes) -> None:
        os.write(2, data)

    def closed(self, pipe: str) -> None:
        """Do nothing: many services close their pipes before they exit."""

    def stalled(self, reason: str) -> None:
        """Do nothing: no input is written."""

    def exited(self, code: int | None) -> None:
        os.write(1, f"exit {code}\n".encode())


async def main(home: str, kind: str, *commands: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        reaper = OrphanReaper(Path(home), lambda name, work: void(contained(tasks, name, work)))
        for command in commands:
            argv = ["sh", "-c", command]
            if kind == "service":
                start_service(argv, cwd="/", env=os.environ, listener=Echo(), claim=reaper.claim("a test"))
            else:
                child = spawn(argv, cwd="/", env=os.environ, on_output=Echo().output, ledger=reaper.ledger)
                tasks.create_task(tell(child.wait()))
        await asyncio.Event().wait()


async def tell(code) -> None:
    Echo().exited(await code)


def void(_: object) -> None:
    """Ignore the task: its task group owns it."""


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
