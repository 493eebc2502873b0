"""What a fleet needs: bytes of the database for a step, memory of a daemon, and what leases cost the server.

A real server on this machine, with syncs. Memory of sessions: `benchmarks.memory`.
"""

import asyncio
import tempfile
from contextlib import AsyncExitStack, closing
from pathlib import Path

import psutil
import psycopg

from benchmarks import model, rig
from benchmarks.postgres import log_position
from benchmarks.rig import Row
from zotd.store.ownership import LeaseEvents
from zotd.store.postgres.journal import PostgresJournal
from zotd.testing.postgres_server import PostgresServer

STEPS = 100

SESSIONS = 10
"""That run so many steps, one after the other."""

LEASES = 20
"""Daemons that do nothing but renew their leases."""

LEASE_S = 30.0
"""Time in which they are watched."""

SIZE = "SELECT pg_database_size(current_database())"

USED = "SELECT sum(octet_length(body) + octet_length(events)) FROM records"

INDEXED = "SELECT (SELECT count(*) FROM texts), (SELECT count(*) FROM records)"

INDEX_S = 60.0
"""Longest wait for the index of words, which follows the commits."""

COMMITTED = "SELECT pg_stat_clear_snapshot(), xact_commit FROM pg_stat_database WHERE datname = current_database()"


async def measure() -> list[Row]:
    """Rows for the database, a daemon and the leases."""
    with closing(PostgresServer(fsync=True)) as server:
        return [*await _database(server), *await _leases(server)]


async def _database(server: PostgresServer) -> list[Row]:
    url = server.database()
    async with rig.world(journal=url) as world:
        (world.place.cwd / "note.txt").write_text(model.NOTE)
        idle_mib = rig.rss_mib(world.daemon)
        with psycopg.connect(url, autocommit=True) as watch:
            empty = await settled_size(watch)
            for _ in range(SESSIONS):
                session = await world.session("anthropic", f"call/read/{STEPS}", stored=True)
                await rig.finish(session)
            size = await settled_size(watch) - empty
            (used,) = watch.execute(USED).fetchone() or (0,)
        busy_mib = rig.rss_mib(world.daemon)
    steps = SESSIONS * STEPS
    note = f"{size / SESSIONS / 1024:,.0f} KiB for a session of {STEPS} steps"
    return [
        Row(
            "database for a step",
            size / steps,
            "bytes",
            float(used) / steps,
            "records and events",
            "",
            None,
            note=note,
        ),
        Row("memory of a daemon that uses PostgreSQL, idle", idle_mib, "MiB", None, "", "", None),
        Row(f"the same after {SESSIONS} sessions of {STEPS} steps", busy_mib, "MiB", None, "", "", None),
    ]


async def settled_size(watch: psycopg.Connection) -> int:
    """Return the bytes of the database, when the index of words has not grown for a second."""
    before = None
    async with asyncio.timeout(INDEX_S):
        while (found := watch.execute(INDEXED).fetchone()) != before:
            before = found
            await asyncio.sleep(1)
    watch.execute("VACUUM")  # without it, the size depends on when the server has last done so
    (size,) = watch.execute(SIZE).fetchone() or (0,)
    return int(size)


async def _leases(server: PostgresServer) -> list[Row]:
    url = server.database()
    events = LeaseEvents(lambda _: None, lambda _: None, lambda _: None, ("running", "waiting"))
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zot-")))
        for number in range(LEASES):
            home = folder / str(number)
            home.mkdir()
            journal = await PostgresJournal.open(url, home)
            stack.push_async_callback(journal.close)
            journal.ownership.follow(events)
        watch = stack.enter_context(psycopg.connect(url, autocommit=True))
        await asyncio.sleep(LEASE_S / 10)
        before = log_position(watch), committed(watch), server_cpu_s(server)
        await asyncio.sleep(LEASE_S)
        after = log_position(watch), committed(watch), server_cpu_s(server)
    log_bytes, transactions, cpu_s = (
        (late - early) / LEASES / LEASE_S for early, late in zip(before, after, strict=True)
    )
    each = "of a daemon that does nothing"
    return [
        Row(f"log of the server, {each}", log_bytes, "bytes/s", None, "", "", None),
        Row(f"transactions, {each}", transactions, "/s", None, "", "", None),
        Row(f"processor of the server, {each}", cpu_s * 1000, "ms/s", None, "", "", None),
    ]


def committed(watch: psycopg.Connection) -> int:
    """Return how many transactions of the database have been committed."""
    _, count = watch.execute(COMMITTED).fetchone() or (None, 0)
    return int(count)


def server_cpu_s(server: PostgresServer) -> float:
    """Return how many seconds of the processor the server has used."""
    postmaster = psutil.Process(int((server.data / "postmaster.pid").read_text().splitlines()[0]))
    return sum(rig.cpu_s(process) for process in [postmaster, *postmaster.children()])
