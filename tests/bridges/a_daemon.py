"""A host of the MCP servers of a directory, to be killed: `python a_daemon.py DIRECTORY`; says `ready PID` of their process."""

import asyncio
import os
import sys
from pathlib import Path

from tests.exthost.conftest import Heard
from zotd.exthost.discovery import Discovered
from zotd.exthost.host import Host
from zotd.exthost.mcp import servers
from zotd.exthost.surroundings import Surroundings
from zotd.process import OrphanReaper
from zotd.tasks import contained


async def main(path: Path) -> None:
    async with asyncio.TaskGroup() as tasks:
        reaper = OrphanReaper(path / "home", lambda name, work: void(contained(tasks, name, work)))
        surroundings = Surroundings(str(path), path / "home", {"PATH": os.environ["PATH"]}, reaper=reaper)
        found = Discovered(servers(path / "mcp.json", directory=path)[0])
        host = Host(discover=lambda: found, surroundings=surroundings, listener=Heard())
        await host.start()
        late = await host.wait_ready(30)
        assert not late
        (pid,) = {one.serving.process.pid for one in host.extensions if one.serving}
        sys.stdout.write(f"ready {pid}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def void(_: object) -> None:
    """Ignore the task: its task group owns it."""


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
