"""Accepting connections, also without free descriptors, and after the socket was removed."""

import asyncio
import errno
import os
import shutil
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
import pytest

from zotd.api.door import Door
from zotd.api.unix import RunningError, Socket, SocketError
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.wire_client import WireClient


@pytest.fixture
async def daemon(tmp_path):
    with DaemonProcess(tmp_path) as process:
        yield process


@pytest.fixture
async def connect(daemon):
    """`await connect()`: another client."""
    async with AsyncExitStack() as stack:

        async def connect():
            return await stack.enter_async_context(WireClient.connect(daemon.place.socket))

        yield connect


class Shortage:
    """A daemon that cannot open any further file."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.process = psutil.Process(daemon.pid)
        self.before = self.process.rlimit(psutil.RLIMIT_NOFILE)
        held = {int(entry.name) for entry in Path(f"/proc/{daemon.pid}/fd").iterdir()}
        lowest_free = min(set(range(len(held) + 1)) - held)
        self.process.rlimit(psutil.RLIMIT_NOFILE, (lowest_free, self.before[1]))

    async def seen(self, client):
        """Wait until the daemon has noticed the shortage."""
        while "cannot accept connections" not in self.daemon.log:
            await client.ask("ping")

    def end(self):
        self.process.rlimit(psutil.RLIMIT_NOFILE, self.before)


async def test_without_free_descriptors_new_clients_wait_and_others_are_served(daemon, connect):
    inside = await connect()
    await inside.ask("ping")
    shortage = Shortage(daemon)
    outside = [await connect() for _ in range(5)]
    asked = [client.send("daemon.status") for client in outside]
    await shortage.seen(inside)
    assert (await inside.ask("daemon.status"))["clients"] == 1
    shortage.end()
    for client, request in zip(outside, asked, strict=True):
        assert (await client.answer_to(request))["data"]["pid"] == daemon.pid
    assert daemon.log.count("cannot accept connections") == 1
    assert "Traceback" not in daemon.log + daemon.stderr


async def test_a_client_that_disconnects_makes_room_for_a_waiting_one(daemon, connect):
    leaving, staying = await connect(), await connect()
    for client in (leaving, staying):
        await client.ask("ping")
    shortage = Shortage(daemon)
    waiting = await connect()
    await shortage.seen(staying)
    leaving.cut()
    assert await waiting.ask("ping") == {"pong": True}
    shortage.end()


# --- a socket that was removed ---


@pytest.fixture
def place(tmp_path):
    made = Socket(tmp_path / "zotd.sock")
    yield made
    made.close()


def knock(path):
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))
    return client


def test_an_existing_socket_is_not_replaced(place):
    assert place.restore() is None


@pytest.mark.parametrize("names", [["zotd.sock"], ["zotd.sock.lock"], ["zotd.sock", "zotd.sock.lock"]])
def test_a_removed_socket_is_created_again_under_the_lock(place, tmp_path, names):
    for name in names:
        (tmp_path / name).unlink()
    old = place.restore()
    assert (old is None) == ("zotd.sock" not in names)
    if old is not None:
        old.close()
        knock(tmp_path / "zotd.sock").close()
        assert (tmp_path / "zotd.sock").stat().st_mode & 0o777 == 0o600
        with pytest.raises(RunningError, match=f"pid {os.getpid()}"):
            Socket(tmp_path / "zotd.sock")
    assert place.restore() is None


def test_the_socket_of_another_daemon_is_not_replaced(place, tmp_path):
    for name in ("zotd.sock", "zotd.sock.lock"):
        (tmp_path / name).unlink()
    other = Socket(tmp_path / "zotd.sock")
    before = (tmp_path / "zotd.sock").stat()
    with pytest.raises(RunningError):
        place.restore()
    assert (tmp_path / "zotd.sock").stat() == before
    other.close()


def test_a_file_at_the_path_of_a_removed_socket_is_not_touched(place, tmp_path):
    (tmp_path / "zotd.sock").unlink()
    (tmp_path / "zotd.sock").write_text("mine")
    with pytest.raises(SocketError, match="is not a socket"):
        place.restore()
    assert (tmp_path / "zotd.sock").read_text() == "mine"


@pytest.fixture
def run(tmp_path):
    """A directory for sockets."""
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def lost(run):
    """A socket whose directory was removed."""
    made = Socket(run / "zotd.sock")
    shutil.rmtree(run)
    yield made
    made.close()


def test_a_removed_directory_is_created_again_with_the_socket(lost, run):
    old = lost.restore()
    assert old is not None
    old.close()
    knock(run / "zotd.sock").close()
    assert run.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_cannot_be_created_again_is_reported_in_one_sentence(lost, run):
    run.write_text("mine")
    with pytest.raises(SocketError, match=r"was removed and cannot be created again: .* is not a directory"):
        lost.restore()


async def test_moving_the_door_accepts_clients_of_both_sockets(place, tmp_path):
    entered: asyncio.Queue[socket.socket] = asyncio.Queue()
    door = Door(place.listener, entered.put_nowait)
    clients = [knock(tmp_path / "zotd.sock")]
    (tmp_path / "zotd.sock").unlink()
    old = place.restore()
    door.move(place.listener)
    old.close()
    clients.append(knock(tmp_path / "zotd.sock"))
    for client in clients:
        client.send(b"x")
        peer = await entered.get()
        assert peer.recv(1) == b"x"
        peer.close()
        client.close()
    door.close()


class Scarce(socket.socket):
    """A listener of a process that can open no further file until the test permits it."""

    may_open = False
    tries = 0

    def accept(self):
        self.tries += 1
        if not self.may_open:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


@pytest.fixture
def scarce(tmp_path):
    with Scarce(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(str(tmp_path / "scarce.sock"))
        listener.listen()
        listener.setblocking(False)
        client.connect(str(tmp_path / "scarce.sock"))
        yield listener


@pytest.mark.looptime
async def test_a_shortage_is_logged_once_and_retried_once_a_second(scarce, caplog):
    entered: asyncio.Queue[socket.socket] = asyncio.Queue()
    door = Door(scarce, entered.put_nowait)
    await asyncio.sleep(10.5)
    assert scarce.tries == 11
    assert caplog.text.count("cannot accept connections") == 1
    scarce.may_open = True
    (await entered.get()).close()
    door.close()


@pytest.mark.looptime
async def test_a_waiting_client_is_accepted_as_soon_as_another_disconnects(scarce, looptime):
    entered: asyncio.Queue[socket.socket] = asyncio.Queue()
    door = Door(scarce, entered.put_nowait)
    await asyncio.sleep(0.25)
    scarce.may_open = True
    door.freed()
    (await entered.get()).close()
    assert looptime == 0.25
    door.close()
