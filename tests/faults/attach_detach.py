"""10,000 times somebody attaches and leaves again, in every way there is to leave: what does the daemon keep of them?

Ways: detach; close; close without having read the answer; attach twice; come with a cursor; attach to several sessions.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.row import Options, Row
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.model_server import ModelServer
from zotd.testing.script import text
from zotd.testing.wire_client import WireClient

TIMES = 10_000

AT_ONCE = 8
"""Clients that come and go side by side."""

SESSIONS = 4

WARM_UP = 500
"""Before the first reading: caches, buffers and fragments, which stay."""

MEMORY_MIB = 5.0

SETTLE_S = 10.0
"""Longest wait for the daemon to see that everybody has left."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the daemon holds when nobody is there but who asks."""

    descriptors: int
    tasks: int
    rss_bytes: int

    def since(self, before: "Held") -> str:
        """For the table."""
        grown = (self.rss_bytes - before.rss_bytes) / 2**20
        return f"{self.descriptors - before.descriptors:+d} descriptors, {self.tasks - before.tasks:+d} tasks, {grown:+.1f} MiB"


async def run(options: Options) -> Row:
    """Two readings with all of it between them."""
    start = time.monotonic()
    before, after = await measure(options)
    return Row(
        check=f"{TIMES:,} attach/detach",
        must_give=f"0 file descriptors, 0 tasks, <= {MEMORY_MIB:g} MiB more",
        got=after.since(before),
        ok=is_clean(before, after) and after.rss_bytes - before.rss_bytes <= MEMORY_MIB * 2**20,
        command=f"python -m tests.faults attach_detach --seed {options.seed}",
        seconds=time.monotonic() - start,
        seed=options.seed,
    )


def is_clean(before: Held, after: Held) -> bool:
    """Nothing is left open and nothing goes on."""
    return after.descriptors <= before.descriptors and after.tasks <= before.tasks


async def measure(options: Options) -> tuple[Held, Held]:
    """What the daemon holds before and after."""
    with TemporaryDirectory(prefix="zot-") as folder, DaemonProcess(Path(folder)) as daemon:
        path = daemon.place.socket
        async with ModelServer(lambda _: text("Once upon a time. " * 20)) as model, WireClient.connect(path) as control:
            sessions = [await _session(control, daemon.place.cwd, model.openai_url) for _ in range(SESSIONS)]
            chance = random.Random(options.seed)
            await _come_and_go(path, sessions, WARM_UP, chance)
            before = await _held(control)
            await _come_and_go(path, sessions, options.of(TIMES), chance)
            return before, await _held(control)


async def _session(control: WireClient, cwd: Path, url: str) -> dict[str, object]:
    """A cursor in a new session with a few messages; `session` is its id."""
    made = await control.ask(
        "session.create", cwd=str(cwd), provider="openai", base_url=url, secrets={"api_key": "sk-none"}
    )
    info = made["session"]
    assert isinstance(info, dict)
    await control.ask("attach", session=info["id"])
    for _ in range(5):
        await control.ask("prompt", session=info["id"], message="go on")
        await control.until("done")
    await control.ask("detach", session=info["id"])
    return {"session": info["id"], "epoch": made["epoch"]}


async def _come_and_go(path: str, sessions: Sequence[dict[str, object]], times: int, chance: random.Random) -> None:
    async with asyncio.TaskGroup() as tasks:
        for number in range(AT_ONCE):
            share = len(range(number, times, AT_ONCE))
            tasks.create_task(_visitor(path, sessions, share, random.Random(chance.random())))


async def _visitor(path: str, sessions: Sequence[dict[str, object]], times: int, chance: random.Random) -> None:
    left = times
    while left > 0:
        async with WireClient.connect(path) as client:
            for _ in range(min(left, chance.randint(1, 4))):
                left -= 1
                await _visit(client, chance.choice(sessions), chance)


async def _visit(client: WireClient, session: dict[str, object], chance: random.Random) -> None:
    """Attach in one of the ways; perhaps the end of the connection has to detach it."""
    key = session["session"]
    after = {"epoch": session["epoch"], "seq": chance.randrange(20)} if chance.random() < 0.5 else None
    fields = {"session": key} if after is None else {"session": key, "after": after}
    match chance.randrange(4):
        case 0:
            await client.ask("attach", **fields)
            await client.ask("detach", session=key)
        case 1:
            client.send("attach", **fields)
            client.send("detach", session=key)
        case 2:
            client.send("attach", **fields)
            await client.ask("attach", **fields)
        case _:
            client.send("attach", **fields)


async def _held(control: WireClient) -> Held:
    """Ask until everybody else has left: the daemon hears of it a moment after they have."""
    async with asyncio.timeout(SETTLE_S):
        while (await control.ask("daemon.metrics"))["clients"] != 1:
            pass
    metrics = await control.ask("daemon.metrics")  # a new one: that one looked at its files before it counted clients
    return Held(*(_number(metrics, name) for name in ("descriptors", "tasks", "rss_bytes")))


def _number(frame: dict[str, object], name: str) -> int:
    value = frame[name]
    assert isinstance(value, int)
    return value
