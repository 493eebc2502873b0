"""Each escape of the table succeeds without a jail, and exactly those fail in one that it claims to stop."""

import asyncio
import ctypes
import os
import secrets
import sys
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path

import pytest

from tests.jail.conftest import KEY, WAYS, repository
from tests.jail.escapes import ESCAPES, via
from tests.jail.web import ALLOWED, web
from tests.needs import needs
from zotd import paths
from zotd.jail import MECHANISMS, Mechanism, Network
from zotd.jail.repository import set_aside_pointers
from zotd.proxy import AllowList, parse_rule
from zotd.proxy.namespaces import NamespaceStock
from zotd.testing.live_daemon import ROOT

ABSTRACT = "zot-test-{}"

LIBC = ctypes.CDLL(None)


@asynccontextmanager
async def world(person):
    """The variables of `tests.jail.escapes`, and the terminal's other end."""
    repository(person.work)
    repository(person.root / "opened")
    (person.root / "replaced").symlink_to(person.home)
    socket = person.root / "runtime" / "bus"
    abstract = ABSTRACT.format(os.urandom(8).hex())
    master, slave = os.openpty()
    async with AsyncExitStack() as stack:
        stack.callback(os.close, master)
        stack.callback(os.close, slave)
        zotd = Path(paths.socket_path(person.env))
        zotd.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        docker = f"/run/{abstract}.sock"
        listening = [str(socket), f"\0{abstract}", str(zotd)]
        if os.geteuid() == 0:
            stack.callback(os.unlink, docker)
            listening.append(docker)
        for path in listening:
            server = await asyncio.start_unix_server(answer, path)
            stack.callback(server.close)
        tcp = await on_both_loopbacks(stack, lambda host, port: asyncio.start_server(answer, host, port))
        udp = await on_both_loopbacks(stack, datagrams)
        queue, key = message_queue()
        stack.callback(LIBC.msgctl, queue, 0, None)  # IPC_RMID
        http, tls = await stack.enter_async_context(web())
        proxy = await stack.enter_async_context(person.proxy())
        another = proxy.outlet("another jail", AllowList([parse_rule("*:*")]))
        ahead = await namespace(stack)
        yield (
            {
                "WORK": str(person.work),
                "OPENED": str(person.root / "opened"),
                "REPLACED": str(person.root / "replaced"),
                "SOCKET": str(socket),
                "ABSTRACT": abstract,
                "TCP": str(tcp),
                "UDP": str(udp),
                "ZOTD": str(zotd),
                "DOCKER": docker,
                "QUEUE": str(key),
                "WEB": str(http),
                "TLS": str(tls),
                "OUTLET": another.admit(),
                "ENTRANCE": " ".join(ahead.entry),
                "PROXY": str(os.getpid()),
                "LISTENER": str(ahead.listener.fileno()),
                "NAMESPACE": ahead.entry[-2].rpartition("/")[2],
                "VICTIM": str(await victim(stack, person)),
                "TERMINAL": os.ttyname(slave),
                "PYTHON": sys.executable,
            },
            master,
            person.by_way(
                proxy.outlet("this jail", AllowList([parse_rule(f"{ALLOWED}:{http}"), parse_rule(f"{ALLOWED}:{tls}")]))
            ),
        )


async def answer(_, writer):
    """Serve a connection that no command may have."""
    with suppress(ConnectionError):
        writer.write(b"ESCAPED")
        await writer.drain()
    writer.close()


async def namespace(stack):
    """A network namespace that was made ahead."""
    needs("nsenter")
    stock = stack.enter_context(closing(NamespaceStock(1)))
    await stock.fill()
    return stack.enter_context(closing(stock.take()))


async def on_both_loopbacks(stack, start):
    """Start a server at one port of 127.0.0.1 and ::1; return the port."""
    while True:
        first = await start("127.0.0.1", 0)
        port = first.sockets[0].getsockname()[1]
        try:
            second = await start("::1", port)
        except OSError:  # another program has this port there
            first.close()
            continue
        stack.callback(first.close)
        stack.callback(second.close)
        return port


