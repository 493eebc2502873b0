"""A session of another daemon beside one of the daemon that a client is connected to: attach, a command, moves, and drains.

Two daemons, each in a process of its own, share a database of a real server on this machine. They reach each other over
loopback.
"""

import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import trustme

from benchmarks import rig
from benchmarks.rig import Row
from zotd import fleet_key
from zotd.testing.live_daemon import DaemonPaths, DaemonProcess
from zotd.testing.model_server import ModelServer
from zotd.testing.postgres_server import PostgresServer
from zotd.testing.script import CallPart, ScriptedReply, calls
from zotd.testing.wire_client import WireClient

CLIENTS = 200
"""New connections at each of the two daemons."""

PAUSE_S = 0.03
"""Between two clients: each finds a connection ready, and does not compete with the end of the one before."""

COMMANDS = 500

MORE_MS = 2.0
"""How much longer an attach through another daemon may take."""

MOVES = 96
"""Of running sessions, in all; with several sessions, so many of them at once."""

DRAINS = 24
"""Of a daemon; the other one is drained next."""

RUNNING = 4
"""Sessions of a daemon that is drained."""

HANDOVER_MS = 300.0
"""Longest time from the end of a step in one daemon until the other one begins the next."""

HANDOVERS = """
SELECT DISTINCT ON (stopped.session, stopped.number)
    1000 * extract(epoch FROM next.time::timestamptz - stopped.time::timestamptz)::float8
FROM records AS stopped JOIN records AS next ON next.session = stopped.session AND next.number > stopped.number
WHERE stopped.kind = 'interrupted' AND next.kind = 'attempt' ORDER BY stopped.session, stopped.number, next.number
"""
"""Of each stop, oldest session first."""

KNOWN = "SELECT count(*) FROM daemons WHERE address <> ''"
"""Daemons that others can reach."""

NAMES = ("one", "two")


async def measure() -> list[Row]:
    """Rows for an attach over a new connection, for a command over one that exists, for moves and for drains."""
    with ExitStack() as stack:
        server = stack.enter_context(closing(PostgresServer(fsync=True)))
        return [*await _plain(server.database()), *await _encrypted(server.database())]


async def _plain(database: str) -> Sequence[Row]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zot-")))
        daemons = start(stack, folder, database, {})
        rows = await _clients(daemons, "without TLS")
        places = [daemon.place for daemon in daemons]
        moves = [await _moves(places, database, 1), await _moves(places, database, 8)]
        return [*rows, *moves, await _drains(daemons, database)]


async def _encrypted(database: str) -> Sequence[Row]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zot-")))
        attached, _ = await _clients(start(stack, folder, database, _tls(folder)), "with TLS")
        return [attached]


async def _clients(daemons: Sequence[DaemonProcess], how: str) -> Sequence[Row]:
    paths, folder = [daemon.place.socket for daemon in daemons], daemons[0].place.folder
    async with WireClient.connect(paths[0]) as maker:
        made = await maker.ask("session.create", cwd=str(folder), provider="ollama", model="m")
        info = made["session"]
        assert isinstance(info, dict)
        session = str(info["id"])
        await maker.ask("attach", session=session)  # so that it stays in memory
        return [await _attach(paths, session, how), await _command(paths, session)]


