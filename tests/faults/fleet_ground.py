"""Where a fleet of two daemons runs: a database, and how the daemons reach it and each other."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import psycopg
import trustme

from tests.detour import detour
from tests.faults.daemon import Nursery
from tests.faults.fleet_node import Node, furnish
from tests.faults.fleet_story import NETWORKS, SOCKETS, STANDBY
from tests.faults.network import LOOPBACK, Namespace, Network
from zotd.testing.model_server import ModelServer
from zotd.testing.postgres_copies import PostgresStandby
from zotd.testing.postgres_server import PostgresServer

NAMES = ("one", "two")

PORT = 7777
"""Of the WebSocket doors; each daemon has a network of its own."""


SYNCED = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"

FOLLOW_S = 30
"""Longest wait until a new standby has caught up; it takes a second."""


class Database(Protocol):
    """What has the database."""

    def kill(self) -> None:
        """End it at once."""
        ...

    def start(self) -> None:
        """Have it accept writes again, when it was killed."""
        ...


@dataclass(frozen=True, slots=True)
class Ground:
    """What a fleet needs, running; no daemon is started."""

    server: Database
    database: str
    """URL of the database for this process."""
    nodes: Sequence[Node]


@asynccontextmanager
async def on_sockets(folder: Path, resume: str, model: ModelServer, nursery: Nursery) -> AsyncIterator[Ground]:
    """Daemons whose ways to the database are Unix sockets of this process; a way that is closed ends its connections."""
    async with AsyncExitStack() as stack:
        server = stack.enter_context(closing(await asyncio.to_thread(partial(PostgresServer, fsync=True))))
        database = await asyncio.to_thread(server.database)
        nodes = []
        for name in NAMES:
            short = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zotpg-", dir="/tmp")))
            way = await stack.enter_async_context(detour(short, server.directory))
            url = database.replace(str(server.directory), str(short))
            where = furnish(folder / name, resume, model.openai_url, url)
            nodes.append(Node(where, nursery, way, None))
        yield Ground(server, database, nodes)


@asynccontextmanager
async def on_networks(folder: Path, resume: str, model: ModelServer, nursery: Nursery) -> AsyncIterator[Ground]:
    """Daemons with networks of their own; what is sent on a link that is closed is lost, and nothing says so."""
    async with AsyncExitStack() as stack:
        network = stack.enter_context(closing(await asyncio.to_thread(Network.made)))
        server = stack.enter_context(closing(await asyncio.to_thread(_ServerInNetwork, network.hub)))
        database = await asyncio.to_thread(server.database)
        links, port = network.daemons, int(model.url.rpartition(":")[2])
        nodes = []
        for index, name in enumerate(NAMES):
            space, link = network.nodes[index], network.databases[index]
            await model.serve_at(space.listener(LOOPBACK, port))
            url = database.replace(f"?host={server.directory}", "").replace("admin@", f"admin@{link.addresses[1]}")
            door = _door(links.addresses[index], folder / f"{name}.pem")
            where = furnish(folder / name, resume, model.openai_url, url, door)
            nodes.append(Node(where, nursery, link, links, space.path))
        yield Ground(server, database, nodes)


@asynccontextmanager
async def on_standby(folder: Path, resume: str, model: ModelServer, nursery: Nursery) -> AsyncIterator[Ground]:
    """Daemons of a server with a synchronous standby, which is promoted when the server is killed."""
    with closing(await asyncio.to_thread(_ServerAndStandby)) as server:
        homes = [furnish(folder / name, resume, model.openai_url, server.url) for name in NAMES]
        yield Ground(server, server.url, [Node(where, nursery, None, None) for where in homes])


class _Grounds(Protocol):
    def __call__(
        self, folder: Path, resume: str, model: ModelServer, nursery: Nursery
    ) -> AbstractAsyncContextManager[Ground]: ...


GROUNDS: Mapping[str, _Grounds] = {SOCKETS: on_sockets, NETWORKS: on_networks, STANDBY: on_standby}


def _door(host: str, certificate: Path) -> dict[str, str]:
    """Return the settings of a door at this address; makes its certificate."""
    trustme.CA().issue_cert(host).private_key_and_cert_chain_pem.write_to_path(certificate)
    pem = str(certificate)
    names = ("ZOT_WEBSOCKET_LISTEN", "ZOT_WEBSOCKET_HOSTS", "ZOT_WEBSOCKET_TLS_CERT", "ZOT_WEBSOCKET_TLS_KEY")
    return dict(zip(names, (f"{host}:{PORT}", host, pem, pem), strict=True))


class _ServerInNetwork(PostgresServer):
    """A server at all addresses of a network, besides its Unix socket."""

    def __init__(self, network: Namespace) -> None:
        self._network = network
        super().__init__(fsync=True)

    def make_cluster(self) -> None:
        """Make one that accepts the daemons."""
        super().make_cluster()
        with (self.data / "pg_hba.conf").open("a") as file:
            file.write("host all all 10.0.0.0/8 trust\n")

    def start(self) -> None:
        """Start it in the network."""
        self.configure(listen_addresses="*")
        self._network.run(super().start)


class _ServerAndStandby:
    """Two servers, of which one follows the other: it has each commit before that is reported."""

    def __init__(self) -> None:
        self._primary = PostgresServer(fsync=True)
        self._standby = PostgresStandby(self._primary, fsync=True)
        hosts = f"{self._primary.directory},{self._standby.directory}"
        database = self._primary.database()
        self.url = database.replace(str(self._primary.directory), hosts) + "&target_session_attrs=read-write"
        """Of the database, on the server that accepts writes."""
        self._wait_for_standby()

    def kill(self) -> None:
        """Kill the server that accepts writes."""
        self._primary.kill()

    def start(self) -> None:
        """Promote the other one, and have a new standby follow that, in the place of what was killed."""
        lost, promoted = self._primary, self._standby
        promoted.promote()
        _set(promoted, "RESET synchronous_standby_names")  # the lost server may have been a standby of this one
        shutil.rmtree(lost.data)
        self._primary, self._standby = promoted, PostgresStandby(promoted, fsync=True, directory=lost.directory)
        self._wait_for_standby()

    def close(self) -> None:
        """End both, and remove everything."""
        self._standby.close()
        self._primary.close()

    def _wait_for_standby(self) -> None:
        """Report commits only when the standby has them, from now on."""
        _set(self._primary, "SET synchronous_standby_names = '*'")
        deadline = time.monotonic() + FOLLOW_S
        with psycopg.connect(self._primary.url("postgres"), autocommit=True) as connection:
            while connection.execute(SYNCED).fetchone() is None:
                if time.monotonic() > deadline:
                    raise TimeoutError("the standby does not follow its server")
                connection.execute("SELECT pg_sleep(0.05)")


def _set(server: PostgresServer, change: str) -> None:
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM {change}".encode())
        connection.execute("SELECT pg_reload_conf()")
