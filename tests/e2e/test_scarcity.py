"""A process with few descriptors, a disk without inodes: those who are inside go on, and the daemon starts again."""

import asyncio
import contextlib
import itertools
import signal
import socket
import subprocess
import sys
from contextlib import AsyncExitStack, ExitStack

import psutil
import pytest

from tests.e2e.conftest import House
from tests.needs import ABSENT
from zotd.client.blocking import connect
from zotd.process.descriptors import RESERVE
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import CallPart, calls, text

SOFT, HARD = 120, 4 * RESERVE
LIMITED = ["sh", "-c", f'ulimit -Sn {SOFT}; ulimit -Hn {HARD}; exec "$@"', "sh"]


@pytest.fixture
async def limited(tmp_path):
    """A daemon that may open few files."""
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path, wrapper=LIMITED))
        yield House(stack, daemon.place, daemon)


async def test_the_daemon_has_the_hard_limit_and_its_commands_have_the_soft_one(limited, model, results):
    # It gets the limit back in the moment after its start.
    command = f'until [ "$(ulimit -Sn)" = {SOFT} ]; do :; done; ulimit -Sn'
    server = await model(calls(CallPart("bash", {"command": command, "timeout": 20})), text("done"))
    await (await limited.create("openai", server)).run()
    assert psutil.Process(limited.daemon.pid).rlimit(psutil.RLIMIT_NOFILE) == (HARD, HARD)
    assert str(SOFT) in results(server.requests[1])[0].split()


async def test_those_who_are_inside_go_on_when_others_are_refused_for_want_of_descriptors(limited, model, results):
    server = await model(calls(CallPart("bash", {"command": "echo still"})), text("done"))
    talk = await limited.create("openai", server)
    with ExitStack() as others:
        refused = False
        while not refused:
            one = others.enter_context(socket.socket(socket.AF_UNIX))
            one.settimeout(20)
            one.connect(str(limited.place.socket))
            try:
                one.sendall(b'{"id":"1","type":"ping"}\n')
                refused = one.recv(4096) == b""
            except (BrokenPipeError, ConnectionResetError):
                refused = True
        await talk.run()
        assert "still" in results(server.requests[1])[0]
        assert psutil.Process(limited.daemon.pid).num_fds() <= HARD - RESERVE + 8
        assert (await talk.ask("auth.list"))["providers"]
    assert "too few descriptors are left" in limited.daemon.log
    async with asyncio.timeout(60):  # the daemon hears one after another that the others have left
        while not await is_let_in(limited):
            pass


async def is_let_in(limited):
    try:
        return await (await limited.connect()).ask("ping") is not None
    except (ConnectionError, EOFError):
        return False


@pytest.fixture
def without_inodes(tmp_path):
    """A directory on a file system of its own, and what uses up its inodes."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=80", "tmpfs", place], check=False)
    if mounted.returncode != 0:
        pytest.skip(f"{ABSENT}right to mount a file system")

    def use_up():
        with contextlib.suppress(OSError):
            for number in itertools.count():
                (place / str(number)).touch()

    yield place, use_up
    subprocess.run(["umount", "--lazy", place], check=True)


def test_a_daemon_that_was_killed_starts_again_when_no_inode_is_left(without_inodes):
    place, use_up = without_inodes
    with DaemonProcess(place) as daemon:
        use_up()
        daemon.end(signal.SIGKILL)
        daemon.start()
        with connect(daemon.place.socket) as connection:
            assert connection.call("daemon.status")["state"] == "running"
        doctor = subprocess.run(
            [sys.executable, "-m", "zotctl", "doctor"],
            env=daemon.place.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert f"df -i {daemon.place.home}" in doctor.stdout
