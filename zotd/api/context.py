"""State and services that all connections of a daemon share."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from weakref import WeakSet

from zotd.api.channel_desk import ChannelDesk
from zotd.api.presence import Presences
from zotd.ledger.spending import Spending
from zotd.process import figures
from zotd.process.heritage import Heritage
from zotd.sessions.completion import Completer
from zotd.sessions.manager import Manager, Spawn
from zotd.sessions.session import Session
from zotd.store.archive import Archive
from zotd.store.tokens import TokenStore
from zotd.wire.api import ConfigReloaded, Status
from zotd.wire.reports import Metrics
from zotd.wire.version import PROTOCOL, VERSION, protocols

MAX_LOOKS = 2
"""Threads that look at working directories at once: those that a dead mount holds must not be all that there are."""

MAX_CONNECTIONS = 256
"""Through all doors: a bound on what one user's runaway script can open; a connection costs about 8 KiB."""


@dataclass(slots=True)
class Tally:
    """Counters of all connections since the daemon's start."""

    connections: int = 0
    evictions: int = 0
    commands: int = 0
    events: int = 0
    """Committed events, counted once for each client that received them."""


@dataclass(slots=True)
class DaemonContext:
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
    """Called when a connection was opened or has ended."""
    warnings: list[str] = field(default_factory=list)
    """Problems found at the start, for `status`."""
    reload: Callable[[], Awaitable[ConfigReloaded]] | None = None
    """Reads the configuration again; raises CommandError when that cannot be used. None: it has none."""
    config_problems: Callable[[], Sequence[str]] = tuple
    """What is wrong with the configuration that was read last."""
    hidden: str = ""
    """Why new clients do not find the daemon's socket; empty: they do."""
    service: str | None = None
    """Who runs the daemon: `systemd`, `launchd`; None: it runs by itself."""
    tokens: TokenStore | None = None
    """Those of the WebSocket door, also while it is closed; None: this daemon has no place for any."""
    tokens_changed: Callable[[], None] = lambda: None
    """Called when tokens may have been revoked."""
    websocket: str | None = None
    """The URL of the WebSocket door; None: it is closed."""
    channels: ChannelDesk | None = None
    """Messaging channels; None: this daemon has none."""
    remote_heavy: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the one command of `dispatch.HEAVY` that is under way for clients of other machines."""
    spending: Spending = field(default_factory=Spending)
    heritage: Heritage | None = None
    """Knows what earlier daemons of this home have started; None: nothing does."""
    presences: Presences = field(default_factory=Presences)
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

    def came(self) -> None:
        """Count a new connection."""
        self.connections += 1
        self.changed()

    def went(self) -> None:
        """Discount a connection that has ended."""
        self.connections -= 1
        self.changed()

    def status(self) -> Status:
        """Return the response to `daemon.status`."""
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
            extensions=self.manager.extension_pool.count,
            warnings=[
                *self.config_problems(),
                *self.warnings,
                *filter(None, [self._storage_problem(), self.hidden, self._token_problem()]),
                *self.spending.warnings(session.ledger.row for session in sessions),
            ],
            protocols=protocols(),
            websocket=self.websocket,
            service=self.service,
        )

    def _storage_problem(self) -> str | None:
        trouble = self.archive.trouble
        return (
            None
            if trouble is None
            else f"nothing is stored: {trouble}; sessions continue by themselves as soon as writing succeeds"
        )

    async def metrics(self) -> Metrics:
        """Return the response to `daemon.metrics`; measures the process in a thread."""
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

    def _token_problem(self) -> str:
        """Why the WebSocket door admits nobody; of no interest while it is closed."""
        return "" if self.websocket is None or self.tokens is None else self.tokens.problem()
