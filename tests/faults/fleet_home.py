"""Daemons of one database with clients in front of them: the one that works is killed, paused, cut off or loses its server.

begin -> (clients work -> a blow to the daemon that works -> the other one takes over, and the first comes back)* -> rest -> look
"""

import asyncio
import random
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Self

import psycopg

from tests.detour import Detour
from tests.faults import check
from tests.faults.check import Findings
from tests.faults.client import Pulse, Seen, Sender, Watcher
from tests.faults.daemon import Nursery
from tests.faults.fleet_ground import GROUNDS, Ground
from tests.faults.fleet_node import Node
from tests.faults.fleet_story import DRAIN, KILL, PROMOTE, SERVER, SPLIT, Blows, Story
from tests.faults.homes import BEATS, LIFE_S, SESSIONS, SPAN_S
from tests.faults.stored import URL
from tests.faults.workload import EDITED, END, answer, mixed
from zotd.client.client import Client
from zotd.client.errors import ClientError
from zotd.clock import rfc3339
from zotd.testing.live_daemon import DaemonPaths, place
from zotd.testing.model_server import ModelServer
from zotd.wire import api
from zotd.wire.api import Cursor
from zotd.wire.errors import Code

HANDOVERS = """
SELECT DISTINCT ON (stopped.session) extract(epoch FROM next.time::timestamptz - stopped.time::timestamptz)::float8
FROM records AS stopped JOIN records AS next ON next.session = stopped.session AND next.number > stopped.number
WHERE stopped.kind = 'interrupted' AND next.kind = 'attempt'
    AND stopped.time BETWEEN %s AND %s
ORDER BY stopped.session, stopped.number, next.number
"""
"""The first stop of each session between these times, and how much later its run went on."""

AWAY = (Code.SHUTTING_DOWN, Code.STORAGE_BLOCKED)
"""Refusals of a daemon that is drained, or has lost its database. A session whose daemon gives them for ever does not come to
rest, which is a problem."""

MOVED = 0.3
"""How often a session begins to be moved to the other daemon just before something happens to its own, and how often when the
clients begin to work."""


FOREIGN = 0.5
"""How often clients use their sessions through the daemon that does not have them."""

LOST = "SELECT state FROM sessions WHERE owner = %s AND state IN ('running', 'waiting')"

UNTIL_REAPED = """
DO $$ BEGIN
    WHILE EXISTS (SELECT FROM daemons WHERE number = {}) LOOP PERFORM pg_sleep(0.02); END LOOP;
END $$
"""

UNTIL_OPENED = """
DO $$ BEGIN
    WHILE EXISTS (
        SELECT FROM sessions WHERE NOT EXISTS (SELECT FROM daemons WHERE number = owner AND expires > clock_timestamp())
    ) LOOP PERFORM pg_sleep(0.02); END LOOP;
END $$
"""

UNTIL_BOTH = """
DO $$ BEGIN
    WHILE (SELECT count(*) FROM daemons WHERE expires > clock_timestamp() AND NOT stopping) <> {} LOOP
        PERFORM pg_sleep(0.02);
    END LOOP;
END $$
"""

CUT_OFF_FROM_BOTH = 0.5
"""How often a daemon with a network of its own that is cut off from the database is cut off from the other daemon, too."""

SPLIT_S = 12.0
"""Longest time that a daemon is cut off from the other one alone: it notices that after 9 s."""

COME_BACK_S = 0.5
"""Pause of clients whose daemon has refused them."""

REAP_S = 40
"""Longest wait until the other daemon has noticed that a lease has expired; it takes 10 to 13 s."""


