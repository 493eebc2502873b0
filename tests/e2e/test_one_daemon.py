"""One home has one daemon, whatever becomes of its socket; and a home that cannot be locked has none."""

import shutil
from contextlib import ExitStack

import pytest

from tests.needs import needs
from zotd.testing.live_daemon import DaemonProcess

RUNNING = 3


@pytest.fixture
def second(tmp_path):
    """`second(...)`: another daemon of this place, which is tried to be started; what it says, and its exit code."""
    with ExitStack() as stack:

        def second(extra=None, wrapper=()):
            daemon = DaemonProcess(tmp_path, extra, wrapper=wrapper)
            said = daemon.try_to_start()
            stack.callback(daemon.end, 9)
            return said, None if said.startswith("ready") else daemon.wait()

        yield second


async def test_a_second_daemon_ends_although_the_directory_of_the_socket_is_gone(process, second):
    shutil.rmtree(process.place.home / "run")
    sentence = f"zotd is already running with pid {process.daemon.pid} in {process.place.home}"
    assert second() == (f"error {sentence}; end it with `zotctl stop`", RUNNING)
    assert process.daemon.end() == 0


async def test_another_socket_is_no_way_to_a_second_daemon(process, second, tmp_path):
    said, code = second({"ZOTD_SOCKET": str(tmp_path / "other" / "zotd.sock")})
    assert (f"already running with pid {process.daemon.pid}" in said, code) == (True, RUNNING)


async def test_a_daemon_that_was_killed_leaves_its_home_to_the_next_one(process):
    process.daemon.end(9)
    process.daemon.start()
    assert (process.place.home / "zotd.lock").read_text() == f"{process.daemon.pid}\n"


def test_a_home_that_cannot_be_locked_is_refused_in_one_sentence(tmp_path, second):
    """SQLite could not lock its file there either, and would say that somebody else has it."""
    needs("strace")
    no_locks = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=flock:error=ENOLCK"]
    sentence = f"{tmp_path / 'zot'} cannot be locked (No locks available): choose a place on a local disk with ZOT_HOME"
    assert second(wrapper=no_locks) == (f"error {sentence}", 1)