async def _attach(paths: Sequence[str], session: str, how: str) -> Row:
    samples: dict[str, list[float]] = {path: [] for path in paths}
    for _ in range(CLIENTS):
        for path in paths:
            async with WireClient.connect(path) as client:
                samples[path].append(await ask_ms(client, "attach", session))
            await asyncio.sleep(PAUSE_S)
    direct_ms, foreign_ms = map(rig.median, samples.values())
    return Row(
        f"first attach of a client through another daemon, {how}",
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
            samples.append([await ask_ms(client, "get_state", session) for _ in range(COMMANDS)])
    direct_ms, foreign_ms = map(rig.median, samples)
    return Row("command through another daemon", foreign_ms, "ms", direct_ms, "at its own", "", None)


async def _moves(places: Sequence[DaemonPaths], database: str, count: int) -> Row:
    """Move this many sessions at once between the daemons, again and again, while each runs one step after the other."""
    before = len(_gaps_ms(database))
    async with ModelServer(_step) as server:
        await _move_again_and_again(places, server, count)
    return _handed_over(f"{count} at once", _gaps_ms(database)[before:])


async def _drains(daemons: Sequence[DaemonProcess], database: str) -> Row:
    """Drain one daemon after the other while sessions run, and start it again."""
    before = len(_gaps_ms(database))
    async with ModelServer(_step) as server:
        here, there = daemons
        async with WireClient.connect(here.place.socket) as client:
            for _ in range(RUNNING):
                await _running(client, str(here.place.folder), server.openai_url)
        for _ in range(DRAINS):
            await server.received(len(server.requests) + RUNNING)
            async with WireClient.connect(here.place.socket) as client:
                await client.ask("hello", client={"name": "operator"}, role="admin")
                await client.ask("daemon.drain")
            await asyncio.to_thread(here.wait)
            here.start()
            _wait_for(len(NAMES), database)
            here, there = there, here
    return _handed_over(f"{RUNNING} of a daemon that is drained", _gaps_ms(database)[before:])


def _handed_over(which: str, gaps_ms: Sequence[float]) -> Row:
    worst_ms = rig.percentile(gaps_ms, 99)
    return Row(
        f"from the end of a step to the next one in another daemon, {which}, 99 %",
        worst_ms,
        "ms",
        None,
        "",
        f"<= {HANDOVER_MS:g} ms",
        worst_ms <= HANDOVER_MS,
        note=f"half within {rig.median(gaps_ms):.0f} ms",
    )


async def _move_again_and_again(places: Sequence[DaemonPaths], server: ModelServer, count: int) -> None:
    async with WireClient.connect(places[0].socket) as client:
        sessions = [await _running(client, str(places[0].folder), server.openai_url) for _ in range(count)]
    for number in range(MOVES // count):
        await server.received(len(server.requests) + count)  # the last moves are over
        here, there = places[number % 2], places[(number + 1) % 2]
        async with asyncio.TaskGroup() as tasks:
            for session in sessions:
                tasks.create_task(_move(here.socket, session, str(there.home)))
    async with WireClient.connect(places[0].socket) as client:
        for session in sessions:
            await client.ask("abort", session=session)
            await client.ask("session.close", session=session)


async def _move(socket: str, session: str, there: str) -> None:
    async with WireClient.connect(socket) as client:
        await client.ask("hello", client={"name": "mover"}, role="admin")
        await client.ask("session.move", session=session, to=there)


def _gaps_ms(database: str) -> Sequence[float]:
    with psycopg.connect(database, autocommit=True) as connection:
        return [gap for (gap,) in connection.execute(HANDOVERS).fetchall()]


async def _running(client: WireClient, folder: str, url: str) -> str:
    """Return the id of a session whose run does not end by itself."""
    made = await client.ask("session.create", cwd=folder, provider="ollama", model="m", base_url=url, max_steps=10_000)
    info = made["session"]
    assert isinstance(info, dict)
    await client.ask("prompt", session=info["id"], message="go on")
    return str(info["id"])


def start(
    stack: ExitStack, folder: Path, database: str, settings: Mapping[str, str], *, names: Sequence[str] = NAMES
) -> Sequence[DaemonProcess]:
    """Start daemons in directories with these names; return them when each can forward clients to the others."""
    key = folder / "key"
    key.touch(mode=0o600)
    key.write_text(fleet_key.made())
    given = {
        "ZOT_JOURNAL_URL": database,
        "ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0",
        "ZOT_FLEET_KEY_FILE": str(key),
        "ZOT_LIMITS_DRAIN_S": "60",
        **settings,
    }
    daemons = []
    for name in names:
        (folder / name).mkdir()
        daemons.append(stack.enter_context(DaemonProcess(folder / name, given)))
    _wait_for(len(names), database)
    return daemons


def _tls(folder: Path) -> Mapping[str, str]:
    """Settings of a door with a certificate."""
    made, key, certificate = trustme.CA().issue_cert("127.0.0.1"), folder / "key.pem", folder / "certificate.pem"
    made.private_key_pem.write_to_path(str(key))
    made.cert_chain_pems[0].write_to_path(str(certificate))
    return {"ZOT_WEBSOCKET_TLS_KEY": str(key), "ZOT_WEBSOCKET_TLS_CERT": str(certificate)}


def _wait_for(count: int, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as watch:
        while watch.execute(KNOWN).fetchone() != (count,):
            pass


def _step(_: object) -> ScriptedReply:
    return calls(CallPart("bash", {"command": "sleep 0.05"}))


async def ask_ms(client: WireClient, command: str, session: str) -> float:
    """Return how long a command takes, in milliseconds."""
    begun = time.perf_counter()
    await client.ask(command, session=session)
    return (time.perf_counter() - begun) * 1000
