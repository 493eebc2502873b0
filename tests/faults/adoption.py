"""kill -9 of a daemon whose service manager keeps descriptors: do extensions go on as if nothing had happened?"""

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.faults.row import Options, Row
from tests.service.outliving import outlive
from tests.service.user_manager import lacking
from zotd.testing.fd_store import ServiceManager
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.wire_client import WireClient

ROUNDS = 20

COUNTER = Path(__file__).with_name("counter.py")


@dataclass(frozen=True, slots=True)
class Count:
    """An answer of `tests.faults.counter`."""

    pid: int
    number: int


class Town:
    """A service manager, and the daemons that it starts, one after the other."""

    def __init__(self, folder: Path, manager: ServiceManager) -> None:
        self.manager = manager
        self.daemon = DaemonProcess(folder, manager.env, wrapper=manager.wrapper)
        self.session = ""
        self._open: WireClient | None = None

    @property
    def client(self) -> WireClient:
        """Of the session, which it follows."""
        assert self._open is not None
        return self._open

    def install(self, name: str = "counter", program: Path = COUNTER, *args: str, **fields: object) -> None:
        """Put an extension where all sessions find it."""
        directory = self.daemon.place.home / "extensions" / name
        directory.mkdir(parents=True, exist_ok=True)
        manifest = {"name": name, "exec": sys.executable, "args": ["-I", "-S", str(program), *args], **fields}
        (directory / "extension.json").write_text(json.dumps(manifest), encoding="utf-8")

    @asynccontextmanager
    async def opened(self, **options: object) -> AsyncIterator[WireClient]:
        """A client that follows the session, which is made the first time."""
        place = self.daemon.place
        async with WireClient.connect(place.socket) as client:
            if not self.session:
                defaults = {"cwd": str(place.cwd), "provider": "ollama", "model": "none"}
                env = {"PATH": os.environ["PATH"], "HOME": place.env["HOME"]}
                made = await client.ask("session.create", **{**defaults, "env": env, **options})
                session = made["session"]
                assert isinstance(session, dict)
                self.session = session["id"]
            await client.ask("attach", session=self.session)
            self._open = client
            yield client

    async def count(self) -> Count:
        """Have the counter count once more."""
        found = await self.client.ask("run_command", session=self.session, name="count")
        pid, number = str(found["text"]).split()
        return Count(int(pid), int(number))

    def crash(self) -> None:
        """kill -9, and the next daemon."""
        self.daemon.end(signal.SIGKILL)
        self.daemon.start()


@asynccontextmanager
async def town() -> AsyncIterator[Town]:
    """A place without daemons; what runs at the end is ended in order."""
    with tempfile.TemporaryDirectory(prefix="zot-") as path, ServiceManager(Path(path)) as manager:
        made = Town(Path(path), manager)
        try:
            yield made
        finally:
            if made.daemon.pid:
                made.daemon.end()


async def run(options: Options) -> Row:
    """Crashes one after the other."""
    start = time.monotonic()
    rounds = options.of(ROUNDS)
    counts: list[Count] = []
    async with town() as place:
        place.install()
        place.daemon.start()
        async with place.opened():
            counts.append(await place.count())
        for _ in range(rounds):
            place.crash()
            async with place.opened():
                counts.append(await place.count())
    good = sum(one == Count(counts[0].pid, number) for number, one in enumerate(counts, 1)) - 1
    return Row(
        check=f"an extension that counts, kill -9 of a daemon with a descriptor store, {rounds} times",
        must_give="the same process, and the next number, each time",
        got=f"{good} of {rounds} times; {len({one.pid for one in counts})} process(es), counted to {counts[-1].number}",
        ok=good == rounds,
        command="python -m tests.faults adoption",
        seconds=time.monotonic() - start,
    )


async def under_systemd(options: Options) -> Row:
    """The same under a real `systemd --user`, which at last restarts the daemon."""
    start = time.monotonic()
    rounds = options.of(ROUNDS)
    with tempfile.TemporaryDirectory(prefix="zot-") as folder:
        told = await asyncio.to_thread(outlive, Path(folder), rounds)
    answers = len(told.numbers)
    return Row(
        check=f"the same under a real systemd --user, {rounds} times, and `systemctl --user restart`",
        must_give="the same process, and the next number, each time",
        got=f"{answers} answers of {len(set(told.daemons))} daemons and {len(set(told.extensions))} extension "
        f"process(es), which counted to {told.numbers[-1]}",
        ok=told.is_one and answers == rounds + 2,
        command="python -m tests.faults adoption",
        seconds=time.monotonic() - start,
    )


async def rows(options: Options) -> list[Row]:
    """Both, where there can be a manager."""
    found = [await run(options)]
    reason = await asyncio.to_thread(lacking)
    if reason is None:
        return [*found, await under_systemd(options)]
    options.say(f"adoption is not tried under systemd: {reason}")
    return found
