"""A process that has loaded everything a daemon needs, and forks daemons: each works after 0.1 s instead of 1.5 s.

    stdin    {"folder": "/tmp/x", "env": {...}, "point": "committed", "nth": 3}      an `Order` a line
    stdout   {"folder": "/tmp/x", "pid": 4711}                                       it was forked
             {"folder": "/tmp/x", "pid": 4711, "ready": true}                        it serves

A daemon is the whole of `zotd.app` in a process and a session of its own. Its probe counts how often each point was
reached; at the point that it was ordered to die at it kills itself, as nothing in the process can prevent. What ends
in order leaves the counts in `points.json`. At the end of its stdin the nursery kills what is left.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec

from tests.faults import network
from zotd import logs
from zotd.app import Daemon, prepare
from zotd.client.client import Client
from zotd.testing.live_daemon import serving
from zotd.testing.model_server import ModelServer
from zotd.testing.script import text

POINTS_FILE = "points.json"


class Order(msgspec.Struct, frozen=True):
    """One daemon."""

    folder: str
    env: dict[str, str]
    point: str = ""
    """Where it kills itself; empty: nowhere."""
    nth: int = 0
    """Which time it comes there, from 1."""
    signal: int = signal.SIGKILL
    """What it sends itself there."""
    linger_s: float = 0.0
    """How long it stands there before: whoever does not wait for what is about to happen there goes on meanwhile."""
    network: str = ""
    """Path of the network namespace in which it lives; empty: that of the nursery."""


class Birth(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is said of a daemon."""

    folder: str
    pid: int
    ready: bool = False


class Mine:
    """A probe: counts, and kills this process where it was ordered to."""

    def __init__(self, order: Order) -> None:
        self.reached: Counter[str] = Counter()
        self._order = order

    def __call__(self, point: str) -> None:
        # Each point belongs to one thread, so that counting needs no lock.
        self.reached[point] += 1
        if point == self._order.point and self.reached[point] == self._order.nth:
            time.sleep(self._order.linger_s)
            os.kill(os.getpid(), self._order.signal)


def main() -> None:
    """Fork what is ordered, until nobody orders any more."""
    with tempfile.TemporaryDirectory(prefix="zot-nursery-") as rehearsal:
        asyncio.run(_rehearse(Path(rehearsal)))
    children: set[int] = set()
    for line in sys.stdin.buffer:
        order = msgspec.json.decode(line, type=Order)
        children -= {pid for pid in children if os.waitpid(pid, os.WNOHANG)[0]}
        pid = os.fork()
        if pid == 0:
            _live(order)
        children.add(pid)
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


async def _rehearse(folder: Path) -> None:
    """A run in a daemon of our own: half of what it takes is loaded only then. No thread of it is left."""
    async with (
        ModelServer([text("ok")]) as model,
        serving(folder) as place,
        Client.connect(path=place.socket, env=place.env, autostart=False, name="nursery") as client,
    ):
        session = await client.create(str(place.cwd), provider="openai", base_url=model.openai_url, api_key="none")
        async for _ in session.prompt("?"):
            pass


def _live(order: Order) -> None:
    """Be a daemon to the end; never returns."""
    _say(Birth(order.folder, os.getpid()))  # we and not the nursery, whose word might come behind our next one
    try:
        os.setsid()
        if order.network:
            network.enter(order.network)
        os.chdir("/")
        folder = Path(order.folder)
        stderr = os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(stderr, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.clear()
        os.environ.update(order.env)
        mine = Mine(order)
        setup = prepare(os.environ, autostarted=False, flags={"log_level": "info"})
        with logs.configured(setup.home / "logs" / "zotd.log", level="info", stderr=False):
            asyncio.run(_serve(Daemon(setup, mine), order))
        (folder / POINTS_FILE).write_text(json.dumps(mine.reached), encoding="utf-8")
    except BaseException:  # noqa: BLE001  (boundary: whatever it was, this process must not go on as a second nursery)
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


async def _serve(daemon: Daemon, order: Order) -> None:
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(done: asyncio.Future[None]) -> None:
        if not done.cancelled() and done.exception() is None:
            _say(Birth(order.folder, os.getpid(), ready=True))

    ready.add_done_callback(tell)
    await daemon.run(ready)


def _say(birth: Birth) -> None:
    os.write(1, msgspec.json.encode(birth) + b"\n")  # one write: several daemons share the pipe


if __name__ == "__main__":
    main()
