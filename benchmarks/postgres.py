"""Sessions in PostgreSQL beside sessions in a file: a step of a run, many sessions at once, and what is written for them.

The server is a real one on this machine, with syncs, on the disk of the temporary directory, reached over a Unix socket.
"""

import asyncio
import re
import secrets
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path

import psycopg
from msgspec.structs import replace

from benchmarks import model, rig, steps
from benchmarks.rig import Row
from zotd.core.ports import JournalEntry, SessionRow
from zotd.core.records import Note, Settings
from zotd.store.journal import SqliteJournal, StoredJournal
from zotd.store.postgres.append import APPEND, Append
from zotd.store.postgres.journal import PostgresJournal
from zotd.store.postgres.schema import LOCK
from zotd.testing.postgres_server import PostgresServer
from zotd.wire.base import ENCODER
from zotd.wire.content import Text
from zotd.wire.events import UserMessage

STEP_RATIO = 1.5
"""What a step may take, as a multiple of one whose session is in a file."""

WAL_RATIO = 1.6
"""What the server's log may grow by, as a multiple of the records and events that are stored."""

AUTHORS = 16
"""Sessions that commit at the same time."""

COMMITS = 200
"""Commits of each of them."""

TEXT_CHARS = 700
"""Of a message, about the median of what agents say and read."""

TIME = "2026-11-27T12:00:00.000Z"

NUMBER = 987654321
"""Stands for the number of a commit in a statement of pgbench."""


async def measure() -> list[Row]:
    """Rows for a step of each vendor, and for many sessions at once."""
    with closing(PostgresServer(fsync=True)) as server:
        rows = [await _step(server, vendor) for vendor in rig.VENDORS]
        return [*rows, *await _many(server)]


async def _step(server: PostgresServer, vendor: str) -> Row:
    file: list[float] = []
    database: list[float] = []
    async with rig.world() as in_file, rig.world(journal=server.database()) as in_database:
        for world in (in_file, in_database):
            (world.place.cwd / "note.txt").write_text(model.NOTE)
        for _ in range(steps.RUNS):
            for world, samples in ((in_file, file), (in_database, database)):
                samples.extend(await steps.steps_ms(await world.session(vendor, steps.PLAN, stored=True)))
    file_ms, database_ms = rig.median(file), rig.median(database)
    return Row(
        f"step of a session in PostgreSQL, {vendor}",
        database_ms,
        "ms",
        file_ms,
        "in a file",
        f"<= {STEP_RATIO:g}x",
        database_ms <= STEP_RATIO * file_ms,
    )


async def _many(server: PostgresServer) -> list[Row]:
    url = server.database()
    with tempfile.TemporaryDirectory(prefix="zot-") as folder, psycopg.connect(url, autocommit=True) as watch:
        file = await SqliteJournal.open(Path(folder, "zot.db"))
        in_file, _ = await _commits(file)
        await file.close()
        database = await PostgresJournal.open(url, Path(folder))
        await _commits(database)  # connections, plans and indexes
        before = log_position(watch)
        in_database, stored_bytes = await _commits(database)
        written_bytes = log_position(watch) - before
        await database.close()
        floor = _floor(server, url)
    return [
        Row(
            f"durable commits of {AUTHORS} sessions in PostgreSQL",
            in_database,
            "/s",
            floor,
            f"pgbench, {AUTHORS} connections",
            "",
            None,
            note=f"{in_database / in_file:.2f} times those in a file",
        ),
        Row(
            f"log of the server, of {AUTHORS} sessions",
            written_bytes / AUTHORS / COMMITS,
            "bytes a commit",
            stored_bytes / AUTHORS / COMMITS,
            "records and events",
            f"<= {WAL_RATIO:g}x",
            written_bytes <= WAL_RATIO * stored_bytes,
        ),
    ]


class Author:
    """A session that commits a message again and again."""

    def __init__(self, name: str, *, number: int = 0) -> None:
        """`number`: of the commits before the first one."""
        settings = Settings(provider="p", model="m")
        row = SessionRow(id=name, name=name, cwd="/", created=TIME, updated=TIME, settings=settings, state="running")
        self.row = replace(row, records=number, seq=number)
        self.stored_bytes = 0

    def next(self) -> JournalEntry:
        """A record with one event, behind the one before."""
        number = self.row.records + 1
        text = secrets.token_urlsafe(TEXT_CHARS * 3 // 4)
        event = UserMessage(content=[Text(text)], time=TIME, session=self.row.id, seq=number)
        line = ENCODER.encode_lines([event])
        record = Note(time=TIME, level="info", text=text)
        self.stored_bytes += len(line) + len(ENCODER.encode(record))
        self.row = replace(self.row, records=number, seq=number)
        return JournalEntry(number=number, record=record, first_seq=number, last_seq=number, events=line, messages=1)

    async def commit(self, journal: StoredJournal) -> None:
        """Commit it, and wait until it is durable."""
        entry = self.next()
        stored = asyncio.get_running_loop().create_future()
        journal.commit(self.row, [entry], durable=True, done=stored.set_result)
        if (error := await stored) is not None:
            raise error


async def _commits(journal: StoredJournal) -> tuple[float, int]:
    """Commits a second of all authors together, and the bytes of what they have stored."""
    authors = [Author(f"s_{secrets.token_hex(6)}") for _ in range(AUTHORS)]

    async def work(author: Author) -> None:
        for _ in range(COMMITS):
            await author.commit(journal)

    start = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for author in authors:
            tasks.create_task(work(author))
    return AUTHORS * COMMITS / (time.perf_counter() - start), sum(author.stored_bytes for author in authors)


def log_position(watch: psycopg.Connection) -> int:
    """Return how many bytes the server has written to its log."""
    query = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
    (position,) = watch.execute(query).fetchone() or (0,)
    return int(position)


def _floor(server: PostgresServer, url: str) -> float:
    """The same statement from as many connections, without our program: transactions a second."""
    script = server.directory / "append.sql"
    script.write_text(_script(url))
    clients = ("-c", str(AUTHORS), "-j", "2", "-t", str(COMMITS), "-n", "-D", "n=0")
    done = subprocess.run(  # noqa: S603  (a program of the server)
        [server.programs / "pgbench", *clients, "-f", script, url], capture_output=True, text=True, check=True
    )
    found = re.search(r"tps = ([\d.]+)", done.stdout)
    if found is None:
        raise RuntimeError(f"pgbench said: {done.stdout}{done.stderr}")
    return float(found[1])


def _script(url: str) -> str:
    """A commit of a message whose session and number are those of the client of pgbench, and of its turn."""
    with psycopg.connect(url) as connection:
        (generation,) = connection.execute("SELECT value::bigint FROM meta WHERE key = 'generation'").fetchone() or (0,)
        author = Author(f"s_{NUMBER}", number=NUMBER - 1)
        entry = author.next()
        values = Append.of(author.row, [entry], generation).values
        statement = psycopg.ClientCursor(connection).mogrify(APPEND, values)
    statement = statement.replace(f"s_{NUMBER}", "pgbench_:client_id").replace(str(NUMBER - 1), "(:n - 1)")
    lines = ["\\set n :n + 1", "BEGIN;", f"SELECT pg_advisory_xact_lock_shared({LOCK});"]
    return "\n".join([*lines, f"{' '.join(statement.replace(str(NUMBER), ':n').split())};", "COMMIT;", ""])