class Fleet:
    """Two nodes; made by `open`."""

    def __init__(
        self,
        story: Story,
        where: DaemonPaths,
        ground: Ground,
        door: Detour,
        tasks: asyncio.TaskGroup,
    ):
        """`where`: the directory in which the sessions work, and the database; `door`: the socket for clients."""
        self.blows = Blows()
        self._story = story
        self._place = where
        self._server = ground.server
        self._nodes = list(ground.nodes)
        self._door = door
        self._chance = random.Random(story.seed)
        self._pulse = Pulse()
        self._away: tuple[str, Node] | None = None
        self._drains: list[tuple[str, str]] = []
        self._tasks = tasks
        self._moving: list[asyncio.Task[None]] = []
        self._senders: list[Sender] = []
        self._watchers: list[Watcher] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, story: Story, nursery: Nursery, folder: Path, model: ModelServer) -> AsyncIterator[Self]:
        """The fleet in this folder, with its sessions; at the end no daemon of it lives."""
        async with AsyncExitStack() as stack:
            ground = await stack.enter_async_context(GROUNDS[story.ground](folder, story.resume, model, nursery))
            where = place(folder, {URL: ground.database})
            door = Detour(folder / "door.sock", Path(ground.nodes[0].where.socket))
            await door.open()
            stack.push_async_callback(door.end)
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            fleet = cls(story, where, ground, door, tasks)
            stack.callback(fleet._kill_all)
            await fleet._begin()
            following = [tasks.create_task(one.follow(), name="watcher") for one in fleet._watchers]
            yield fleet
            for one in (*following, *fleet._moving):
                one.cancel()

    async def strike(self, blow: str) -> None:
        """Let the clients work, and the daemon that serves them have this happen to it at a random instant."""
        node, other = self._nodes
        self._pulse.begin(self._chance.randint(1, BEATS))
        delay_s = self._chance.uniform(0, SPAN_S)
        number = await asyncio.to_thread(self._number_of, node)
        async with asyncio.TaskGroup() as tasks:
            working = tasks.create_task(self._live(), name="life")
            await self._welcome_back()
            if self._chance.random() < FOREIGN:
                self._door.close()
                working.cancel()
                self._door.target = Path(other.where.socket)
                await self._door.open()
                working = tasks.create_task(self._live(), name="life elsewhere")
            early, late = (self._chance.random() < MOVED for _ in range(2))
            if early:
                self._begin_move(node, other)
            await self._until_beat()
            if late:
                self._begin_move(node, other)
            await asyncio.sleep(delay_s)  # the instant itself: nothing is waited for
            began = time.monotonic()
            struck_at = rfc3339()
            await self._hit(node, blow)
            if blow == DRAIN:
                self._drains.append((struck_at, rfc3339()))
            self._door.close()  # clients of a daemon that does not answer give up
            working.cancel()
        self.blows.count[blow] += 1
        if blow in {SERVER, PROMOTE}:
            await asyncio.to_thread(self._server.start)
            for one in self._nodes:  # one has sessions that were moved
                await self._until_written(one)
        elif blow != SPLIT:
            await self._take_over(number)
            if blow == KILL:
                self.blows.failovers_s.append(time.monotonic() - began)
        await self._door.open()
        self._away = blow, node

    async def _until_beat(self) -> None:
        try:
            async with asyncio.timeout(LIFE_S):
                await self._pulse.wait()
        except TimeoutError:
            for sender in self._senders:
                sender.complain_of_unrest()

    async def _take_over(self, number: int) -> None:
        """Wait until the other daemon has the sessions, and lead the clients there."""
        self.blows.in_run += await asyncio.to_thread(self._was_running, number)
        await asyncio.to_thread(self._wait_for, UNTIL_REAPED, number)
        self._nodes.reverse()
        self._door.target = Path(self._nodes[0].where.socket)

    def _begin_move(self, node: Node, other: Node) -> None:
        session = self._chance.choice(self._senders).seen.session
        self._moving.append(self._tasks.create_task(self._move(session, node, other), name="move"))

    async def _move(self, session: str, node: Node, other: Node) -> None:
        """Have the session moved; what becomes of that depends on when the blow comes."""
        with suppress(ClientError):  # the daemon has gone, or the session was moved before
            async with Client.connect(
                path=node.where.socket, env=node.where.env, autostart=False, name="mover", role="admin"
            ) as client:
                await client.ask(api.SessionMove(session, str(other.where.home)), api.SessionMoved)
                self.blows.moves += 1

    async def _until_written(self, node: Node) -> None:
        """Wait until no session is blocked: a client that comes back before gets a snapshot for some cursors."""
        async with Client.connect(path=node.where.socket, env=node.where.env, autostart=False, name="probe") as client:
            states = {"blocked"}
            while "blocked" in states:
                found = await client.ask(api.SessionList(), api.Sessions)
                states = {session.state for session in found.sessions}

    async def _hit(self, node: Node, blow: str) -> None:
        match blow:
            case "kill -9 of a daemon":
                node.alive.kill()
            case "pause of a daemon":
                node.alive.pause()
            case "partition":
                assert node.way is not None
                node.way.close()
                if node.peers is not None and self._chance.random() < CUT_OFF_FROM_BOTH:
                    node.peers.close()
            case "partition between daemons":
                assert node.peers is not None
                node.peers.close()
                await asyncio.sleep(self._chance.uniform(0, SPLIT_S))  # the clients work on meanwhile
                await node.peers.open()
            case "drain":
                async with Client.connect(
                    path=node.where.socket, env=node.where.env, autostart=False, name="admin", role="admin"
                ) as admin:
                    await admin.ask(api.DaemonDrain(), api.Draining)
                    await node.alive.dead.wait()
            case _:
                await asyncio.to_thread(self._server.kill)

    async def rest(self) -> None:
        """Let the clients finish all that was accepted, and stop the daemons in order."""
        for sender in self._senders:
            sender.quota = 0
        if self._moving:  # a session that is being moved refuses prompts, and then a client gives up
            await asyncio.wait(self._moving, timeout=LIFE_S)
        try:
            async with asyncio.timeout(LIFE_S), asyncio.TaskGroup() as tasks:
                tasks.create_task(self._live_until_rest(), name="life")
                await self._welcome_back()
        except TimeoutError:
            for sender in self._senders:
                sender.complain_of_unrest()
        for sender, watcher in zip(self._senders, self._watchers, strict=True):
            await watcher.until(sender.seen.cursor.seq)
        for node in self._nodes:
            await node.alive.stop()

    def look(self) -> Findings:
        """What is wrong, now that it rests."""
        findings = Findings()
        with psycopg.connect(self._place.env[URL]) as connection:
            for times in self._drains:
                self.blows.handovers_s += [gap_s for (gap_s,) in connection.execute(HANDOVERS, times).fetchall()]
        clients = [(sender, watcher.seen) for sender, watcher in zip(self._senders, self._watchers, strict=True)]
        check.look(self._place, clients, findings)
        return findings

    # --- inside -----------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        for node in self._nodes:
            await node.start()
        path, env = str(self._place.folder / "door.sock"), self._place.env
        async with Client.connect(path=path, env=env, autostart=False, name="maker") as client:
            for number in range(SESSIONS):
                session = await client.create(str(self._place.cwd), provider="openai", model="gpt-4o")
                start = Cursor(str(client.hello.epoch), 0)
                plans = mixed(number, random.Random(f"{self._story.seed}.{number}"))
                sender = Sender(Seen(session.id, start), plans, self._story.resume, self._pulse, ends_life=AWAY)
                self._senders.append(sender)
                self._watchers.append(Watcher(Seen(session.id, start), path, env))
                (self._place.cwd / f"{EDITED}-k{number}").write_text(END, encoding="utf-8")

    async def _live(self) -> None:
        """Let the clients work until the daemon does not answer, or they rest."""
        async with asyncio.TaskGroup() as tasks:
            for sender in self._senders:
                tasks.create_task(sender.live(str(self._place.folder / "door.sock"), self._place.env), name="sender")
        self._pulse.stop()

    async def _live_until_rest(self) -> None:
        """Let the clients come back until all rest: on a busy machine a daemon may lose its lease once more."""
        await self._live()
        while not all(sender.is_at_rest for sender in self._senders):
            await asyncio.sleep(COME_BACK_S)
            await self._live()

    async def _welcome_back(self) -> None:
        """Have the daemon of the last blow come back, when a daemon that lives has each session.

        A daemon that was away, or that starts, takes sessions that no daemon has opened yet.
        """
        if self._away is None:
            return
        blow, node = self._away
        self._away = None
        await asyncio.to_thread(self._wait_for, UNTIL_OPENED)
        match blow:
            case "kill -9 of a daemon" | "drain":
                await node.alive.dead.wait()
                await node.start()
            case "pause of a daemon":
                node.alive.go_on()
            case "partition":
                assert node.way is not None
                await node.way.open()
                if node.peers is not None:
                    await node.peers.open()
            case _:
                pass
        await asyncio.to_thread(self._wait_for, UNTIL_BOTH, 2)

    def _number_of(self, node: Node) -> int:
        with psycopg.connect(self._place.env[URL]) as connection:
            query = "SELECT number FROM daemons WHERE name LIKE %s"
            (number,) = connection.execute(query, (f"%:{node.where.home}",)).fetchone() or (0,)
            return int(number)

    def _was_running(self, number: int) -> bool:
        with psycopg.connect(self._place.env[URL]) as connection:
            return connection.execute(LOST, (number,)).fetchone() is not None

    def _wait_for(self, statement: str, number: int = 0) -> None:
        with psycopg.connect(self._place.env[URL], options=f"-c statement_timeout={REAP_S}s") as connection:
            connection.autocommit = True
            connection.execute(statement.format(number).encode())

    def _kill_all(self) -> None:
        for node in self._nodes:
            if node.daemon is not None:
                node.daemon.kill()


async def run(story: Story, nursery: Nursery) -> tuple[Blows, Findings, Path | None]:
    """Do what is to be done to one database; what was done and found, and the folder if something was wrong."""
    folder = Path(tempfile.mkdtemp(prefix="zot-fleet-"))
    keeps = True
    try:
        async with ModelServer(answer) as model:
            async with Fleet.open(story, nursery, folder, model) as fleet:
                (folder / "work" / "notes.txt").write_text("Nothing of note.\n", encoding="utf-8")
                for blow in story.blows:
                    await fleet.strike(blow)
                await fleet.rest()
                findings = await asyncio.to_thread(fleet.look)
            check.look_at_requests(model.requests, findings)
        keeps = bool(findings.problems)
        return fleet.blows, findings, folder if keeps else None
    finally:
        if not keeps:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
