"""Runs the project's programs in tests without importing them each time, by one template process for all of a test run.

The programs are real: a process, a command line, an environment, descriptors. Only their imports have been done before.
"""

import atexit
import ctypes
import fcntl
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TextIO, TypeVar

import psutil

from zotd.inotify import MOVED_TO, Inotify
from zotd.process.subreaper import PR_SET_CHILD_SUBREAPER
from zotd.template import server, thin

PROGRAMS = (
    "zotd.__main__",
    "zotd.cli",
    "zotd.embed.rpc",
    "zotctl.__main__",
    "zotd.testing.model_server",
    "zotd.bridges.mcp.bridge",
    "mcp.server",
    "anthropic",
    "openai",
)

LAZY = ("zotctl", "zotd.providers", "zottui")
"""Packages whose modules are imported when they are needed; here all of them are."""

PR_GET_CHILD_SUBREAPER = 37
"""`linux/prctl.h`."""

END_S = 20.0
"""Longest wait for the end of a process that was killed."""

SERVE_S = 50.0
"""Longest wait for a template process to serve; it takes 2.5 s, of which it computes most."""

Found = TypeVar("Found")

COVERAGE = "COVERAGE_PROCESS_START"
"""Coverage measures programs that it starts itself, so with it they start cold."""


def command(module: str, *arguments: str | bytes | Path) -> list[str | bytes | Path]:
    """Return the command that runs `python -m MODULE ARGUMENT...`; the module has a `main` that returns the exit code."""
    if COVERAGE in os.environ:
        return [sys.executable, "-m", module, *arguments]
    return [sys.executable, "-I", "-S", thin.__file__, _socket(), module, *arguments]


def is_fork_server(process: psutil.Process) -> bool:
    """Whether a daemon forks its extensions from this process; such a child stays as long as the daemon."""
    try:
        return any("zotd.template.fork_server" in word for word in process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


def serving(folder: Path) -> list[psutil.Process]:
    """The template processes with a socket below `folder`, also those that do not listen yet."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if server.__name__ in words and any(word.startswith(f"{folder}/") for word in words):
                found.append(process)
    return found


def once_served(folder: Path, find: Callable[[], Found | None]) -> Found:
    """Wait until `find` finds something, which is asked again when a template process below `folder` begins to serve.

    The wait takes no processor time, of which the template process needs much. `folder`: as `XDG_RUNTIME_DIR`, in which a
    command was run before. Raises TimeoutError after `SERVE_S`.
    """
    with closing(Inotify()) as arrivals:
        arrivals.add(str(folder / "zot"), MOVED_TO)
        while (found := find()) is None:
            if not select.select([arrivals], [], [], SERVE_S)[0]:
                raise TimeoutError(f"no template process has begun to serve in {folder} within {SERVE_S} s")
            for _ in arrivals.read():
                pass
    return found


def end_serving(folder: Path) -> None:
    """Kill them, and wait for their end."""
    found = serving(folder)
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(found, timeout=END_S)


@cache
def _socket() -> str:
    """The socket of the template process, which ends with the last test process of this run."""
    folder = _folder()
    users = (folder / "users").open("w")
    fcntl.flock(users, fcntl.LOCK_SH)
    alive = folder / "alive"
    with (folder / "starting").open("w") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        with suppress(FileExistsError):
            os.mkfifo(alive)
        # Its standard input: it ends when the last of these processes has closed the other end.
        read = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
        write = os.open(alive, os.O_WRONLY)
        if not (folder / "sock").exists():
            lazy = [word for package in LAZY for word in ("--all-of", package)]
            arguments = [*lazy, str(folder / "sock"), *PROGRAMS]
            # Detached, it is no child of this process, so tests that look for children left behind do not find it.
            with _orphans_not_adopted():
                subprocess.run(  # noqa: S603  (our own program)
                    [sys.executable, "-m", server.__name__, "--detach", *arguments], stdin=read, check=True
                )
        os.close(read)
    atexit.register(_leave, folder, users, write)
    return str(folder / "sock")


@contextmanager
def _orphans_not_adopted() -> Iterator[None]:
    """Let orphans go to init for a moment, also in a test whose daemon runs in this process and adopts them."""
    libc = ctypes.CDLL(None, use_errno=True)
    was_subreaper = ctypes.c_int(0)
    if sys.platform != "linux" or libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(was_subreaper), 0, 0, 0):
        yield
        return
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, was_subreaper.value, 0, 0, 0)


def _folder() -> Path:
    """A private directory: the one of this run where pytest-xdist has spread it over processes."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return Path(tempfile.mkdtemp(prefix="zot-warm-"))
    folder = Path(tempfile.gettempdir(), f"zot-warm-{run}")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _leave(folder: Path, users: TextIO, write: int) -> None:
    """Close this process's end, and remove the directory if no other process uses it."""
    os.close(write)
    with suppress(BlockingIOError):
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    users.close()
