"""Attach to a stored session of 50,000 messages, in a daemon that has just started: the first screen, and memory."""

import sqlite3
import time
from contextlib import closing

from benchmarks import history, rig
from benchmarks.rig import Place, Row
from zotd.store.opening import FILE

MESSAGES = 50_000

SCREEN = 50
"""Messages that a client asks for."""

ROUNDS = 5

TARGET_MS = 500.0

FLAT_MIB = 5.0
"""Growth that still counts as flat: caches of the database, and buffers."""

NEWEST = "SELECT events FROM records WHERE messages > 0 ORDER BY key DESC LIMIT ?"


async def measure() -> list[Row]:
    """Rows for time and memory."""
    with rig.place() as where:
        (session,) = await history.write(where.home, where.cwd, sessions=1, messages=MESSAGES)
        floor = rig.median([_sqlite(where) for _ in range(ROUNDS)]) * 1000
        taken = [await _attach(where, session) for _ in range(ROUNDS)]
    ms = rig.median([seconds for seconds, _ in taken]) * 1000
    grown = rig.median([mib for _, mib in taken])
    name = f"attach to a session of {MESSAGES:,} messages"
    return [
        Row(
            f"{name}: first screen",
            ms,
            "ms",
            floor,
            "bare SQLite read",
            f"<= {TARGET_MS:g} ms",
            ms <= TARGET_MS,
        ),
        Row(f"{name}: memory", grown, "MiB", None, "", "flat", grown <= FLAT_MIB),
    ]


async def _attach(where: Place, session: str) -> tuple[float, float]:
    """Seconds from the request to the snapshot, and MiB that the daemon has grown by."""
    async with rig.daemon(where) as process, rig.connect(where) as client:
        before = rig.rss_mib(process)
        start = time.perf_counter()
        snapshot = await client.attach(session, limit=SCREEN)
        taken = time.perf_counter() - start
        if len(snapshot.messages) != SCREEN:
            raise RuntimeError(f"the snapshot had {len(snapshot.messages)} messages, not {SCREEN}")
        return taken, rig.rss_mib(process) - before


def _sqlite(where: Place) -> float:
    start = time.perf_counter()
    with closing(sqlite3.connect(where.home / FILE)) as connection:
        connection.execute(NEWEST, (SCREEN,)).fetchall()
    return time.perf_counter() - start


if __name__ == "__main__":
    rig.run(measure)
