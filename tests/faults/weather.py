"""Runs through a TCP proxy with bad weather: it resets, stalls, cuts replies and answers 529, and then it clears up."""

import asyncio
import random
import socket
import struct
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from tests.faults.row import Options, Row
from tests.faults.workload import WITNESS, Plan, answer
from zotd.core.ports import Replay
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.model_server import ModelServer
from zotd.testing.wire_client import WireClient

RUNS = 100
SESSIONS = 10
STEPS = (("bash",), ("bash",))
"""Of each run: one call of a tool that must never run twice in each."""

WEATHER_S = 120.0
PAUSE_S = 2.0
STALL_S = 4.0
"""The longest stall; a connection that was stalled ends without an answer."""

PATIENCE_S = 600.0
SETTLE_S = 300.0
"""Longest wait for the end of all runs after the weather."""

RESET = struct.pack("ii", 1, 0)
"""`SO_LINGER` of no time: closing sends RST."""

KINDS = ("clear", "reset", "stall", "cut", "529")

OVERLOADED = b"HTTP/1.1 529 Overloaded\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Proxy:
    """Between the daemon and its model; each connection carries one request, so that each request meets weather."""

    def __init__(self, model_url: str, chance: random.Random, seconds: float) -> None:
        parts = urlsplit(model_url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._model = (parts.hostname, parts.port)
        self._chance = chance
        self._seconds = seconds
        self._until: float | None = None
        """When it clears up; None until the first request, so that a slow start does not use up the weather."""
        self.met: Counter[str] = Counter()
        """How many requests met each kind of weather."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one request, or do not."""
        if self._until is None:
            self._until = time.monotonic() + self._seconds
        kind = self._chance.choice(KINDS) if time.monotonic() < self._until else "clear"
        self.met[kind] += 1
        try:
            await self._carry(kind, reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # either side may leave
        finally:
            writer.close()

    async def _carry(self, kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if kind == "reset":
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            return
        request = await _request(reader)
        if kind == "stall":
            await asyncio.sleep(self._chance.uniform(0, STALL_S))  # the weather itself: nothing is waited for
        elif kind == "529":
            writer.write(OVERLOADED)
        else:
            reply = await self._reply(request)
            writer.write(reply[: self._chance.randrange(1, len(reply))] if kind == "cut" else reply)
        await writer.drain()

    async def _reply(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*self._model)
        try:
            writer.write(request)
            return await reader.read(-1)
        finally:
            writer.close()


async def _request(reader: asyncio.StreamReader) -> bytes:
    """One request, which asks to close the connection after the reply."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.rstrip().split(b"\r\n")
    fields = [line for line in lines if not line.lower().startswith(b"connection:")]
    length = next(int(line.partition(b":")[2]) for line in fields if line.lower().startswith(b"content-length:"))
    return b"\r\n".join([*fields, b"connection: close", b"", await reader.readexactly(length)])


async def run(options: Options) -> Row:
    """Prompt through the weather, and count what the calls have done."""
    start = time.monotonic()
    stops: Counter[str] = Counter()
    retries: Counter[str] = Counter()
    runs, seconds = options.of(RUNS), WEATHER_S * options.share
    extra = {"ZOT_LIMITS_RETRY_PATIENCE_S": str(PATIENCE_S), "ZOT_LIMITS_RETRY_PAUSE_S": str(PAUSE_S)}
    with TemporaryDirectory(prefix="zot-") as folder, DaemonProcess(Path(folder), extra) as daemon:
        async with AsyncExitStack() as stack:
            model = await stack.enter_async_context(ModelServer(answer))
            proxy = Proxy(model.openai_url, random.Random(options.seed), seconds)
            server = await stack.enter_async_context(await asyncio.start_server(proxy.serve, "127.0.0.1", 0))
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            async with asyncio.timeout(seconds + SETTLE_S), asyncio.TaskGroup() as tasks:
                for number in range(min(SESSIONS, runs)):
                    plans = [Plan(f"k{number}x{run}", STEPS) for run in range(number, runs, SESSIONS)]
                    tasks.create_task(_work(daemon, url, plans, stops, retries), name="session")
        effects = Counter((daemon.place.cwd / WITNESS).read_text(encoding="utf-8").splitlines())
    wanted = runs * len(STEPS)
    twice = sum(count > 1 for count in effects.values())
    missing = wanted - len(effects)
    options.say(f"weather: runs ended {dict(stops)}, retries {dict(retries)}")
    met = ", ".join(f"{proxy.met[kind]} {kind}" for kind in KINDS)
    return Row(
        check=f"{runs} runs through a proxy that resets, stalls, cuts and says 529 for {seconds:.0f} s",
        must_give=f"all end with `end_turn`, each of {wanted} calls with `{Replay.NEVER}` runs once",
        got=f"{stops['end_turn']} of {runs}; {twice} ran twice, {missing} did not run; "
        f"{retries.total()} retries; requests: {met}",
        ok=stops["end_turn"] == runs and not twice and not missing and retries.total() > 0,
        command=f"python -m tests.faults weather --seed {options.seed}",
        seconds=time.monotonic() - start,
        seed=options.seed,
    )


async def _work(daemon: DaemonProcess, url: str, plans: list[Plan], stops: Counter[str], retries: Counter[str]) -> None:
    """One session, a run after the other."""
    async with WireClient.connect(daemon.place.socket) as client:
        asks = {"cwd": str(daemon.place.cwd), "provider": "openai", "model": "m", "base_url": url}
        made = (await client.ask("session.create", **asks, secrets={"api_key": "sk-none"}))["session"]
        assert isinstance(made, dict)
        await client.ask("attach", session=made["id"])
        for plan in plans:
            await client.ask("prompt", session=made["id"], message=plan.message)
            events = await client.until("done")
            stops[[str(event["stop"]) for event in events if event["type"] == "turn_end"][-1]] += 1
            retries.update(str(event["brief"]) for event in events if event["type"] == "retry")
