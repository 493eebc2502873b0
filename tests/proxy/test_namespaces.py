"""Network namespaces that are made ahead of need: what a stock has, and what becomes of it when something fails."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import needs
from zotd.proxy import AllowList, namespaces
from zotd.proxy.accepting import readable
from zotd.proxy.namespaces import NamespaceStock, maker_words
from zotd.proxy.server import running_proxy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has network namespaces")

MAKER = maker_words()


@pytest.fixture(autouse=True)
def programs():
    needs("bwrap", "nsenter")


@pytest.fixture
def stock_of(caplog):
    caplog.set_level(logging.INFO, "zotd.proxy.namespaces")
    before = opened()
    stocks = []

    def make(*arguments):
        stocks.append(NamespaceStock(*arguments))
        return stocks[-1]

    yield make
    for stock in stocks:
        stock.close()
    assert opened() == before


def opened():
    """How many descriptors this process has."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def has_children():
    """Whether this process has children, also ones that have ended."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


async def run(*command):
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said, _ = await process.communicate()
    return said.decode()


async def test_each_has_a_loopback_on_which_nothing_but_its_listener_listens(stock_of):
    stock = stock_of(2)
    await stock.fill()
    one, another = stock.take(), stock.take()
    assert one.listener.getsockname() == another.listener.getsockname() == ("127.0.0.1", 3128)
    assert (await run(*one.entry, "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/3128")) == ""
    assert "refused" in await run(*one.entry, "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/3129")
    one.listener.accept()[0].close()
    with pytest.raises(BlockingIOError):
        another.listener.accept()
    one.close()
    another.close()


async def test_one_that_is_taken_is_not_given_again_and_an_empty_stock_has_none(stock_of):
    stock = stock_of(3)
    await stock.fill()
    taken = [stock.take() for _ in range(3)]
    assert len({(await run(*one.entry, "readlink", "/proc/self/ns/net")) for one in taken}) == 3
    assert (stock.take(), stock.count) == (None, 0)
    for one in taken:
        one.close()


async def test_it_is_filled_up_when_a_quarter_is_left(stock_of):
    stock = stock_of(4)
    assert stock.is_low
    await stock.fill()
    lows = []
    while one := stock.take():
        one.close()
        lows.append(stock.is_low)
    assert lows == [False, False, True, True]
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(stock.fill())
    assert (stock.count, stock.is_low) == (4, False)


async def test_a_stock_of_no_size_needs_nothing(stock_of):
    assert not stock_of(0).is_low


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("kill -KILL $$", "what makes them failed with code -9"),
        ("exit 3", "what makes them failed with code 3"),
        ("kill -STOP $$", "it takes longer than 0.2 s"),
    ],
)
async def test_a_maker_that_fails_is_logged_and_not_started_again_at_once(stock_of, caplog, script, reason):
    stock = stock_of(4, ["/bin/sh", "-c", script], 0.2)
    await stock.fill()
    assert (stock.take(), stock.is_low) == (None, False)
    assert f"none can be made ahead: {reason}" in caplog.text
    assert not has_children()


async def test_a_user_who_may_make_none_gets_the_reason_of_the_kernel(stock_of, caplog):
    needs("setpriv")
    if os.geteuid() != 0:
        pytest.skip("this user has no rights that could be dropped")
    stock = stock_of(4, ["setpriv", "--bounding-set=-sys_admin", *MAKER])
    await stock.fill()
    assert (stock.count, "unshare: Operation not permitted" in caplog.text) == (0, True)


async def test_without_the_programs_that_enter_none_are_made(stock_of, caplog, monkeypatch, tmp_path):
    monkeypatch.setattr(namespaces, "SYSTEM_PATH", str(tmp_path))
    stock = stock_of(4)
    await stock.fill()
    assert (stock.count, f"nsenter is in none of {tmp_path}" in caplog.text) == (0, True)


async def test_where_no_jail_works_in_them_none_are_used(stock_of, caplog, monkeypatch, tmp_path):
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setattr(namespaces, "SYSTEM_PATH", f"{tmp_path}:{namespaces.SYSTEM_PATH}")
    stock = stock_of(4)
    await stock.fill()
    assert (stock.count, "a jail in one of them failed with code 1" in caplog.text) == (0, True)


async def test_a_proxy_that_ends_while_it_makes_some_leaves_nothing(stock_of, tmp_path):
    stock = stock_of(4, ["/bin/sh", "-c", "kill -STOP $$"])
    async with running_proxy(str(tmp_path / "outlets"), lambda _: None, namespaces=stock) as proxy:
        assert proxy.outlet("tests", AllowList([])).entrance() is None  # the first wish fills the stock
    assert not has_children()


async def test_an_entrance_that_is_not_used_is_closed_once(stock_of, tmp_path):
    stock = stock_of(2)
    async with running_proxy(str(tmp_path / "outlets"), lambda _: None, namespaces=stock) as proxy:
        assert await proxy.prepare() == 2
        entrance = proxy.outlet("tests", AllowList([])).entrance()
        assert entrance is not None
        entrance.close()
        entrance.close()
        assert stock.count == 1


async def test_a_command_that_cannot_be_watched_is_logged(stock_of, tmp_path, caplog):
    ended = await asyncio.create_subprocess_exec("true")
    await ended.wait()
    stock = stock_of(2)
    async with running_proxy(str(tmp_path / "outlets"), lambda _: None, namespaces=stock) as proxy:
        await proxy.prepare()
        entrance = proxy.outlet("tests", AllowList([])).entrance()
        assert entrance is not None
        entrance.entered(ended.pid)
    assert "a command of tests fails or has no network, because it cannot be watched: " in caplog.text


async def test_the_stock_is_filled_after_a_command(stock_of, tmp_path):
    os.mkfifo(tmp_path / "told")
    told = os.open(tmp_path / "told", os.O_RDWR | os.O_NONBLOCK)
    stock = stock_of(1, ["/bin/sh", "-c", f'echo > {tmp_path}/told; exec "$@"', "sh", *MAKER])
    async with running_proxy(str(tmp_path / "outlets"), lambda _: None, namespaces=stock) as proxy:
        assert await proxy.prepare() == 1
        assert os.read(told, 10) == b"\n"
        entrance = proxy.outlet("tests", AllowList([])).entrance()
        assert entrance is not None
        command = await asyncio.create_subprocess_exec(*entrance.words, "cat", stdin=subprocess.PIPE)
        entrance.entered(command.pid)
        with pytest.raises(BlockingIOError):
            os.read(told, 10)
        await command.communicate(b"")
        async with asyncio.timeout(60):
            await readable(told)
    os.close(told)


PARENT = """
import signal, subprocess, sys
print(subprocess.Popen([*sys.argv[1:], "1000"], stdin=0).pid, flush=True)
signal.pause()
"""


async def test_a_maker_ends_with_its_daemon_also_while_it_is_stopped():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [sys.executable, "-c", PARENT, *MAKER]
    daemon = await asyncio.create_subprocess_exec(*words, stdin=theirs.fileno(), stdout=subprocess.PIPE)
    theirs.close()
    with ours:
        assert daemon.stdout is not None
        maker = int(await daemon.stdout.readline())
        pidfd = os.pidfd_open(maker)
        async with asyncio.timeout(60):
            await readable(ours.fileno())  # it works, and will wait when the buffer of the socket is full
            os.kill(maker, signal.SIGSTOP)
            daemon.kill()
            await daemon.wait()
            await readable(pidfd)
        os.close(pidfd)
