"""Reports to a service manager, and to one that does not listen."""

import asyncio
import os
import socket

import pytest

from zotd.process.supervisor import VARIABLES, Supervisor, unsupervised


@pytest.fixture
def wire(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "notify"))
        made.setblocking(False)
        yield made


async def fed(wire, **env):
    """Return whether the watchdog is fed at once."""
    supervisor = Supervisor.found({"NOTIFY_SOCKET": wire.getsockname(), **env})
    async with asyncio.TaskGroup() as tasks:
        feeding = tasks.create_task(supervisor.feed())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        is_done = feeding.done()
        feeding.cancel()
    return not is_done and wire.recv(100) == b"WATCHDOG=1"


@pytest.mark.parametrize(
    ("pid", "every_us", "is_fed"),
    [
        ("", "30000000", True),
        (str(os.getpid()), "30000000", True),
        ("1", "30000000", False),
        ("", "", False),
        ("", "0", False),
    ],
    ids=["any process", "us", "another process", "not at all", "never"],
)
async def test_only_the_watched_process_feeds_the_watchdog(wire, pid, every_us, is_fed):
    assert await fed(wire, WATCHDOG_USEC=every_us, WATCHDOG_PID=pid) == is_fed


def test_an_unchanged_status_is_not_sent_again(wire):
    supervisor = Supervisor.found({"NOTIFY_SOCKET": wire.getsockname()})
    for text in ("one", "one", "two"):
        supervisor.status(text)
    assert [wire.recv(100), wire.recv(100)] == [b"STATUS=one", b"STATUS=two"]
    with pytest.raises(BlockingIOError):
        wire.recv(100)


def test_a_stop_reports_its_duration(wire):
    Supervisor.found({"NOTIFY_SOCKET": wire.getsockname()}).stopping(75.0)
    assert wire.recv(100) == b"STOPPING=1\nEXTEND_TIMEOUT_USEC=75000000"


@pytest.mark.parametrize("env", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nowhere/notify"}])
def test_reports_are_dropped_without_a_service_manager(env):
    supervisor = Supervisor.found(env)
    supervisor.ready()
    supervisor.status("serves")
    supervisor.reloading()


def test_children_get_no_variables_of_the_service_manager():
    env = dict.fromkeys([*VARIABLES, "PATH", "SYSTEMD_EXEC_PID"], "1")
    assert set(unsupervised(env)) == {"PATH", "SYSTEMD_EXEC_PID"}