class Datagrams:
    """A transport with the attributes of a server that are used here."""

    def __init__(self, transport):
        self.sockets = [transport.get_extra_info("socket")]
        self.close = transport.close


async def datagrams(host, port):
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Answers, (host, port))
    return Datagrams(transport)


async def victim(stack, person):
    """Start another program of the user, which has a secret and an open file; return its pid."""
    secret = {"SECRET": KEY, "PATH": os.environ["PATH"]}
    opened = stack.enter_context((person.home / ".bashrc").open("r+b"))
    process = await asyncio.create_subprocess_exec("sleep", "1000", cwd=person.home, env=secret, stdin=opened)
    stack.push_async_callback(process.wait)
    stack.callback(process.kill)
    return process.pid


def message_queue():
    """A new queue of this user: its id and its key."""
    while True:
        key = secrets.randbelow(2**30) + 1
        if (found := LIBC.msgget(key, 0o3600)) >= 0:  # IPC_CREAT | IPC_EXCL
            return found, key


class Answers(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        assert data
        self.transport.sendto(b"ESCAPED", addr)


async def escapes(person, escape, mechanism=None, *, is_proxied=False):
    """Whether the command has left a trace of success."""
    async with world(person) as (variables, master, outlet):
        person.extra = variables
        network = Network.PROXIED if is_proxied else Network.OFF
        granted = [variables["OPENED"], variables["REPLACED"]]
        jail = person.jail(mechanism, network=network, granted=granted) if mechanism else None
        output, _ = await person.run(jail, escape.command, outlet if is_proxied else None)
        if jail:
            set_aside_pointers(jail.policy)
            jail.close()
        os.set_blocking(master, False)
        with suppress(BlockingIOError):
            output += os.read(master, 100).decode()
    return "ESCAPED" in output or KEY in output or is_marked(person)


def is_marked(person):
    bashrc = person.home / ".bashrc"
    left = [person.home / "planted", person.work / ".git/commondir", person.root / "opened/.git/commondir"]
    return not bashrc.exists() or bashrc.read_text() != "before" or any(map(os.path.lexists, left))


@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.name)
async def test_without_a_jail_it_succeeds(person, escape):
    if escape.as_root and os.geteuid() != 0:
        pytest.skip("this user is not root")
    assert await escapes(person, escape)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.name)
async def test_in_a_jail_it_fails_if_the_table_says_so(person, escape, mechanism):
    assert await escapes(person, escape, mechanism) == (mechanism not in escape.stopped_by)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.name)
async def test_with_a_proxy_bubblewrap_stops_the_same(person, escape, way):
    person.way = way
    stopped = Mechanism.BUBBLEWRAP in escape.stopped_by
    assert await escapes(person, escape, Mechanism.BUBBLEWRAP, is_proxied=True) == (not stopped)


@pytest.mark.parametrize("way", WAYS)
async def test_with_a_proxy_the_allowed_host_is_reached(person, way):
    person.way = way
    async with world(person) as (variables, _, outlet):
        person.extra = variables
        jail = person.jail(Mechanism.BUBBLEWRAP, network=Network.PROXIED)
        for command in (via(ALLOWED), via(ALLOWED, "$TLS", "other.example") + "; echo", via(ALLOWED, "$TLS", ALLOWED)):
            said, _ = await person.run(jail, command, outlet)
            assert ("allowed" in said) == ("other" not in command)


def test_the_page_says_how_many_there_are_and_how_many_are_stopped():
    page = " ".join((ROOT / "docs" / "security.md").read_text().split())
    bubblewrap, landlock = (sum(one in escape.stopped_by for escape in ESCAPES) for one in MECHANISMS)
    assert f"[{len(ESCAPES)} ways out that were tried]" in page
    assert f"bubblewrap stops {bubblewrap} of them, also with the proxy, and Landlock {landlock}." in page
