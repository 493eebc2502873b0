"""A home whose daemon is killed over and over while clients go on, and which is looked at when it has come to rest.

make -> (start -> clients come back -> kill)* -> start -> clients come back -> rest -> stop -> look
"""

import asyncio
import os
import random
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.faults import autopsy, check
from tests.faults.autopsy import Kills
from tests.faults.check import Findings, Promise
from tests.faults.client import AHEAD, Pulse, Seen, Sender, Watcher
from tests.faults.daemon import Daemon, Nursery
from tests.faults.nursery import Order
from tests.faults.stored import URL
from tests.faults.workload import BUILTIN, EDITED, END, Plan, answer, mixed, same
from zotd.client.client import Client
from zotd.testing.live_daemon import DaemonPaths, place
from zotd.testing.model_server import ModelServer
from zotd.wire.api import Cursor

RESUME = ("auto", "continue", "prompt")
"""How sessions go on after a kill: by themselves (`auto`), when told to (`continue`), with their next prompt."""

MIX = "mix"
"""Instead of a tool: plans with all of them."""

SESSIONS = 3
"""Side by side in a home with mixed plans: their commits go to the disk in groups."""

BEATS = 15
"""A kill at a random instant comes after so many model calls, tool calls and results at most, …"""

SPAN_S = 0.05
"""… and within this time after that; the most that a step takes on a machine that is not busy."""

LINGER_S = 0.05
"""Half of the daemons that kill themselves stand so long at their point. The writer's thread stands alone there: a tool
that did not wait for its record has started by then, and what was told too early has arrived."""

LIFE_S = 30.0
"""Longest life of a daemon that is to kill itself at a point, or to come to rest; both take under a second."""

EXTENSION = Path(__file__).parent / "extension"


@dataclass(frozen=True, slots=True)
class Task:
    """What is done in one home."""

    tool: str
    """The only tool of its one session, or `MIX`."""
    resume: str
    """One of `RESUME`."""
    seed: str
    instants: int = 0
    """How often it is killed at a random instant."""
    points: Sequence[tuple[str, int]] = ()
    """Where it kills itself: a point, and which time it is reached in a life."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a home."""

    kills: Kills
    findings: Findings
    reached: Mapping[str, int]
    """How often each point was reached in the last life, which was not killed."""
    folder: Path | None
    """The home, kept because something was wrong."""


