import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

import zotd
from zotd.process import OrphanReaper, start_service
from zotd.process.census import Identity, census, identify, is_alive
from zotd.tasks import contained

ENV = {"PATH": os.environ["PATH"]}

ROOT = Path(zotd.__file__).parent.parent

AWAY = "(setsid sh -c '%s' </dev/null &)"
"""A shell command that runs another command without a parent, in a session of its own."""

STUBBORN = AWAY % 'trap "" TERM; echo $$; exec sleep 1000'
"""Leaves a process that ignores SIGTERM, and prints its pid."""


@pytest.fixture
def lives():
    """Return whether a process is running; all processes asked about are killed at the end of the test."""
    asked = set()

    def ask(pid: int) -> bool:
        identity = identify(pid)
        if identity is None or not is_alive(identity):
            return False
        asked.add(pid)
        return True

    yield ask
    for pid in asked:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def who(pid: int) -> Identity:
    """Return the process that has this pid now."""
    identity = identify(pid)
    assert identity is not None
    return identity


class Told:
    """Callbacks of a service that record the calls, and can wait for them."""

    def __init__(self):
        self.out = b""
        self.err = b""
        self.closes: list[str] = []
        self.stalls: list[str] = []
        self.code: int | None = None
        self.exits = 0
        self._changed = asyncio.Event()

    def output(self, data):
        self.out += data
        self._changed.set()

    def errors(self, data):
        self.err += data
        self._changed.set()

    def closed(self, pipe):
        self.closes.append(pipe)
        self._changed.set()

    def stalled(self, reason):
        self.stalls.append(reason)
        self._changed.set()

    def exited(self, code):
        assert self.code is None
        self.code = code
        self.exits += 1
        self._changed.set()

    async def until(self, holds):
        async with asyncio.timeout(60):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def exit(self) -> int:
        await self.until(lambda: self.code is not None)
        assert self.code is not None
        return self.code

    async def pid(self) -> int:
        """Return the first word of the output."""
        await self.until(lambda: b"\n" in self.out)
        return int(self.out.split()[0])


@pytest.fixture
def told():
    return Told()


@asynccontextmanager
async def opened(home: Path):
    """A `OrphanReaper` that is closed at the end of the test."""
    async with asyncio.TaskGroup() as tasks:

        def run(name, work):
            contained(tasks, name, work)

        reaper = OrphanReaper(home, run)
        try:
            yield reaper
        finally:
            await reaper.close()


async def sweep(home: Path) -> None:
    """Start a reaper for this home, as a host does, and wait until its sweep is done."""
    async with asyncio.timeout(60), opened(home) as reaper:
        reaper.sweep()
        await reaper.swept.wait()


def claimed(reaper: OrphanReaper, command: str, told: Told):
    """Start a shell command as a claimed service."""
    return start_service(["sh", "-c", command], cwd="/", env=ENV, listener=told, claim=reaper.claim("a test"))


class AHost:
    """A host in a process of its own."""

    def __init__(self, home: Path, kind: str, *commands: str, env=ENV):
        program = str(Path(__file__).with_name("a_host.py"))
        self._process = subprocess.Popen(
            [sys.executable, program, str(home), kind, *commands],
            env={**env, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self._said = self._process.stdout

    def words(self, count: int) -> list[str]:
        """Return the output of its children, one word a line."""
        return [self._said.readline().decode().strip() for _ in range(count)]

    def pids(self, count: int) -> list[int]:
        return [int(word) for word in self.words(count)]

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
            self._said.close()


@pytest.fixture
def host(tmp_path):
    """Starts hosts of the home `tmp_path`."""
    hosts = []

    def start(kind: str, *commands: str, home: Path = tmp_path, env=ENV) -> AHost:
        hosts.append(AHost(home, kind, *commands, env=env))
        return hosts[-1]

    yield start
    for one in hosts:
        one.kill()
    left = {entry.name for entry in tmp_path.rglob("children/*/*")}
    for process in census():
        if process.mark in left:
            with suppress(ProcessLookupError):
                os.kill(process.identity.pid, signal.SIGKILL)


def entries(home: Path) -> list[Path]:
    """The files in the ledger of a home."""
    return [path for path in (home / "run" / "children").rglob("*") if path.is_file()]
