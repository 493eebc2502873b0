"""Real command lines against a fake daemon, and against the real one."""

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

import zotd
from tests.zotctl.live import Live
from zotd.testing import warm
from zotd.testing.fake_daemon import running
from zotd.testing.live_daemon import DaemonProcess

ROOT = str(Path(zotd.__file__).parent.parent)


class Shell:
    """Runs commands in an environment of its own."""

    def __init__(self, home):
        self.home = home
        self.cwd = home / "work"
        self.cwd.mkdir()
        self.path = str(home / "zotd.sock")
        self.env = {
            "ZOTD_SOCKET": self.path,
            "ZOT_HOME": str(home / "zot"),
            "PYTHONPATH": ROOT,
            "PATH": os.environ["PATH"],
        }

    def start(self, module, *args, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        command = warm.command(module, *args)
        return subprocess.Popen(command, cwd=self.cwd, env=self.env, text=True, **options)

    def run(self, module, *args, piped=None):
        stdin = subprocess.DEVNULL if piped is None else subprocess.PIPE
        with self.start(module, *args, stdin=stdin) as process:
            out, err = process.communicate(piped, timeout=40)
        return process.returncode, out, err

    def zot(self, *args, **options):
        return self.run("zotd.cli", *args, **options)

    def zotctl(self, *args, **options):
        return self.run("zotctl", *args, **options)


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path)


@pytest.fixture
def daemon(shell):
    with running(shell.path) as fake:
        yield fake


@pytest.fixture
def live(shell):
    """The real daemon."""
    with ExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(shell.home))
        stack.callback(stop_successor, shell, daemon)
        stack.callback(daemon.end)
        yield Live(shell, daemon, stack)


def stop_successor(shell, daemon):
    """Stop the daemon that a command has started after the test's own had ended: it would outlive all tests."""
    if Path(daemon.place.socket).exists():
        shell.zotctl("stop")
