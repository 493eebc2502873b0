"""`zot rpc` as a program, asked over its pipes."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Self

import psutil

from benchmarks import rig


class Rpc:
    """A running `zot rpc`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = psutil.Process(process.pid)
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout

    @classmethod
    @asynccontextmanager
    async def start(
        cls, env: Mapping[str, str], flags: Sequence[str], *, zot: str | None = None
    ) -> AsyncIterator[Self]:
        """Start it; it is killed if it still runs at the end of the block. `zot`: the command of another installation."""
        process = await asyncio.create_subprocess_exec(
            zot or rig.installed("zot")[0],
            "rpc",
            *flags,
            env=dict(env),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=sys.stderr,
        )
        try:
            yield cls(process)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def send(self, **command: object) -> None:
        """Send a command."""
        self._stdin.write(json.dumps(command).encode() + b"\n")
        await self._stdin.drain()

    async def until(self, kind: str, *, timing: str = "") -> list[float]:
        """Read to the next frame of this type; return when each frame of the type `timing` came, in seconds."""
        times: list[float] = []
        while True:
            found = json.loads(await self._stdout.readline())["type"]
            if found == timing:
                times.append(time.perf_counter())
            if found == kind:
                return times

    async def end(self) -> None:
        """Close its input and wait for its end."""
        self._stdin.close()
        await self._process.wait()