class Home:
    """One home. Made by `open`."""

    def __init__(self, task: Task, where: DaemonPaths, nursery: Nursery) -> None:
        self.kills = Kills()
        self._task = task
        self._place = where
        self._nursery = nursery
        self._chance = random.Random(task.seed)
        self._senders: list[Sender] = []
        self._watchers: list[Watcher] = []
        self._pulse = Pulse()
        self._last: Mapping[int, int] = {}
        self._daemon: Daemon | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, task: Task, nursery: Nursery, where: DaemonPaths) -> AsyncIterator[Self]:
        """The home in this place, with its sessions; at the end no daemon of it lives."""
        home = cls(task, where, nursery)
        async with asyncio.TaskGroup() as tasks:
            try:
                await home._begin()
                following = [tasks.create_task(one.follow(), name="watcher") for one in home._watchers]
                yield home
                for one in following:
                    one.cancel()
            finally:
                if home._daemon is not None:
                    home._daemon.kill()

    async def kill_at_an_instant(self) -> None:
        """A life that ends at a random instant after something runs."""
        self._pulse.begin(self._chance.randint(1, BEATS))
        delay_s = self._chance.uniform(0, SPAN_S)
        born = await self._bear()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._live(born), name="life")
            await self._pulse.wait()
            await asyncio.sleep(delay_s)  # the instant itself: nothing is waited for
            born.kill()
        await born.dead.wait()
        self.kills.instants += 1
        await self._look_at_the_dead("instants")

    async def kill_at_a_point(self, point: str, nth: int) -> bool:
        """A life that ends at a point; False when it was not reached, which is a problem too."""
        born = await self._bear(point, nth, linger_s=self._chance.choice((0.0, LINGER_S)))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._live(born), name="life")
            try:
                async with asyncio.timeout(LIFE_S):
                    await born.dead.wait()
            except TimeoutError:
                born.kill()
                return False
        self.kills.points[point] += 1
        await self._look_at_the_dead("points")
        return True

    async def rest(self) -> Mapping[str, int]:
        """A last life, to the end of all that was accepted and in order; how often each point was reached in it."""
        for sender in self._senders:
            sender.quota = 0 if self._last else AHEAD  # nothing was killed: this life is to be counted
        born = await self._bear()
        try:
            async with asyncio.timeout(LIFE_S):
                await self._live(born)
        except TimeoutError:
            for sender in self._senders:
                sender.complain_of_unrest()
        for sender, watcher in zip(self._senders, self._watchers, strict=True):
            await watcher.until(sender.seen.cursor.seq)
        return await born.stop()

    def look(self) -> Findings:
        """What is wrong, now that it rests."""
        findings = Findings()
        clients = [(sender, watcher.seen) for sender, watcher in zip(self._senders, self._watchers, strict=True)]
        check.look(self._place, clients, findings)
        return findings

    # --- inside -----------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        """Create the sessions in a first life, which ends in order."""
        born = await self._bear()
        if not await born.serves():
            raise RuntimeError(f"no daemon starts: {self._place.folder / 'stderr'} says why")
        path, env = self._place.socket, self._place.env
        async with Client.connect(path=path, env=env, autostart=False, name="maker") as client:
            for number in range(SESSIONS if self._task.tool == MIX else 1):
                session = await client.create(str(self._place.cwd), provider="openai", model="gpt-4o")
                start = Cursor(str(client.hello.epoch), 0)
                self._senders.append(
                    Sender(Seen(session.id, start), self._plans(number), self._task.resume, self._pulse)
                )
                self._watchers.append(Watcher(Seen(session.id, start), path, env))
                (self._place.cwd / f"{EDITED}-k{number}").write_text(END, encoding="utf-8")
        await born.stop()

    def _plans(self, number: int) -> Iterator[Plan]:
        if self._task.tool == MIX:
            return mixed(number, random.Random(f"{self._task.seed}.{number}"))
        return same(number, self._task.tool)

    async def _bear(self, point: str = "", nth: int = 0, *, linger_s: float = 0.0) -> Daemon:
        order = Order(str(self._place.folder), dict(self._place.env), point, nth, linger_s=linger_s)
        self._daemon = await self._nursery.bear(order)
        return self._daemon

    async def _live(self, born: Daemon) -> None:
        """Let the clients work until the daemon is dead or they rest."""
        if await born.serves():
            async with asyncio.TaskGroup() as tasks:
                for sender in self._senders:
                    tasks.create_task(sender.live(self._place.socket, self._place.env), name="sender")
        self._pulse.stop()  # no beat will come: end what waits for one

    async def _look_at_the_dead(self, how: str) -> None:
        """Between two lives: what must be done while no daemon lives."""
        await asyncio.to_thread(check.sweep, self._place.cwd)
        body = await asyncio.to_thread(autopsy.examine, self._place, self._last)
        self._last = body.lengths
        self.kills.in_run[how] += body.was_running
        self.kills.cut.update(body.cut)


async def run(task: Task, nursery: Nursery, database: Callable[[], str] | None = None) -> Outcome:
    """Do what is to be done in one home; it is removed unless something was wrong.

    `database`: makes an empty one for the home and returns its URL; None: the home has a file.
    """
    journal = {} if database is None else {URL: await asyncio.to_thread(database)}
    folder = Path(tempfile.mkdtemp(prefix="zot-faults-"))
    keeps = False
    try:
        async with ModelServer(answer) as model:
            where = _furnish(folder, task, model.openai_url, journal)
            async with Home.open(task, nursery, where) as home:
                missed = [at for at in task.points if not await home.kill_at_a_point(*at)]
                for _ in range(task.instants):
                    await home.kill_at_an_instant()
                reached = await home.rest()
            findings = await asyncio.to_thread(home.look)
            check.look_at_requests(model.requests, findings)
        findings.complain(Promise.OTHER, *(f'"{point}" was not reached {nth} times' for point, nth in missed))
        keeps = bool(findings.problems)
        return Outcome(home.kills, findings, reached, folder if keeps else None)
    finally:
        if not keeps:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _furnish(folder: Path, task: Task, model_url: str, journal: Mapping[str, str]) -> DaemonPaths:
    """A home whose daemon knows the model, its key and the witness, also after a restart."""
    ours = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # for the witness
    where = place(folder, {"OPENAI_API_KEY": "none", "PATH": ours, **journal})
    where.home.mkdir(mode=0o700)
    if task.tool not in BUILTIN:  # it takes twice as long to start as the daemon
        shutil.copytree(EXTENSION, where.home / "extensions" / "witness")
    settings = 'resume = "auto"\n' if task.resume == "auto" else ""
    settings += f'[providers.openai]\nbase_url = "{model_url}"\n'
    (where.home / "config.toml").write_text(settings, encoding="utf-8")
    (where.cwd / "notes.txt").write_text("Nothing of note.\n", encoding="utf-8")
    return where
