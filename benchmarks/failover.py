"""The database goes away and its standby is promoted: what a standby costs, how long daemons wait, and what is lost.

Two real servers on this machine, with syncs, on one disk: over a network a synchronous standby costs its round trip besides.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from pathlib import Path

import psycopg
from msgspec import Struct

from benchmarks import rig
from benchmarks.postgres import AUTHORS, Author
from benchmarks.rig import Row
from zotd.core.ports import StorageError
from zotd.store.postgres.journal import PostgresJournal
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.postgres_copies import PostgresStandby
from zotd.testing.postgres_server import PostgresServer
from zotd.testing.wire_client import WireClient

ROUNDS = 6
"""In which the standby is asynchronous and synchronous in turns."""

COMMITS = 150
"""Of one session, in each of these."""

FAILOVERS = 4
"""With each kind of standby."""

BEFORE = 2000
"""Commits before the server is killed."""

WAIT_S = 60.0
"""Longest wait for a server or a daemon to be as it should."""

LOOK_S = 0.01

NOWHERE = "http://127.0.0.1:9"
"""Address of a model that does not answer: only the prompt counts."""

STANDBY = "SELECT count(*) FILTER (WHERE sync_state = %s) = 1 FROM pg_stat_replication WHERE state = 'streaming'"

STORED = "SELECT sessions.id, max(number) FROM records JOIN sessions ON sessions.key = session GROUP BY sessions.id"

KINDS = {"asynchronous": "", "synchronous": "*"}
"""The setting `synchronous_standby_names` for each kind of standby."""

STATES = {"asynchronous": "async", "synchronous": "sync"}


class Pair(Struct, frozen=True):
    """A server, its standby, and a database on both."""

    primary: PostgresServer
    standby: PostgresStandby
    name: str

    @property
    def url(self) -> str:
        """Leads to the server that accepts writes."""
        hosts = f"{self.primary.directory},{self.standby.directory}"
        return f"postgresql://admin@/{self.name}?host={hosts}&target_session_attrs=read-write"

    async def become(self, kind: str) -> None:
        """Have the standby be of this kind."""
        with psycopg.connect(self.primary.url(self.name), autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{KINDS[kind]}'")
            connection.execute("SELECT pg_reload_conf()")
            async with asyncio.timeout(WAIT_S):
                while connection.execute(STANDBY, (STATES[kind],)).fetchone() != (True,):  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_S)


async def measure() -> list[Row]:
    """Rows for the cost of a commit, for the wait, and for what is lost."""
    rows = [await _cost()]
    for kind in KINDS:
        waits_s, lost, acknowledged = [], 0, 0
        for _ in range(FAILOVERS):
            gone, all_ = await _loss(kind)
            lost, acknowledged = lost + gone, acknowledged + all_
            waits_s.append(await _wait_s(kind))
        rows += [_lost_row(kind, lost, acknowledged), _wait_row(kind, waits_s)]
    return rows


def _lost_row(kind: str, lost: int, acknowledged: int) -> Row:
    is_sync = kind == "synchronous"
    target, met = ("0", lost == 0) if is_sync else ("", None)
    name = f"acknowledged commits lost in {FAILOVERS} failovers, {kind} standby"
    return Row(name, lost, "", None, "", target, met, note=f"of {acknowledged:,}")


def _wait_row(kind: str, waits_s: Sequence[float]) -> Row:
    name = f"from the promotion until a daemon accepts a prompt, {kind} standby"
    return Row(name, rig.median(waits_s), "s", None, "", "", None, note=f"at most {max(waits_s):.2g} s")


@asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    """Two servers."""
    with ExitStack() as stack:
        primary = stack.enter_context(closing(PostgresServer(fsync=True)))
        name = primary.database().partition("?")[0].rpartition("/")[2]
        yield Pair(primary, stack.enter_context(closing(PostgresStandby(primary, fsync=True))), name)


async def _cost() -> Row:
    samples: dict[str, list[float]] = {kind: [] for kind in KINDS}
    async with pair() as servers, _journal_at(servers.url) as journal:
        author = Author("s_1")
        for round_ in range(ROUNDS + 1):  # the first one warms up
            for kind, taken in samples.items():
                await servers.become(kind)
                found = [await _commit_ms(author, journal) for _ in range(COMMITS)]
                taken.extend(found if round_ else ())
    asynchronous_ms, synchronous_ms = (rig.median(samples[kind]) for kind in ("asynchronous", "synchronous"))
    name = "durable commit with a synchronous standby"
    return Row(name, synchronous_ms, "ms", asynchronous_ms, "with an asynchronous one", "", None)


async def _commit_ms(author: Author, journal: PostgresJournal) -> float:
    start = time.perf_counter()
    await author.commit(journal)
    return (time.perf_counter() - start) * 1000


class Commits:
    """Counts the commits of sessions that were acknowledged."""

    def __init__(self, journal: PostgresJournal) -> None:
        self._journal = journal
        self.acknowledged = {f"s_{number}": 0 for number in range(AUTHORS)}
        self.are_many = asyncio.Event()

    @property
    def total(self) -> int:
        """Of all sessions."""
        return sum(self.acknowledged.values())

    async def work(self, session: str) -> None:
        """Commit again and again, until the server is away."""
        author = Author(session)
        with suppress(StorageError):
            while True:
                await author.commit(self._journal)
                self.acknowledged[session] += 1
                if self.total >= BEFORE:
                    self.are_many.set()


async def _loss(kind: str) -> tuple[int, int]:
    """Acknowledged commits that the promoted standby does not have, and all that were acknowledged."""
    async with pair() as servers, _journal_at(servers.primary.url(servers.name)) as journal:
        await servers.become(kind)
        commits = Commits(journal)
        async with asyncio.TaskGroup() as tasks:
            for session in commits.acknowledged:
                tasks.create_task(commits.work(session))
            await commits.are_many.wait()
            await asyncio.to_thread(servers.primary.kill)
        await asyncio.to_thread(servers.standby.promote)
        with psycopg.connect(servers.standby.url(servers.name)) as connection:
            stored: dict[str, int] = dict(connection.execute(STORED).fetchall())
    lost = sum(max(number - stored.get(name, 0), 0) for name, number in commits.acknowledged.items())
    return lost, commits.total


@asynccontextmanager
async def _journal_at(url: str) -> AsyncIterator[PostgresJournal]:
    with tempfile.TemporaryDirectory(prefix="zot-") as folder:
        journal = await PostgresJournal.open(url, Path(folder))
        try:
            yield journal
        finally:
            await journal.close()


async def _wait_s(kind: str) -> float:
    """Seconds from the promotion until a daemon of the database accepts a prompt."""
    async with pair() as servers:
        with tempfile.TemporaryDirectory(prefix="zot-") as folder, ExitStack() as stack:
            place = stack.enter_context(DaemonProcess(Path(folder), {"ZOT_JOURNAL_URL": servers.url})).place
            await servers.become(kind)
            async with WireClient.connect(place.socket) as client:
                await _accepted(client, folder)
                await asyncio.to_thread(servers.primary.kill)
                await asyncio.to_thread(servers.standby.promote)
                start = time.perf_counter()
                await _accepted(client, folder)
                return time.perf_counter() - start


async def _accepted(client: WireClient, cwd: str) -> None:
    """Make a session and send it a prompt, again until both are stored."""
    async with asyncio.timeout(WAIT_S):
        while not await _is_accepted(client, cwd):  # noqa: ASYNC110  (the daemon does not report it)
            await asyncio.sleep(LOOK_S)


async def _is_accepted(client: WireClient, cwd: str) -> bool:
    made = await client.answer("session.create", cwd=cwd, provider="ollama", model="m", base_url=NOWHERE)
    data = made.get("data")
    if not made["success"] or not isinstance(data, dict):
        return False
    return bool((await client.answer("prompt", session=data["session"]["id"], message="hello"))["success"])
