"""A fleet of 1,000 daemons and 1,000,000 sessions: which statement is the limit.

The rows are real, in a real server on this machine; one daemon's journal works with them, and the server says how long each of its
statements took (`pg_stat_statements`). What 1,000 daemons cost is that time, as often as they all do it. What they would wait for
each other is not in it.
"""

import asyncio
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import psycopg

from benchmarks.rig import Row
from zotd.store.ownership import LeaseEvents
from zotd.store.postgres.journal import PostgresJournal
from zotd.store.postgres.registration import RENEW_S
from zotd.testing.postgres_server import PostgresServer

SMALL, LARGE = (10, 1_000), (1_000, 1_000_000)
"""Daemons and sessions."""

RUNNING = 100
"""One of so many sessions runs."""

RECORDS = 1_000_000
"""In the larger one, so that their sum is measured too."""

WATCHED_S = 20.0
"""Time in which the lease is renewed."""

PROBE_S = 20.0
"""How often a readiness probe asks, as packaging/kubernetes says."""

CALLS = 5
"""Of each command."""

BEATS = (
    "UPDATE daemons SET expires",
    "pg_terminate_backend",
    "DELETE FROM daemons WHERE number IN",
    "UPDATE handovers",
    "FROM timers WHERE owner IS NULL",
    "FROM handovers WHERE heir",
)
"""Parts of the statements of each renewal."""

FILL = """
INSERT INTO daemons SELECT n, 'home' || n, 'name' || n, now() + interval '1 day', false, 'application' || n, 'wss://name' || n
FROM generate_series(1, %(daemons)s) AS n;
UPDATE meta SET value = %(daemons)s::text WHERE key = 'generation';
INSERT INTO sessions (id, name, cwd, state, updated, records, seq, row, owner)
SELECT 's_' || n, 'name', '/', CASE WHEN n %% %(running)s = 0 THEN 'running' ELSE 'idle' END,
    '2026-11-29T00:00:00.000Z', 1, 1, repeat('x', 600), CASE WHEN n %% 10 = 0 THEN 1 + n %% %(daemons)s END
FROM generate_series(1, %(sessions)s) AS n;
"""
"""A tenth of the sessions belongs to a daemon."""

FILL_RECORDS = """
INSERT INTO records (session, number, kind, v, time, body, first_seq, last_seq, events, messages)
SELECT n, 1, 'note', 1, '2026-11-29T00:00:00.000Z', convert_to(repeat('x', 300), 'UTF8'), 0, 0, '', 0
FROM generate_series(1, %s) AS n
"""

SPENT = "SELECT query, mean_exec_time FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"


async def measure() -> list[Row]:
    """Rows for what is done at each renewal, by each probe, and by each start."""
    server = PostgresServer(fsync=True)
    with closing(server):
        server.stop()
        server.configure(shared_preload_libraries="pg_stat_statements", max_wal_size="4GB")
        server.start()
        small = await _spent_ms(server, *SMALL, records=1_000)
        large = await _spent_ms(server, *LARGE, records=RECORDS)
    daemons, sessions = LARGE
    of = f"{daemons:,} daemons, {sessions:,} sessions"
    rows = [
        Row(f"{what}, {of}", large[what], "ms", small[what], f"{SMALL[0]} daemons, {SMALL[1]:,} sessions", "", None)
        for what in large
    ]
    rates = {"all statements of a renewal": RENEW_S, "a readiness probe": PROBE_S}
    for what, every_s in rates.items():
        cores = daemons * large[what] / 1000 / every_s
        rows.append(
            Row(f"processors of the server for them, every {every_s:g} s: {what}", cores, "", None, "", "", None)
        )
    return rows


async def _spent_ms(server: PostgresServer, daemons: int, sessions: int, *, records: int) -> Mapping[str, float]:
    """Milliseconds of the server for each thing that a daemon does."""
    url = server.database()
    with tempfile.TemporaryDirectory(prefix="zot-") as folder, psycopg.connect(url, autocommit=True) as watch:
        first = await PostgresJournal.open(url, Path(folder))  # makes the tables
        await first.close()
        values = {"daemons": daemons, "sessions": sessions, "running": RUNNING}
        for statement in FILL.split(";")[:-1]:
            watch.execute(statement.encode(), values if "%(" in statement else None)
        watch.execute(FILL_RECORDS, (records,))
        watch.execute("CREATE EXTENSION pg_stat_statements")
        watch.execute("VACUUM ANALYZE")
        watch.execute("SELECT pg_stat_statements_reset()")
        journal = await PostgresJournal.open(url, Path(folder))
        journal.ownership.follow(LeaseEvents(lambda _: None, lambda _: None, lambda _: None, ("running", "waiting")))
        await asyncio.sleep(WATCHED_S)
        for _ in range(CALLS):
            await journal.ownership.members.loads()
            await journal.ownership.members.lease_s()
            await journal.ownership.adopt_with_jobs()
            await journal.database.used_bytes()
        await journal.ownership.adopt("running")
        statements: list[tuple[str, float]] = watch.execute(SPENT).fetchall()
        await journal.close()

    def of(part: str) -> float:
        return sum(mean for query, mean in statements if part in query)

    return {
        "all statements of a renewal": sum(map(of, BEATS)),
        "a readiness probe": of("greatest(extract("),
        "list of the daemons": of("FROM daemons LEFT JOIN sessions"),
        "sessions that run and are free, at a start": of("UPDATE sessions SET owner = $1 WHERE state"),
        "sessions with jobs that are free, at a start": of("UPDATE sessions SET owner = $1 WHERE jobs"),
        "size of what is stored": of("octet_length(body)"),
    }
