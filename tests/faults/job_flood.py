"""A job that prints without measure, while another session works: its file, the daemon's memory, and the other's prompts."""

import asyncio
import json
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple, cast

import psutil

from benchmarks import rig
from tests.faults.row import Options, Row
from zotd.testing.model_server import ModelServer, Received
from zotd.testing.script import CallPart, ScriptedReply, calls, text
from zotd.testing.wire_client import Json, WireClient

GIB = 2**30

BYTES = 10 * GIB
"""What the job prints."""

KEPT_MIB = 16
"""The default of `jobs.output_mb`."""

DISK_MIB = 2 * KEPT_MIB + 4
"""Most on disk: the file, the newer half of it while that replaces it, and what is read from the pipe at once."""

MORE_MIB = 40.0
"""Most memory that the daemon may take more than before: the newer half of the file, and what waits for the disk."""

PROMPT_S = 2.0
"""Longest prompt of the other session, from sending it to its end."""

PROMPT_EVERY_S = 0.5
"""Pause between its prompts: each reads all earlier ones, and thousands would be what is measured."""

OVER_S = 1_800.0
"""How long the job may take; one that is never over is a failure, not a wait."""


class Outcome(NamedTuple):
    """Of one flood."""

    printed: int
    """Bytes that the job's end tells of."""
    seconds: float
    disk_mib: float
    more_mib: float
    prompts_s: list[float]
    is_told: bool
    """The model reads of the job's end with the next prompt."""

    @property
    def is_bounded(self) -> bool:
        """Whether the disk and the memory were, and nothing was lost."""
        return self.disk_mib <= DISK_MIB and self.more_mib <= MORE_MIB and self.is_told


class Flood:
    """A session whose job prints, and another one that is asked meanwhile."""

    def __init__(self, client: WireClient, daemon: psutil.Process, home: Path) -> None:
        self._client = client
        self._daemon = daemon
        self._home = home
        self._before = 0.0
        self.disk_mib = 0.0
        self.more_mib = 0.0
        self.prompts_s: list[float] = []

    async def session(self, server: ModelServer, cwd: Path) -> str:
        """A new session, which the client follows."""
        options = {"cwd": str(cwd), "provider": "openai", "model": "m", "base_url": server.openai_url, "mode": "yolo"}
        made = await self._client.ask("session.create", **options, secrets={"api_key": "sk-none"})
        found = str(cast("Json", made["session"])["id"])
        await self._client.ask("attach", session=found)
        return found

    async def prompt(self, session: str) -> None:
        """A prompt, to the end of its run."""
        await self._client.ask("prompt", session=session, message="go")
        while (await self._client.event())["type"] != "done":
            pass

    def begin(self) -> None:
        """Take the memory of now as that before the flood."""
        self._before = rig.rss_mib(self._daemon)

    async def prompts_until_over(self, other: str, flooded: str) -> Json:
        """Ask the other session again and again; the job, when it has ended."""
        deadline = time.monotonic() + OVER_S
        while time.monotonic() < deadline:
            start = time.monotonic()
            await self.prompt(other)
            self.prompts_s.append(time.monotonic() - start)
            self.more_mib = max(self.more_mib, rig.rss_mib(self._daemon) - self._before)
            self.disk_mib = max(self.disk_mib, await asyncio.to_thread(_size_mib, self._home / "out" / flooded))
            jobs = cast("list[Json]", (await self._client.ask("session.jobs", session=flooded))["jobs"])
            if jobs[0]["state"] != "running":
                return jobs[0]
            await asyncio.sleep(PROMPT_EVERY_S)
        raise AssertionError(f"the job is not over after {OVER_S:g} s")


async def run(options: Options) -> Row:
    """Flood, and measure."""
    found = await measure(int(BYTES * options.share))
    slowest = max(found.prompts_s)
    return Row(
        check=f"a job prints {found.printed / GIB:.2g} GiB while another session is asked {len(found.prompts_s):,} times",
        must_give=f"at most {DISK_MIB} MiB on disk and {MORE_MIB:g} MiB more memory; each prompt is answered within "
        f"{PROMPT_S:g} s; the end of the job is told",
        got=f"{found.disk_mib:.0f} MiB, {found.more_mib:+.0f} MiB; p50 {rig.percentile(found.prompts_s, 50) * 1000:.0f} ms, "
        f"max {slowest * 1000:.0f} ms; {'told' if found.is_told else 'not told'} after {found.seconds:.0f} s",
        ok=found.is_bounded and slowest <= PROMPT_S,
        command="python -m tests.faults job_flood",
        seconds=found.seconds,
    )


async def measure(printed: int) -> Outcome:
    """One flood of so many bytes, to its end."""
    job = calls(CallPart("bash", {"command": f"head -c {printed} /dev/zero", "background": True}))
    async with AsyncExitStack() as stack:
        where = stack.enter_context(rig.place(checkpoints=False))
        floods = await stack.enter_async_context(ModelServer([job, text("begun"), text("heard")]))
        talks = await stack.enter_async_context(ModelServer(_here))
        daemon = await stack.enter_async_context(rig.daemon(where))
        client = await stack.enter_async_context(WireClient.connect(rig.socket_of(where)))
        flood = Flood(client, daemon, where.home)
        other, flooded = await flood.session(talks, where.cwd), await flood.session(floods, where.cwd)
        await flood.prompt(other)
        flood.begin()
        start = time.monotonic()
        await flood.prompt(flooded)
        over = await flood.prompts_until_over(other, flooded)
        seconds = time.monotonic() - start
        await flood.prompt(flooded)
        is_told = "[Job j1 " in json.dumps(floods.requests[-1].messages)
    assert over["state"] == "ended", over
    count = int(cast("int", over["output_bytes"]))
    return Outcome(count, seconds, flood.disk_mib, flood.more_mib, flood.prompts_s, is_told)


def _here(_received: Received) -> ScriptedReply:
    return text("here")


def _size_mib(folder: Path) -> float:
    sizes = 0
    for path in folder.rglob("*"):
        try:
            sizes += path.stat().st_size
        except FileNotFoundError:  # replaced by its newer half meanwhile
            continue
    return sizes / 2**20
