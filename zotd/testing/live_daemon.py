"""The real daemon for tests, with a home of its own: in a process of its own, or in the test's event loop.

with DaemonProcess(folder) as daemon: ...           a process: kill it, start it again
async with serving(folder) as place: ...            in this loop: fast, and its vendor SDKs are loaded once
"""

import asyncio
import errno
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import zotd
from zotd import paths
from zotd.app import Daemon, prepare
from zotd.client.lock_owner import lock_owner_of
from zotd.template.client import SWITCH
from zotd.testing import warm

ROOT = Path(zotd.__file__).parent.parent

READY_S = 40.0
"""Longest wait for a daemon's start; it takes 0.4 s."""

STOP_S = 20.0
"""Longest wait for its end; it gives its runs 5 s."""

COVERAGE = "COVERAGE_"
"""Variables that make coverage measure child processes."""


@dataclass(frozen=True)
class DaemonPaths:
    """Where a daemon lives."""

    folder: Path
    env: Mapping[str, str]

    @property
    def home(self) -> Path:
        """`$ZOT_HOME`."""
        return Path(self.env["ZOT_HOME"])

    @property
    def socket(self) -> str:
        """Its socket."""
        return paths.socket_path(self.env)

    @property
    def cwd(self) -> Path:
        """An empty directory to work in."""
        return self.folder / "work"


def place(folder: Path, extra: Mapping[str, str] | None = None) -> DaemonPaths:
    """A home in `folder`, and an environment that leads there and knows nothing of the user's own."""
    user = folder / "user"
    for path in (user, folder / "work"):
        path.mkdir(exist_ok=True)
    passed = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith(COVERAGE)}
    ours = {"HOME": str(user), "ZOT_HOME": str(folder / "zot"), "PYTHONPATH": str(ROOT)}
    ours[SWITCH] = "off"  # a template process would outlive the test; `zotd.testing.warm` has one for all of them
    # A signal stops it at once, unless a test is about draining: most of those that send one mean to cut a run.
    # A script that has come to its end answers 500: a test that gets there ends after half a minute, and not after hours.
    bounds = {"ZOT_LIMITS_DRAIN_S": "0", "ZOT_LIMITS_RETRY_PATIENCE_S": "30"}
    # Most tests let the model run commands that no jail has to allow; those about modes name one.
    modes = {"ZOT_APPROVAL_MODE": "yolo"}
    # The keyring would be that of the person who runs the tests.
    env = {**passed, **ours, **bounds, **modes, "ZOT_KEYRING": "false", **(extra or {})}
    return DaemonPaths(folder, env)


FIRST_PORT, END_PORT = 20_000, 32_768
"""Ports that Linux does not choose itself for a server or a connection, which another process could get at any time."""


def free_port() -> int:
    """A port of loopback for a server that has to be at the same place after a restart."""
    for _ in range(END_PORT - FIRST_PORT):
        port = FIRST_PORT + secrets.randbelow(END_PORT - FIRST_PORT)
        with socket.socket() as taken, suppress(OSError):
            taken.bind(("127.0.0.1", port))
            return port
    raise OSError(errno.EADDRINUSE, "no free port of loopback was found")


def leave_mark(home: Path) -> None:
    """Leave the mark that the warning about the mode `yolo`, which clients show once, has been shown."""
    seen = home / "seen"
    with suppress(OSError):  # a test may be about a home that cannot be made
        for path in (home, seen):
            path.mkdir(mode=0o700, exist_ok=True)
        (seen / "yolo").touch()


@asynccontextmanager
async def serving(
    folder: Path, extra: Mapping[str, str] | None = None, *, clock: Callable[[], float] = time.time
) -> AsyncIterator[DaemonPaths]:
    """A daemon in this event loop, until the end of the block; a second one in the same folder finds its sessions.

    `clock` dates its requests to models, in seconds since the epoch.
    """
    where = place(folder, extra)
    daemon = Daemon(prepare(where.env, autostarted=False, flags={}), clock=clock)
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(daemon.run(ready), name="daemon")
        await ready
        try:
            yield where
        finally:
            daemon.stop()


class DaemonProcess:
    """A daemon that can be killed."""

    def __init__(
        self,
        folder: Path,
        extra: Mapping[str, str] | None = None,
        *,
        wrapper: Sequence[str] = (),
        is_child: bool = False,
        warns: bool = False,
    ) -> None:
        """`extra`: variables besides those of `place`. `wrapper`: a command that runs the one behind it.

        `is_child`: it has to be a child of this process, so it is not forked from the template process.
        `warns`: clients show what they show once for each new home about the mode `yolo`.
        """
        self.place = place(folder, extra)
        self._warns = warns
        self._wrapper = wrapper
        self._is_child = is_child or bool(wrapper)
        self._process: subprocess.Popen[bytes] | None = None
        self.pid = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(signal.SIGKILL)
        _end_successor(self.place.home)

    def start(self) -> None:
        """Start it, and wait until it serves."""
        said = self.try_to_start()
        assert said.startswith("ready "), f"{said}\n{self.stderr}"
        self.pid = int(said.removeprefix("ready "))

    def try_to_start(self) -> str:
        """Start it; what it tells the one who started it, `ready PID` or `error SENTENCE`; empty when nothing."""
        self.pid = 0
        if not self._warns and not self.place.home.exists():  # one that a test has made is left as it is
            leave_mark(self.place.home)
        read, write = os.pipe()
        arguments = ["--ready-fd", str(write)]
        command = warm.command("zotd", *arguments)
        if self._is_child:
            command = [*self._wrapper, sys.executable, "-m", "zotd", *arguments]
        with (self.place.folder / "stderr").open("ab") as stderr:
            self._process = subprocess.Popen(  # noqa: S603  (our own program)
                command, env=self.place.env, stdin=subprocess.DEVNULL, stderr=stderr, pass_fds=[write], cwd="/"
            )
        os.close(write)
        try:
            readable, _, _ = select.select([read], [], [], READY_S)
            said = os.read(read, 4096).decode().strip() if readable else ""
        finally:
            os.close(read)
        if said.startswith("ready ") and not self._wrapper:
            # A signal to `child` would end the client of the template process first, and the daemon a little later.
            self.pid = int(said.removeprefix("ready "))
        return said

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, SIGTERM by default, and wait for the end; the exit code. Harmless when it has ended."""
        assert self._process is not None
        if self._process.poll() is None:
            with suppress(ProcessLookupError):  # a daemon of the template process ends before its client does
                os.kill(self.pid or self._process.pid, number)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end; the exit code."""
        assert self._process is not None
        return self._process.wait(STOP_S)

    @property
    def child(self) -> int:
        """The pid of this process's child: of the daemon, or of the client of the template process."""
        assert self._process is not None
        return self._process.pid

    @property
    def stderr(self) -> str:
        """What all daemons of this place have said there."""
        return (self.place.folder / "stderr").read_text(encoding="utf-8")

    @property
    def log(self) -> str:
        """The daemon's log."""
        return (self.place.home / "logs" / "zotd.log").read_text(encoding="utf-8")


def _end_successor(home: Path) -> None:
    """Kill the daemon that a client has started in place of the killed one, and wait for its end; often there is none."""
    pid = lock_owner_of(str(home / "zotd.lock"))
    if pid is None:
        return
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:  # it has just ended
        return
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
        assert select.select([process], [], [], STOP_S)[0], f"zotd (pid {pid}) does not end"
    finally:
        os.close(process)
