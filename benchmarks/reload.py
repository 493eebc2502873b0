"""A hundred reloads of one extension while eight sessions call it, and another one, without pause: what is lost?

The daemon runs in this process, so that its tasks and descriptors can be counted.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks import extensions_rig, floors, rig
from benchmarks.rig import Place, Row
from zotd.client.client import Client
from zotd.testing import warm
from zotd.testing.live_daemon import serving
from zotd.wire import api, extensions
from zotd.wire.content import Text
from zotd.wire.events import AnyEvent, ToolCallEvent, ToolResultEvent

RELOADS = 100

SESSIONS = 8
"""At any time; each ends after a run, and another one takes its place."""

CALLS = 96
"""Of a run, eight in a step."""

LEAVE_S = 10.0
"""How long processes that were replaced may take to leave; they had their calls to answer, of 5 ms."""

SOURCE = '''
import asyncio, os

@ext.tool
async def NAME() -> str:
    """Takes 5 ms, so that calls are open whenever a process is replaced."""
    await asyncio.sleep(0.005)
    return str(os.getpid())
'''


async def measure() -> list[Row]:
    """Rows of what there was, and of what was lost."""
    async with _daemon() as (place, client), rig.model(place) as url:
        model_pids = _children()
        load = _Load(place, client, url)
        await load.run(reloads=1)  # imports, caches, connections
        before = await _census(client, model_pids)
        load.seen = Seen()
        bare = [floors.bare_python() * 1000]
        await load.run(reloads=RELOADS)
        bare.append(floors.bare_python() * 1000)
        after = await _census(client, model_pids)
    return [*_load_rows(load.seen, bare), *_loss_rows(load.seen, before, after)]


@asynccontextmanager
async def _daemon() -> AsyncIterator[tuple[Place, Client]]:
    with rig.place() as outer:
        async with serving(outer.home.parent) as served:
            place = Place(served.home, served.cwd, served.env)
            for name in ("steady", "reloaded"):
                extensions_rig.write(place, name, SOURCE.replace("NAME", name))
            async with rig.connect(place) as client:
                yield place, client


# --- the load -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Seen:
    """What clients have seen of the calls."""

    calls: int = 0
    results: int = 0
    failed: list[str] = field(default_factory=list)
    answered_by: Counter[str] = field(default_factory=Counter)
    """Results by process."""
    reloads_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def take(self, batch: list[AnyEvent]) -> bool:
        """Count the frames received; return whether one was a result."""
        results = [event for event in batch if isinstance(event, ToolResultEvent)]
        self.calls += sum(isinstance(event, ToolCallEvent) for event in batch)
        for event in results:
            self._result(event)
        return bool(results)

    def _result(self, event: ToolResultEvent) -> None:
        text = "".join(block.text for block in event.content if isinstance(block, Text))
        self.results += 1
        if event.is_error:
            self.failed.append(text)
        else:
            self.answered_by[text] += 1


class _Load:
    """Sessions that call without pause, for as long as reloads take."""

    def __init__(self, place: Place, client: Client, model_url: str) -> None:
        self.seen = Seen()
        self._place = place
        self._client = client
        self._url = model_url
        self._is_over = False
        self._answered = asyncio.Event()

    async def run(self, *, reloads: int) -> None:
        """So many reloads, one after the other."""
        self._is_over = False
        start = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number in range(SESSIONS):
                tasks.create_task(self._call(), name=f"caller {number}")
            for _ in range(reloads):
                self._answered.clear()
                await self._answered.wait()  # calls go on
                await self._reload()
            self._is_over = True
        self.seen.seconds = time.perf_counter() - start

    async def _call(self) -> None:
        while not self._is_over:
            session = await self._client.create(
                str(self._place.cwd),
                provider="anthropic",
                base_url=rig.base_url(self._url, "anthropic", f"call/pair/{CALLS}"),
                api_key="none",
                ephemeral=True,
            )
            async for batch in session.prompt_batches("go"):
                if self.seen.take(batch):
                    self._answered.set()
            await session.close()

    async def _reload(self) -> None:
        start = time.perf_counter()
        params = extensions.Scoped(cwd=str(self._place.cwd), name="reloaded")
        done = await self._client.ask(params, extensions.Reloaded, command="ext.reload")
        if done.errors or done.ready != ["reloaded"]:
            raise RuntimeError(f"the reload failed: {done}")
        self.seen.reloads_ms.append((time.perf_counter() - start) * 1000)


# --- what is left -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Census:
    """What this process has."""

    processes: int
    descriptors: int
    tasks: int


async def _census(client: Client, others: set[int]) -> _Census:
    """Count when the processes that were replaced have left, or should have; `others` have nothing to do with it."""
    listed = await client.ask(extensions.Scope(), extensions.ExtensionList, command="ext.list")
    staying = others | {one.pid for one in listed.extensions if one.pid is not None}
    with suppress(TimeoutError):  # those that have not left are counted
        async with asyncio.timeout(LEAVE_S):
            for pid in _children() - staying:
                await _ended(pid)
    await client.ask(api.Nothing(), api.Pong, command="ping")  # the daemon, in this loop, has heard of their ends too
    looking = [task for task in asyncio.all_tasks() if task.get_name().startswith("strays of")]
    if looking:  # for what they may have left behind
        await asyncio.wait(looking, timeout=LEAVE_S)
    return _Census(len(_children()), _descriptors(), len(asyncio.all_tasks()))


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children() if not warm.is_fork_server(child)}


def _descriptors() -> int:
    """Without sockets: connections to the model come and go as its SDK likes."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of this very listing
            found += not str(descriptor.readlink()).startswith("socket:")
    return found


async def _ended(pid: int) -> None:
    """Wait for the end of a child that the daemon waits for, too."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(fd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


# --- rows ---------------------------------------------------------------------------------------------------------


def _load_rows(seen: Seen, bare_ms: list[float]) -> list[Row]:
    took, bare = rig.median(seen.reloads_ms), rig.median(bare_ms)
    note = f"{seen.calls / seen.seconds:,.0f}/s, answered by {len(seen.answered_by)} processes"
    name = f"reload of a Python extension that {SESSIONS} sessions call"
    return [
        Row(name, took, "ms", bare, "bare Python", "", None),
        Row(f"{RELOADS} reloads under load: calls", seen.calls, "calls", None, "", "", None, note=note),
    ]


def _loss_rows(seen: Seen, before: _Census, after: _Census) -> list[Row]:
    losses = [
        ("lost", seen.calls - seen.results + len(seen.failed), "calls"),
        ("left over", after.processes - before.processes, "processes"),
        ("left over", after.descriptors - before.descriptors, "descriptors"),
        ("left over", after.tasks - before.tasks, "tasks"),
    ]
    first = seen.failed[0] if seen.failed else ""
    return [
        Row(
            f"{RELOADS} reloads under load: {what}",
            number,
            unit,
            None,
            "",
            "0",
            number <= 0,
            note=first if what == "lost" else "",
        )
        for what, number, unit in losses
    ]


if __name__ == "__main__":
    rig.run(measure)
