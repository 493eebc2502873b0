"""A session of another daemon beside one of the daemon that a client is connected to: attach, and a command.

Two daemons, each in a process of its own, share a database of a real server on this machine. They reach each other over
loopback, without TLS.
"""

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg

from benchmarks import rig
from benchmarks.rig import Row
from zotd import fleet_key
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.postgres_server import PostgresServer
from zotd.testing.wire_client import WireClient

CLIENTS = 200
"""New connections at each of the two daemons."""

COMMANDS = 500

MORE_MS = 2.0
"""How much longer an attach through another daemon may take."""

KNOWN = "SELECT count(*) = 2 FROM daemons WHERE address <> ''"
"""Each of the daemons knows where the other one is."""


async def measure() -> list[Row]:
    """Rows for an attach over a new connection, and for a command over one that exists."""
    with ExitStack() as stack:
        server = stack.enter_context(closing(PostgresServer(fsync=True)))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zot-")))
        paths = _daemons(stack, folder, server.database())
        async with WireClient.connect(paths[0]) as maker:
            made = await maker.ask("session.create", cwd=str(folder), provider="ollama", model="m")
            info = made["session"]
            assert isinstance(info, dict)
            session = str(info["id"])
            await maker.ask("attach", session=session)  # so that it stays in memory
            return [await _attach(paths, session), await _command(paths, session)]


async def _attach(paths: Sequence[str], session: str) -> Row:
    samples: dict[str, list[float]] = {path: [] for path in paths}
    for _ in range(CLIENTS):
        for path in paths:
            async with WireClient.connect(path) as client:
                samples[path].append(await _ms(client, "attach", session))
    direct_ms, foreign_ms = map(rig.median, samples.values())
    return Row(
        "first attach of a client through another daemon",
        foreign_ms,
        "ms",
        direct_ms,
        "at its own",
        f"<= {MORE_MS:g} ms more",
        foreign_ms <= direct_ms + MORE_MS,
    )


async def _command(paths: Sequence[str], session: str) -> Row:
    samples: list[list[float]] = []
    for path in paths:
        async with WireClient.connect(path) as client:
            await client.ask("attach", session=session)
            samples.append([await _ms(client, "get_state", session) for _ in range(COMMANDS)])
    direct_ms, foreign_ms = map(rig.median, samples)
    return Row("command through another daemon", foreign_ms, "ms", direct_ms, "at its own", "", None)


def _daemons(stack: ExitStack, folder: Path, database: str) -> Sequence[str]:
    """Start two daemons; return their sockets when each can forward clients to the other."""
    key = folder / "key"
    key.touch(mode=0o600)
    key.write_text(fleet_key.made())
    given = {
        "ZOT_JOURNAL_URL": database,
        "ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0",
        "ZOT_FLEET_KEY_FILE": str(key),
    }
    sockets = []
    for name in ("one", "two"):
        (folder / name).mkdir()
        sockets.append(stack.enter_context(DaemonProcess(folder / name, given)).place.socket)
    with psycopg.connect(database, autocommit=True) as watch:
        while watch.execute(KNOWN).fetchone() != (True,):
            pass
    return sockets


async def _ms(client: WireClient, command: str, session: str) -> float:
    start = time.perf_counter()
    await client.ask(command, session=session)
    return (time.perf_counter() - start) * 1000
