"""State and services that all connections of a daemon share."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from weakref import WeakSet

from zotd.api.channel_desk import ChannelDesk
from zotd.api.fleet.fleet import Fleet
from zotd.api.presence import Presences
from zotd.batches.batches import Batches
from zotd.core.life import ExtensionState
from zotd.ledger.spending import Spending
from zotd.process import figures
from zotd.process.heritage import Heritage
from zotd.push.service import PushService
from zotd.sessions.completion import Completer
from zotd.sessions.manager import Manager, Spawn
from zotd.sessions.session import Session
from zotd.sessions.timer_orders import problems
from zotd.sessions.timers import Timers
from zotd.store.archive import Archive
from zotd.store.tokens import TokenStore
from zotd.telemetry.watching import Telemetry
from zotd.wire.api import ConfigReloaded, Status
from zotd.wire.events import Event, TimersChanged
from zotd.wire.reports import MetricFamily, Metrics, MetricSample
from zotd.wire.version import PROTOCOL, VERSION, protocols

STATES = ("idle", "running", "waiting", "held", "blocked")
"""The states of a session, `Session.state`."""

MAX_LOOKS = 2
"""Number of threads that may access working directories at a time: a hanging mount must not block all threads."""

MAX_CONNECTIONS = 256
"""Maximum number of connections through all doors, against runaway scripts. A connection takes about 8 KiB."""


@dataclass(slots=True)
class Tally:
    """Counters of all connections since the daemon's start."""

    connections: int = 0
    evictions: int = 0
    commands: int = 0
    events: int = 0
    """Committed events, counted once for each client that received them."""

    def count(self, *, connections: int = 0, evictions: int = 0, commands: int = 0, events: int = 0) -> None:
        """Add to the counters."""
        self.connections += connections
        self.evictions += evictions
        self.commands += commands
        self.events += events


@dataclass(slots=True)
class DoorStatus:
    """How clients can reach the daemon; updated by the doors."""

    socket: str
    """Path of the Unix socket."""
    tokens: TokenStore | None = None
    """Tokens of the WebSocket door, also while it is closed; None if this daemon has no token store."""
    hidden: str = ""
    """Why new clients cannot find the socket; empty if they can."""
    websocket: str | None = None
    """URL of the WebSocket door; None if it is closed."""
    _check_tokens: Callable[[], None] = lambda: None

    def socket_hidden(self, reason: str) -> bool:
        """Record why clients cannot find the socket (empty: they can); return whether the reason has changed."""
        before, self.hidden = self.hidden, reason
        return reason != before

    def websocket_opened(self, url: str, *, check_tokens: Callable[[], None]) -> None:
        """Record the URL. `check_tokens` disconnects clients whose token was revoked."""
        self.websocket, self._check_tokens = url, check_tokens

    def websocket_closed(self) -> None:
        """Record that the WebSocket door is closed."""
        self.websocket = None

    def tokens_changed(self) -> None:
        """Disconnect clients whose token was revoked."""
        self._check_tokens()

    def problems(self) -> list[str]:
        """Return why clients cannot connect, one sentence each, for `daemon.status`."""
        closed = "" if self.websocket is None or self.tokens is None else self.tokens.problem()
        return [problem for problem in (self.hidden, closed) if problem]


