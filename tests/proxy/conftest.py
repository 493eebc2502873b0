"""A proxy with an outlet, used as a command in a jail uses it, and servers that it may reach."""

import asyncio
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from zotd.proxy import AllowList, parse_rule
from zotd.proxy.server import ProxyServer, running_proxy
from zotd.proxy.traffic_log import TrafficRecord

NAMES = {
    "server.example": ["127.0.0.1"],
    "other.example": ["127.0.0.1"],
    "intranet.example": ["10.1.2.3"],
    "metadata.example": ["169.254.169.254"],
    "mapped.example": ["::ffff:127.0.0.1"],
}


async def resolve(name):
    if name not in NAMES:
        raise OSError(None, "Name or service not known")
    return [ip_address(address) for address in NAMES[name]]


@dataclass
class World:
    """The proxy, and what it has recorded."""

    proxy: ProxyServer
    records: list[TrafficRecord]
    recorded: asyncio.Event

    async def outlet(self, *rules, decider=None):
        """The port of an outlet that allows these hosts."""
        chosen = decider or AllowList(map(parse_rule, rules))
        return await handed_over(self.proxy.outlet("tests", chosen, resolve).admit())

    async def next_record(self):
        async with asyncio.timeout(60):
            await self.recorded.wait()
        self.recorded.clear()
        return self.records[-1]


async def handed_over(path):
    """Hand a listener over, as `zotd.jail.handover` does, and return its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with listener, socket.socket(socket.AF_UNIX) as proxy:
        proxy.setblocking(False)
        await asyncio.get_running_loop().sock_connect(proxy, path)
        socket.send_fds(proxy, [b"1"], [listener.fileno()])
        async with asyncio.timeout(60):
            assert await asyncio.get_running_loop().sock_recv(proxy, 1) == b"1"
    return port


@pytest.fixture
async def world():
    with TemporaryDirectory() as folder:
        outlets = Path(folder, "outlets")
        records, recorded = [], asyncio.Event()

        def record(one):
            records.append(one)
            recorded.set()

        async with running_proxy(str(outlets), record) as proxy:
            yield World(proxy, records, recorded)
        assert list(outlets.glob("*")) == []  # noqa: ASYNC240  (nothing is served any more)


@asynccontextmanager
async def serving(answer):
    """The port of a server that awaits `answer(reader, writer)` for each connection."""

    async def answered(reader, writer):
        try:
            await answer(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(answered, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def echo(reader, writer):
    """Answer with what was sent, once all of it is there."""
    writer.write(await reader.read())
    await writer.drain()
    writer.close()


async def http(reader, writer):
    """Answer a request with its own head."""
    head = await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(head), head))
    await writer.drain()
    writer.close()


async def exchange(port, data, *, ends=True):
    """What comes back for these bytes until the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    if ends:
        writer.write_eof()
    try:
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.close()


def connect_to(remote, data=b""):
    return f"CONNECT {remote} HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n".encode() + data


CONNECTED = b"HTTP/1.1 200 OK\r\n\r\n"
