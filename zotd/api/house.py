"""What all connections of a daemon share."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakSet

from zotd.api.channel_desk import ChannelDesk
from zotd.api.presence import Presences
from zotd.process import figures
from zotd.sessions.completing import Completer
from zotd.sessions.manager import Manager, Spawn
from zotd.sessions.session import Session
from zotd.sessions.spending import Spending
from zotd.store.archive import Archive
from zotd.wire.api import Status
from zotd.wire.reports import Metrics
from zotd.wire.version import PROTOCOL, VERSION

MAX_LOOKS = 2
"""Threads that look at working directories at once: those that a dead mount holds must not be all that there are."""


@dataclass(slots=True)
class Tally:
    """What connections have done since the daemon's start; they add to it."""

    connections: int = 0
    evictions: int = 0
    commands: int = 0
    events: int = 0
    """Committed ones, once for each client that got them."""


@dataclass(slots=True)
class House:
    """The daemon, as its connections and their commands see it."""

    manager: Manager
    spawn: Spawn
    """Starts a named task that outlives the connection."""
    archive: Archive
    """All stored sessions at once."""
    epoch: str
    socket: str
    stop: Callable[[bool], None]
    """Stop the daemon: at once, or (True) when nothing runs."""
    changed: Callable[[], None]
    """Called when a connection has come or gone."""
    warnings: list[str] = field(default_factory=list)
    """What is wrong with the configuration, for `status`."""
    channels: ChannelDesk | None = None
    """Messaging channels; None: this daemon has none."""
    spending: Spending = field(default_factory=Spending)
    presences: Presences = field(default_factory=Presences)
    lets_nest: bool = False
    """Programs that the daemon has started may open ephemeral sessions."""
    opened_by_people: WeakSet[Session] = field(default_factory=WeakSet)
    """The ephemeral sessions that no such program has opened."""
    tally: Tally = field(default_factory=Tally)
    connections: int = 0
    started: float = field(default_factory=time.monotonic)
    stopping: bool = False
    completer: Completer = field(init=False)
    looks: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_LOOKS))
    """Of threads that look at working directories."""

    def __post_init__(self) -> None:
        manager = self.manager
        self.completer = Completer(models=manager.models, skills=manager.skills, spawn=self.spawn)

    def status(self) -> Status:
        """The daemon in figures."""
        sessions = self.manager.loaded
        return Status(
            v=1,
            state="stopping" if self.stopping else "running",
            socket=self.socket,
            pid=os.getpid(),
            version=VERSION,
            protocol=PROTOCOL,
            epoch=self.epoch,
            uptime_s=round(time.monotonic() - self.started, 3),
            sessions=len(sessions),
            running=sum(session.state == "running" for session in sessions),
            clients=self.connections,
            extensions=self.manager.hosting.count,
            warnings=[*self.warnings, *self.spending.warnings(session.ledger.row for session in sessions)],
        )

    async def metrics(self) -> Metrics:
        """The daemon in more figures, some of which the kernel is asked for."""
        held = await asyncio.to_thread(figures.measure)
        sessions, done, written = self.manager.loaded, self.tally, self.archive.counts
        return Metrics(
            v=1,
            uptime_s=round(time.monotonic() - self.started, 3),
            sessions=len(sessions),
            running=sum(session.state == "running" for session in sessions),
            clients=self.connections,
            tasks=len(asyncio.all_tasks()),
            children=held.children,
            descriptors=held.descriptors,
            rss_bytes=held.rss_bytes,
            connections=done.connections,
            evictions=done.evictions,
            commands=done.commands,
            events=done.events,
            commits=written.writes,
            transactions=written.transactions,
            synced=written.synced,
        )