@dataclass(slots=True)
class DaemonContext:
    """The daemon as seen by its connections and commands."""

    manager: Manager
    spawn: Spawn
    """Starts a named task that outlives the connection."""
    archive: Archive
    """Queries over all stored sessions."""
    epoch: str
    doors: DoorStatus
    stop: Callable[[bool], None]
    """Stops the daemon: at once, or (True) as soon as nothing runs."""
    drain: Callable[[], None]
    """Stops it when every run can be resumed."""
    changed: Callable[[], None]
    """Called when a connection was opened or closed."""
    warnings: list[str] = field(default_factory=list)
    """Problems found at the start, for `daemon.status`."""
    reload: Callable[[], Awaitable[ConfigReloaded]] | None = None
    """Reloads the configuration; raises CommandError if it is invalid. None if there is no configuration file."""
    config_problems: Callable[[], Sequence[str]] = tuple
    """Returns the problems of the configuration that was read last."""
    fork_problem: Callable[[], str] = str
    """Returns why extensions are not forked although they could be, as a sentence; empty: they are."""
    service: str | None = None
    """Service manager that runs the daemon, `systemd` or `launchd`; None if there is none."""
    channels: ChannelDesk | None = None
    """Messaging channels; None if the daemon serves none."""
    fleet: Fleet | None = None
    """The daemons of the same database; None if they have no key to recognise each other."""
    timers: Timers | None = None
    """Prompts that are sent when they are due; None: there are none."""
    batches: Batches | None = None
    """Prompts that any daemon of the database runs; None: there are none."""
    push: PushService | None = None
    """Sends push messages to browsers; None if their subscriptions cannot be read."""
    remote_heavy: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Shared by all clients on other machines: only one of their `dispatch.HEAVY` commands runs at a time."""
    spending: Spending = field(default_factory=Spending)
    telemetry: Telemetry = field(default_factory=Telemetry)
    heritage: Heritage | None = None
    """Knows which processes earlier daemons of this home started; None if that is not tracked."""
    presences: Presences = field(default_factory=Presences)
    opened_by_people: WeakSet[Session] = field(default_factory=WeakSet)
    """Ephemeral sessions that no descendant has opened; programs of other ones cannot open nested sessions."""
    tally: Tally = field(default_factory=Tally)
    connections: int = 0
    started: float = field(default_factory=time.monotonic)
    stopping: bool = False
    completer: Completer = field(init=False)
    looks: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_LOOKS))
    """Limits the threads that access working directories."""

    def __post_init__(self) -> None:
        manager = self.manager
        self.completer = Completer(
            models=manager.models,
            skills=manager.skills,
            file_commands=manager.commands.files,
            agents=manager.commands.agents,
            spawn=self.spawn,
        )

    def came(self) -> None:
        """Count a new connection."""
        self.connections += 1
        self.changed()

    def went(self) -> None:
        """Discount a connection that has ended."""
        self.connections -= 1
        self.changed()

    def listen(self, heard: Callable[[Event], None]) -> Callable[[], None]:
        """Call `heard` with each event of a topic; call the result to stop."""
        ends = ExitStack()
        ends.callback(self.manager.listen(heard))
        if self.timers is not None:
            ends.callback(self.timers.listen(lambda: heard(TimersChanged())))
        return ends.close

    def begin_stop(self) -> None:
        """Report the state `stopping` from now on, and take nothing over from other daemons."""
        self.stopping = True
        if self.fleet is not None:
            self.fleet.begin_stop()
        if self.manager.journal is not None:
            self.manager.journal.ownership.prepare_to_end()

    def status(self) -> Status:
        """Return the response to `daemon.status`."""
        sessions = self.manager.loaded
        return Status(
            v=1,
            state="stopping" if self.stopping else "running",
            socket=self.doors.socket,
            pid=os.getpid(),
            version=VERSION,
            protocol=PROTOCOL,
            epoch=self.epoch,
            uptime_s=round(time.monotonic() - self.started, 3),
            sessions=len(sessions),
            running=sum(session.state == "running" for session in sessions),
            clients=self.connections,
            extensions=self._running_extensions(),
            warnings=[
                *self.config_problems(),
                *self.warnings,
                *filter(None, [self._storage_problem(), self.fork_problem()]),
                *(() if self.timers is None else problems(self.timers.listed())),
                *self.doors.problems(),
                *self.telemetry.problems(),
                *self.spending.warnings(session.ledger.row for session in sessions),
            ],
            protocols=protocols(),
            websocket=self.doors.websocket,
            service=self.service,
        )

    def _running_extensions(self) -> int:
        found = (one for layer in self.manager.extension_pool.layers for one in layer.host.extensions)
        return sum(one.state is not ExtensionState.STOPPED for one in found)

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
            families=[
                *self._session_figures(),
                *(() if self.fleet is None else self.fleet.families()),
                *self.telemetry.families(),
            ],
        )

    def _session_figures(self) -> list[MetricFamily]:
        sessions = self.manager.loaded
        states = Counter(session.state for session in sessions)
        return [
            MetricFamily(
                "zotd_sessions_by_state",
                "gauge",
                "Sessions in memory, by state.",
                [MetricSample({"state": state}, states[state]) for state in STATES],
            ),
            self.telemetry.figures.waiting(
                (session.ledger.row.cwd, len(session.approvals.shown)) for session in sessions
            ),
        ]
