"""Ten daemons with a thousand sessions each: attach, memory, what the leases cost, and ten thousand attaches after a failover.

The daemons and a real server are processes on this machine. They reach each other over loopback, without TLS.
"""

import asyncio
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack, closing
from pathlib import Path

import psutil
import psycopg

from benchmarks import fleet, rig
from benchmarks.rig import Row
from benchmarks.sizing import committed, server_cpu_s, settled_size
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.model_server import ModelServer
from zotd.testing.postgres_server import PostgresServer
from zotd.testing.script import text
from zotd.testing.wire_client import WireClient

DAEMONS = 10

SESSIONS = 1000
"""Of each daemon; each has run one prompt."""

MAKERS = 8
"""Clients of each daemon that make them."""

SAMPLES = 2000
"""Attaches, at the daemon that has the session and as many through another one."""

IDLE_S = 15.0
"""Time in which the leases are watched."""

STORM = 16
"""Clients of each daemon that attach to all sessions after a failover. Each needs a connection to all other daemons, which take
256 clients each."""

FAILOVER_S = 14.0
"""Longest time that a failover may take."""


class Daemons:
    """The daemons that live, with their sessions."""

    def __init__(self, daemons: Sequence[DaemonProcess], database: str) -> None:
        self.daemons = daemons
        self.database = database
        self.sessions: dict[str, int] = {}
        """The daemon of each session, by its number."""

    def memory_mib(self) -> float:
        """Return the memory of one daemon that no other process shares, on average."""
        used = [psutil.Process(one.pid).memory_full_info().uss for one in self.daemons]
        return sum(used) / len(used) / 1024**2

    def path(self, number: int) -> str:
        """Return the socket of a daemon."""
        return self.daemons[number].place.socket


async def measure() -> list[Row]:
    """Rows for sessions at rest, and for the failover."""
    with ExitStack() as stack:
        server = stack.enter_context(closing(PostgresServer(fsync=True)))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zot-")))
        database = server.database()
        names = [f"d{number}" for number in range(DAEMONS)]
        daemons = Daemons(fleet.start(stack, folder, database, {}, names=names), database)
        idle_mib = daemons.memory_mib()
        await _make_all(daemons, folder)
        return [
            Row(
                f"memory of a daemon with {SESSIONS:,} sessions, which have run a prompt",
                daemons.memory_mib(),
                "MiB",
                idle_mib,
                "without sessions",
                "",
                None,
            ),
            *await _leases(server, database),
            await _attaches(daemons),
            await _failover(daemons),
        ]


async def _make_all(daemons: Daemons, folder: Path) -> None:
    async with ModelServer(lambda _: text("fine")) as model, asyncio.TaskGroup() as tasks:
        for number in sorted(MAKERS * list(range(DAEMONS))):
            tasks.create_task(_make(daemons, number, folder, model.url))


async def _make(daemons: Daemons, number: int, folder: Path, url: str) -> None:
    async with WireClient.connect(daemons.path(number)) as client:
        for _ in range(SESSIONS // MAKERS):
            made = await client.ask("session.create", cwd=str(folder), provider="ollama", model="m", base_url=url)
            info = made["session"]
            assert isinstance(info, dict)
            session = str(info["id"])
            daemons.sessions[session] = number
            await client.ask("attach", session=session)
            await client.ask("prompt", session=session, message="hello")
            await client.until("done")
            await client.ask("detach", session=session)


async def _leases(server: PostgresServer, database: str) -> list[Row]:
    with psycopg.connect(database, autocommit=True) as watch:
        await settled_size(watch)
        before = committed(watch), server_cpu_s(server)
        await asyncio.sleep(IDLE_S)
        after = committed(watch), server_cpu_s(server)
    transactions, cpu_s = ((late - early) / IDLE_S for early, late in zip(before, after, strict=True))
    what = f"of {DAEMONS} daemons with {DAEMONS * SESSIONS:,} sessions at rest"
    return [
        Row(f"transactions {what}", transactions, "/s", None, "", "", None),
        Row(f"processor of the server {what}", cpu_s * 1000, "ms/s", None, "", "", None),
    ]


async def _attaches(daemons: Daemons) -> Row:
    chosen = list(daemons.sessions)[:: len(daemons.sessions) // SAMPLES]
    samples: tuple[list[float], list[float]] = ([], [])
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(WireClient.connect(daemons.path(number))) for number in range(DAEMONS)
        ]
        for session in chosen:
            own = daemons.sessions[session]
            for number, taken in zip((own, (own + 1) % DAEMONS), samples, strict=True):
                taken.append(await fleet.ask_ms(clients[number], "attach", session))
                await clients[number].ask("detach", session=session)
    direct_ms, foreign_ms = (rig.percentile(taken, 99) for taken in samples)
    halves = [rig.median(taken) for taken in samples]
    return Row(
        f"attach to one of {len(daemons.sessions):,} sessions through another daemon, 99 %",
        foreign_ms,
        "ms",
        direct_ms,
        "at its own, 99 %",
        f"<= {fleet.MORE_MS:g} ms more",
        foreign_ms <= direct_ms + fleet.MORE_MS,
        note=f"half within {halves[1]:.2f} ms, at their own within {halves[0]:.2f} ms",
    )


async def _failover(daemons: Daemons) -> Row:
    """Kill a daemon, and attach to all sessions through the others at once."""
    lost, *_ = daemons.daemons
    left = iter(list(daemons.sessions))  # those of all daemons in turns
    refusals: Counter[str] = Counter()

    async def attach(number: int) -> None:
        async with WireClient.connect(daemons.path(number)) as client:
            for session in left:
                answer = await client.answer("attach", session=session)
                if answer["success"]:
                    await client.ask("detach", session=session)
                else:
                    refusals[str(answer["error"])] += 1

    begun = time.perf_counter()
    lost.end(signal.SIGKILL)
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, DAEMONS):
            for _ in range(STORM):
                tasks.create_task(attach(number))
    took_s = time.perf_counter() - begun
    count = len(daemons.sessions)
    return Row(
        f"from the kill of a daemon until {count:,} attaches through the others are answered",
        took_s,
        "s",
        None,
        "",
        f"<= {FAILOVER_S:g} s, none refused",
        took_s <= FAILOVER_S and not refusals,
        note=f"{refusals.total()} refused{''.join(f'; {sentence}' for sentence, _ in refusals.most_common(1))}",
    )


if __name__ == "__main__":
    rig.run(measure)
