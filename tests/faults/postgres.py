"""kill -9 at random instants of daemons whose sessions are in PostgreSQL: what is promised of a file is true of a database.

The homes are those of `tests.faults.kills`, each with a database of its own in one server, which syncs. The server may
apply a killed daemon's last commit after the look that follows the kill. The final look sees every commit.
"""

import asyncio
import time
from contextlib import closing
from dataclasses import replace
from functools import partial

from tests.faults import kills
from tests.faults.daemon import Nursery
from tests.faults.row import Options, Row, skipped
from zotd.testing.postgres_server import MISSING, PostgresServer


async def run(options: Options) -> list[Row]:
    """A row for work, and one for clients."""
    if MISSING is not None:
        return [skipped("PostgreSQL: kill -9 at random instants", MISSING, "python -m tests.faults postgres")]
    started = time.monotonic()
    with closing(await asyncio.to_thread(partial(PostgresServer, fsync=True))) as server:
        async with Nursery.open() as nursery:
            rig = kills.Rig(nursery, options, server.database)
            await rig.do(list(kills.at_instants(options)))
    rows = kills.rows(rig, "postgres", time.monotonic() - started)
    return [replace(row, check=f"PostgreSQL: {row.check}") for row in rows]
