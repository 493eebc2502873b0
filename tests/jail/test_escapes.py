"""Each escape of the table succeeds without a jail, and exactly those fail in one that it claims to stop."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from tests.jail.conftest import KEY, repository
from tests.jail.escapes import ESCAPES
from zotd.jail import Mechanism

ABSTRACT = "zot-test-{}"


@asynccontextmanager
async def world(person):
    """The variables of `tests.jail.escapes`, and the terminal's other end."""
    repository(person.work)
    socket = person.root / "runtime" / "bus"
    abstract = ABSTRACT.format(os.urandom(8).hex())
    master, slave = os.openpty()
    async with AsyncExitStack() as stack:
        stack.callback(os.close, master)
        stack.callback(os.close, slave)

        async def answer(_, writer):
            with suppress(ConnectionError):
                writer.write(b"ESCAPED")
                await writer.drain()
            writer.close()

        for path in (str(socket), f"\0{abstract}"):
            server = await asyncio.start_unix_server(answer, path)
            stack.callback(server.close)
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        stack.callback(server.close)
        tcp = server.sockets[0].getsockname()[1]
        server = await asyncio.start_server(answer, "::1", tcp)
        stack.callback(server.close)
        udp, _ = await asyncio.get_running_loop().create_datagram_endpoint(Answers, ("127.0.0.1", 0))
        stack.callback(udp.close)
        secret = {"SECRET": KEY, "PATH": os.environ["PATH"]}
        victim = await asyncio.create_subprocess_exec("sleep", "1000", cwd=person.home, env=secret)
        stack.push_async_callback(victim.wait)
        stack.callback(victim.kill)
        yield (
            {
                "WORK": str(person.work),
                "SOCKET": str(socket),
                "ABSTRACT": abstract,
                "TCP": str(tcp),
                "UDP": str(udp.get_extra_info("sockname")[1]),
                "VICTIM": str(victim.pid),
                "TERMINAL": os.ttyname(slave),
                "PYTHON": sys.executable,
            },
            master,
        )


class Answers(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        assert data
        self.transport.sendto(b"ESCAPED", addr)


async def escapes(person, escape, jail=None):
    """Whether the command has left a trace of success."""
    async with world(person) as (variables, master):
        person.extra = variables
        output, _ = await person.run(jail, escape.command)
        os.set_blocking(master, False)
        with suppress(BlockingIOError):
            output += os.read(master, 100).decode()
    return "ESCAPED" in output or KEY in output or is_marked(person.home)


def is_marked(home):
    bashrc = home / ".bashrc"
    return not bashrc.exists() or bashrc.read_text() != "before" or os.path.lexists(home / "planted")


@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.name)
async def test_without_a_jail_it_succeeds(person, escape):
    if escape.as_root and os.geteuid() != 0:
        pytest.skip("this user is not root")
    assert await escapes(person, escape)


@pytest.mark.parametrize("mechanism", list(Mechanism))
@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.name)
async def test_in_a_jail_it_fails_if_the_table_says_so(person, escape, mechanism):
    jail = person.jail(mechanism)
    try:
        assert await escapes(person, escape, jail) == (mechanism not in escape.stopped_by)
    finally:
        jail.close()
