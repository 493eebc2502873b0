"""Extensions to measure with: programs in a place's home, and a host for them in this process."""

import asyncio
import json
import os
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.rig import Place
from zotd.core.life import ExtensionState
from zotd.core.ports import ToolContext
from zotd.exthost.discovery import Discovered, discover
from zotd.exthost.host import Host, Wish
from zotd.exthost.requests import ToolRequest
from zotd.exthost.surroundings import Surroundings
from zotd.exthost.tools import ExtensionTool
from zotd.process import OrphanReaper, orphans_adopted
from zotd.tasks import contained
from zotd.template.forks import Forks
from zotd.testing.misbehaviours import PROGRAM
from zotd.wire import ext
from zotd.wire.content import Text

READY_S = 30.0
"""How long extensions may take until they are ready; a host that waits gives up long before."""


def write(place: Place, name: str, body: str) -> Path:
    """Install an extension that is written with the SDK; `ext` is there. Its directory."""
    directory = _install(place, name, [sys.executable, "main.py"])
    source = f"from zotd.sdk import *\next = Extension({name!r})\n{textwrap.dedent(body)}\next.run()\n"
    (directory / "main.py").write_text(source)
    return directory


def misbehaving(place: Place, name: str, how: str) -> Path:
    """Install one that does what `zotd.testing.hostile` can do. Its directory."""
    return _install(place, name, [sys.executable, "-I", "-S", PROGRAM, how, name])


def _install(place: Place, name: str, argv: Sequence[str]) -> Path:
    directory = place.home / "extensions" / name
    directory.mkdir(parents=True)
    (directory / "extension.json").write_text(json.dumps({"name": name, "exec": argv[0], "args": argv[1:]}))
    return directory


class Deaf:
    """A host's listener that hears one thing only: that tools came or went."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        """Set when they did; cleared by who waits."""

    def wish(self, extension: str, session: str | None, wish: Wish) -> None:
        """No client shows it."""

    def activate(self, session: str, tools: Sequence[str]) -> None:
        """No client uses them."""

    def state_changed(self, extension: str, state: ExtensionState, reason: str) -> None:
        """Who measures asks."""

    def contributions_changed(self) -> None:
        """Tools came or went."""
        self.changed.set()

    def complained(self, extension: str, sentence: str) -> None:
        """It is in the extension's log."""

    def call_tool(self, request: ToolRequest) -> None:
        """No tool is there to be run."""

    def other(self, extension: str, frame: ext.FromExtension) -> None:
        """Of no interest here."""


@asynccontextmanager
async def hosting(
    place: Place,
    *,
    find: Callable[[], Discovered] | None = None,
    listener: Deaf | None = None,
    reaper: OrphanReaper | None = None,
    forks: Forks | None = None,
) -> AsyncIterator[Host]:
    """A host of what is installed in the place, ready, and stopped at the end. `find`: of something else."""
    host = Host(
        discover=find or (lambda: discover(explicit=(), cwd=None, home=place.home, is_trusted=lambda _: False)),
        surroundings=Surroundings(str(place.cwd), place.home, place.env, reaper=reaper, forks=forks),
        listener=listener or Deaf(),
    )
    await host.start()
    try:
        late = await host.wait_ready(READY_S)
        bad = [f"{one.condition}" for one in host.extensions if one.state is not ExtensionState.READY]
        if late or bad:
            raise RuntimeError("; ".join(bad))
        yield host
    finally:
        await host.stop()


ForkingParts = tuple[Forks, OrphanReaper]
"""The template processes of a daemon, and its reaper."""


@asynccontextmanager
async def forking(place: Place) -> AsyncIterator[ForkingParts]:
    """The template processes of a daemon in this process, which serve, and its reaper."""
    async with AsyncExitStack() as stack:
        stack.enter_context(orphans_adopted())
        tasks = await stack.enter_async_context(asyncio.TaskGroup())

        def spawn(name: str, work: Coroutine[object, object, None]) -> None:
            _ = contained(tasks, name, work)

        reaper = OrphanReaper(place.home, spawn)
        forks = Forks(place.env, spawn, reaper.ledger)
        stack.push_async_callback(reaper.close)
        stack.push_async_callback(forks.stop)
        async with asyncio.timeout(READY_S):
            for template in (forks.extensions, forks.bridges):
                template.begin()
                await template.serves.wait()
        yield forks, reaper


def memory_mib(pids: Iterable[int]) -> float:
    """What these processes take: a page that n processes share counts as one n-th for each (PSS)."""
    return sum(_memory_kib(pid) for pid in pids) / 1024


def _memory_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def tool(host: Host, name: str) -> ExtensionTool:
    """One of its tools."""
    return next(one for one in host.offers.tools() if one.spec.name == name)


async def call(callee: ExtensionTool, **args: object) -> str:
    """Call a tool; the text of its result."""
    outcome = await callee.run(args, CONTEXT)
    block = outcome.content[0]
    if outcome.is_error or not isinstance(block, Text):
        raise RuntimeError(f"{callee.spec.name} failed: {outcome.content}")
    return block.text


CONTEXT = ToolContext("s_1", "c_1", "/", {"PATH": os.environ["PATH"]}, "/nowhere", lambda _: None)
