"""A batch that several daemons of a database work through while one after the other is killed: one result for each prompt.

Each prompt has the model call a command that leaves a line of its own, and takes a moment, so that kills meet commands.
"""

import asyncio
import random
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from functools import partial
from pathlib import Path

from tests.faults.daemon import Daemon, Nursery, order
from tests.faults.fleet_node import furnish
from tests.faults.row import Options, Row, skipped
from zotd.client.client import Client
from zotd.client.errors import ClientError
from zotd.testing.live_daemon import DaemonPaths
from zotd.testing.model_server import ModelServer, Received
from zotd.testing.postgres_server import MISSING, PostgresServer
from zotd.testing.script import Answer, CallPart, calls, text
from zotd.wire import batches as wire

PROMPTS = 1000

DAEMONS = 5

KILL_S = 2.0
"""Time between two kills, while …"""

LEAST = 3
"""… so many daemons live, …"""

AWAY_S = 15.0
"""… and until the daemon comes back: its lease is over, and another one has gone on with what it ran."""

RESULTS_S = 1800.0
"""Longest wait for all results."""

NAME = "faults"

TASK = re.compile(r"task (\d+)")


async def run(options: Options) -> Row:
    """Work through one batch."""
    count = options.of(PROMPTS)
    share = "" if options.share == 1 else f" --share {options.share:g}"
    again = f"python -m tests.faults batches --seed {options.seed}{share}"
    if MISSING is not None:
        return skipped(f"{count:,} prompts of a batch, {DAEMONS} daemons", MISSING, again)
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="zot-batch-"))
    try:
        async with (
            Nursery.open() as nursery,
            ModelServer(answer) as model,
            _fleet(folder, nursery, model.openai_url) as fleet,
        ):
            results, kills = await _worked(fleet, count, options)
        ran = Counter((folder / "ran").read_text().split())
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    got = Counter(one.number for one in results)
    states = Counter(one.state for one in results)
    unlike = [one for one in results if one.state not in {"done", "unknown"} or one.attempts != 1]
    unlike += [one for one in results if one.state == "done" and not ran[str(one.number)]]
    found = (count - len(got), got.total() - len(got), sum(number > 1 for number in ran.values()), len(unlike))
    for one in unlike:
        options.say(f"    {one}")
    return Row(
        check=f"{count:,} prompts of a batch by {DAEMONS} daemons, which are killed: {kills} kills; "
        f"{', '.join(f'{number:,} {state}' for state, number in sorted(states.items()))}",
        must_give="0 prompts without a result, 0 with two, 0 commands run twice, 0 other faults",
        got=", ".join(f"{one:,}" for one in found),
        ok=not any(found),
        command=again,
        seconds=time.monotonic() - started,
        seed=options.seed,
    )


def answer(received: Received) -> Answer:
    """Call the command of the prompt, and then say that it is done."""
    if received.messages[-1]["role"] == "tool":
        return text("done")
    (number,) = TASK.findall(str(received.messages))[-1:]
    return calls(CallPart("bash", {"command": f"echo {number} >> ran; sleep 0.5"}))


class Fleet:
    """Daemons with homes of their own; some may be dead."""

    def __init__(self, nursery: Nursery, homes: Sequence[DaemonPaths], folder: Path) -> None:
        self.folder = folder
        """Where the commands run."""
        self._nursery = nursery
        self._homes = homes
        self._living: dict[int, Daemon] = {}

    async def start(self, number: int) -> None:
        """Start a daemon, and wait until it serves."""
        daemon = await self._nursery.bear(order(self._homes[number]))
        if not await daemon.serves():
            raise RuntimeError(f"a daemon does not start: {self._homes[number].folder / 'stderr'} says why")
        self._living[number] = daemon

    async def kill(self, number: int) -> None:
        """Kill a daemon, and start it again when others have what it ran."""
        daemon = self._living.pop(number)
        daemon.kill()
        await daemon.dead.wait()
        await asyncio.sleep(AWAY_S)
        await self.start(number)

    @property
    def living(self) -> int:
        """How many live."""
        return len(self._living)

    def one(self, chance: random.Random) -> int:
        """Return the number of a daemon that lives."""
        return chance.choice(sorted(self._living))

    def client(self, number: int) -> AbstractAsyncContextManager[Client]:
        """Return a client of this daemon, to be entered."""
        home = self._homes[number]
        return Client.connect(path=home.socket, env=home.env, autostart=False, name="batches")

    def end(self) -> None:
        """Kill all."""
        for daemon in self._living.values():
            daemon.kill()


@asynccontextmanager
async def _fleet(folder: Path, nursery: Nursery, model_url: str) -> AsyncIterator[Fleet]:
    with closing(await asyncio.to_thread(partial(PostgresServer, fsync=True))) as server:
        database = await asyncio.to_thread(server.database)
        homes = [furnish(folder / f"d{number}", "ask", model_url, database) for number in range(DAEMONS)]
        fleet = Fleet(nursery, homes, folder)
        try:
            for number in range(DAEMONS):
                await fleet.start(number)
            yield fleet
        finally:
            fleet.end()


async def _worked(fleet: Fleet, count: int, options: Options) -> tuple[list[wire.BatchResult], int]:
    """Submit the batch, and kill daemons until all results are there; return these, and the number of kills."""
    chance, kills = random.Random(f"{options.seed} batches"), 0
    results: list[wire.BatchResult] = []

    async def blows(tasks: asyncio.TaskGroup) -> None:
        nonlocal kills
        while True:
            await asyncio.sleep(KILL_S)
            if fleet.living < LEAST:
                continue
            tasks.create_task(fleet.kill(fleet.one(chance)), name="kill")
            kills += 1
            options.say(f"{kills} kills")

    async with asyncio.timeout(RESULTS_S), asyncio.TaskGroup() as tasks:
        striking = tasks.create_task(blows(tasks), name="blows")
        results.extend([one async for one in _awaited(fleet, count, chance)])
        striking.cancel()
    return results, kills


async def _awaited(fleet: Fleet, count: int, chance: random.Random) -> AsyncIterator[wire.BatchResult]:
    """Yield the results, from whichever daemon answers; what was not answered is asked again."""
    orders = [
        wire.BatchPromptOrder(
            number=number,
            message=f"task {number}",
            cwd=str(fleet.folder),
            provider="openai",
            model="gpt-4o",
            mode="yolo",
        )
        for number in range(1, count + 1)
    ]
    submission = wire.BatchSubmit(batch=NAME, prompts=orders)
    after, is_over = 0, False
    while not is_over:
        try:
            async with fleet.client(fleet.one(chance)) as client:
                await client.ask(submission, wire.BatchSubmitted)
                while not is_over:
                    page = await client.ask(
                        wire.BatchResultQuery(batch=NAME, after=after, wait_s=5.0), wire.BatchResults
                    )
                    is_over = not page.left and not page.results
                    for result in page.results:
                        if result.place != after + 1:
                            raise RuntimeError(f"the result behind {after} has the place {result.place}")
                        after = result.place
                        yield result
        except (ClientError, OSError):
            await asyncio.sleep(0.1)  # the daemon was killed
