"""Which extension processes live, and for whom.

--ext of a session          a host of its own, as long as the session is in memory
MCP servers of its clients  the same, as long as they are connected (`sessions.client_servers`)
a workspace                 one host for its sessions, from the first one until `LINGER_S` after the last
scope `daemon`              one host for all, from the daemon's start to its end
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from msgspec import Struct

from zotd.contributions import discovery
from zotd.contributions.discovery import ExtensionSources
from zotd.contributions.resolution import Resolution
from zotd.contributions.scope import LOOK_S, ExtensionScope, HostConfig, Tell, recheck_briefly, wait_discovered
from zotd.contributions.trust import WorkspaceTrust
from zotd.contributions.view import LISTED_TOOLS, Extensions, Submission
from zotd.exthost.discovery import Discovered
from zotd.exthost.host import ExtensionTimeouts, HostListener, ReloadReport
from zotd.exthost.jails import ExtensionJails
from zotd.exthost.requests import ToolRequest
from zotd.exthost.surroundings import Surroundings
from zotd.process.handover_store import HandoverStore
from zotd.process.orphan_reaper import OrphanReaper
from zotd.sessions.client_servers import ClientServers
from zotd.sessions.extension_watches import ExtensionWatches
from zotd.sessions.session import Session
from zotd.store.trust import Trust
from zotd.tasks import contained
from zotd.template.forks import Forks
from zotd.wire import events, ext
from zotd.wire.version import VERSION
from zotd.workspace.environment import Environment

log = logging.getLogger(__name__)

LINGER_S = 60.0
"""How long a workspace's processes stay after its last session: a client that comes back finds them warm.

The manager waits as long before it ends the extensions of one session (`--ext`)."""

FEATURES = ("session_id", "tool_progress", "set_status", "unregister")
"""What `hello_ack` says that this host knows beyond the original."""


class PoolConfig(Struct, frozen=True):
    """What all hosts of this process stand on."""

    places: ExtensionSources
    environment: Environment
    """Environment of this process, for sessions that no client has opened."""
    limits: ExtensionTimeouts
    trust: Trust
    reaper: OrphanReaper
    """Ends what extensions leave behind."""
    reserved_commands: Sequence[str] = ()
    """Slash commands that no extension can have."""
    listed_tools: int = LISTED_TOOLS
    """How many tools of MCP servers a model is shown; if there are more, it searches them."""
    handover_store: HandoverStore | None = None
    """Lets extensions outlive the daemon; None: they end with it."""
    forks: Forks | None = None
    """Forks Python programs; None: each imports its modules itself."""
    jails: ExtensionJails | None = None
    """Confines programs that ask for it; None: those are not started."""


class PoolListener(Struct, frozen=True):
    """Gets what the extensions of all sessions want. The functions return at once."""

    tell: Tell
    """Gets events of topics."""
    call_tool: Callable[[ToolRequest], None]
    """Gets a tool that an extension wants run."""
    submit: Callable[[Session, str, Submission], None]
    """Gets a session, an extension's name, and what it wants submitted."""


class ExtensionPool:
    """The hosts of one process."""

    def __init__(self, grounds: PoolConfig, *, spawn: Callable[[str, Coroutine[object, object, None]], None]) -> None:
        """`spawn` starts a named task whose owner outlives the sessions."""
        self.trust = grounds.trust
        self.places = grounds.places
        self.limits = grounds.limits
        self._grounds = grounds
        self._spawn = spawn
        self._host_config = HostConfig(self._tell, self._call_tool, grounds.limits, grounds.reserved_commands)
        self._listener = _NOWHERE
        self._daemon: ExtensionScope | None = None
        self._channels: ExtensionScope | None = None
        self._workspaces: dict[str, ExtensionScope] = {}
        self._own: dict[str, ExtensionScope] = {}
        self.client_servers = ClientServers(grounds.places, begin=self._begin_brought, end=self._end, spawn=spawn)
        """The MCP servers that clients have brought."""
        self._stops: dict[str, asyncio.TimerHandle] = {}
        self._ending: set[ExtensionScope] = set()
        self._is_stopped = False
        self._watches = ExtensionWatches(grounds.places, spawn)

    @property
    def layers(self) -> list[ExtensionScope]:
        """Every host, those of the daemon and of workspaces first."""
        daemon = [layer for layer in (self._daemon, self._channels) if layer is not None]
        return [*daemon, *self._workspaces.values(), *self.client_servers.layers, *self._own.values()]

    def connect(self, listener: "PoolListener") -> None:
        """Send what extensions want to `listener`; the manager calls this once, before the first session."""
        self._listener = listener

    def start(self) -> None:
        """Start what lives as long as the daemon."""
        places = self._grounds.places
        if places.has_daemon:
            self.client_servers.clean()
            environment = self._grounds.environment
            surroundings = Surroundings(
                cwd=str(places.home),
                home=places.home,
                env=environment.variables,
                withheld=environment.keys,
                version=VERSION,
                features=FEATURES,
                reaper=self._grounds.reaper,
                handover_store=self._grounds.handover_store,
                forks=self._grounds.forks,
                jails=self._grounds.jails,
                place="daemon",
            )
            if self._grounds.forks is not None and _has_extensions(places.home):
                self._grounds.forks.begin()  # it serves before the first session wants its extensions
            layer = ExtensionScope(self._host_config, surroundings, partial(discovery.of_daemon, places))
            self._daemon = layer
            self._spawn("start extensions of the daemon", self._open_followed(layer, places.home))

    def start_channels(
        self, surroundings: Surroundings, discover: Callable[[], Discovered], listener: HostListener
    ) -> None:
        """Start the extensions that serve messaging channels; `listener` hears from them."""
        surroundings = replace(
            surroundings, cwd=str(self.places.home), reaper=self._grounds.reaper, forks=self._grounds.forks
        )
        layer = self._channels = ExtensionScope(self._host_config, surroundings, discover, channels=listener)
        self._spawn("start channels", self._open_channels(layer))

    def send_channel(self, name: str, frame: ext.ToExtension) -> bool:
        """Send a frame to one of those; False when it is not there to get it."""
        return self._channels is not None and self._channels.host.send(name, frame)

    @property
    def serves_channels(self) -> bool:
        """Whether channels are served, so that a message may arrive at any time."""
        return self._channels is not None and bool(self._channels.host.extensions)

    def join(self, session: Session) -> Extensions | None:
        """The session's extensions, started if they are not running; None: it wants none. Returns at once."""
        settings = session.ledger.row.settings
        if session.extensions is not None:
            if session.environment.trusts_workspace:
                for used in self.of_session(session.id):
                    self._vouch(used, session)
            return session.extensions
        wants_own = settings.extensions or self.client_servers.brings(session.id)
        if self._is_stopped or (settings.no_ext and not wants_own):
            return None
        own = self._begin_own(session, settings.extensions) if settings.extensions else None
        shared = [] if settings.no_ext else [self._workspace(session), *([self._daemon] if self._daemon else [])]
        view = session.extensions = Extensions(
            session.ledger,
            Resolution(own=own, shared=shared, home=self._grounds.places.home),
            limits=self._grounds.limits,
            listed_tools=self._grounds.listed_tools,
            reserved_commands=self._grounds.reserved_commands,
            submit=lambda extension, frame: self._listener.submit(session, extension, frame),
            watch=session.watch,
        )
        for layer in (own, *shared):
            if layer is not None:
                layer.join(view)
        self.client_servers.join(session, view)
        view.subscriptions.begin()
        return view

    def leave(self, session: Session) -> None:
        """The session leaves memory, or gets other extensions; harmless when it has none."""
        view, session.extensions = session.extensions, None
        if view is None:
            return
        view.end()
        for layer in self.layers:
            layer.views.pop(session.id, None)
        own = self._own.pop(session.id, None)
        if own is not None:
            self._end(own)
        self.client_servers.leave(session.id)
        cwd = session.ledger.row.cwd
        workspace = self._workspaces.get(cwd)
        if workspace is not None and not workspace.views and cwd not in self._stops:
            self._stops[cwd] = asyncio.get_running_loop().call_later(LINGER_S, self._close, cwd)

    async def grants(self, session: Session, *, anew: bool = False) -> bool:
        """Return whether the session's workspace is trusted; `anew`: look at its code now, also if no change was reported."""
        layer = self._workspaces.get(session.ledger.row.cwd)
        if layer is not None and layer.trusting is not None and layer.started.is_set():
            is_known = await recheck_briefly(layer) if anew or not layer.is_watched else True
            return layer.trusting.is_granted and (is_known or not anew)
        trusting = WorkspaceTrust(self.trust, session.ledger.row.cwd)
        if session.environment.trusts_workspace:
            trusting.vouch()
        try:
            async with asyncio.timeout(LOOK_S):
                await asyncio.to_thread(trusting.look)
        except TimeoutError:
            log.warning(
                "nothing of %s is used: its code could not be looked at within %g s", session.ledger.row.cwd, LOOK_S
            )
        return trusting.is_granted

    def of_session(self, session_id: str) -> list[ExtensionScope]:
        """The hosts that a session uses, its own first."""
        return [layer for layer in reversed(self.layers) if session_id in layer.views]

    def of_cwd(self, cwd: str) -> list[ExtensionScope]:
        """The hosts that sessions in this directory use: those that only one of them has, and those that all share."""
        own = [layer for layer in self._own.values() if layer.cwd == cwd]
        workspace = self._workspaces.get(cwd)
        return [*own, *([workspace] if workspace else []), *([self._daemon] if self._daemon else [])]

    async def reload(self, layers: Sequence[ExtensionScope], name: str | None) -> ReloadReport:
        """Restart one extension, or read all manifests again, in these layers side by side."""
        report = ReloadReport()
        await wait_discovered(layers)
        if name is not None:
            layers = [layer for layer in layers if any(one.name == name for one in layer.host.extensions)]
            if not layers:
                return ReloadReport(errors=[f"no extension {name} runs here; reload all to find a new one"])
        async with asyncio.TaskGroup() as tasks:
            for layer in layers:
                tasks.create_task(layer.reload(name, report), name=f"reload in {layer.cwd}")
        return report

    def trust_changed(self, path: str) -> None:
        """Start or stop what the workspace with this real path brings along; returns at once."""
        for layer in self._workspaces.values():  # several, when sessions know it by different names
            if layer.trusting is not None and layer.trusting.path == path:
                self._spawn(f"trust {layer.cwd}", layer.look_again())

    async def stop(self) -> None:
        """End every process, all side by side, within 3.3 s; what joins from now on gets none."""
        self._is_stopped = True
        for timer in self._stops.values():
            timer.cancel()
        self._watches.close()
        self.client_servers.close()
        for view in {key: view for layer in self.layers for key, view in layer.views.items()}.values():
            view.subscriptions.end()
        async with asyncio.TaskGroup() as tasks:
            for layer in (*self.layers, *self._ending):
                _ = contained(tasks, f"stop of the extensions of {layer.cwd}", layer.stop())
        self._workspaces.clear()
        self._own.clear()
        self._daemon = self._channels = None

    # --- inside -----------------------------------------------------------------------------------------------

    def _workspace(self, session: Session) -> ExtensionScope:
        cwd = session.ledger.row.cwd
        timer = self._stops.pop(cwd, None)
        if timer is not None:
            timer.cancel()
        layer = self._workspaces.get(cwd)
        if layer is None:
            trusting = WorkspaceTrust(self.trust, cwd)
            surroundings = replace(self._surroundings(session, f"workspace {cwd}"), vet=trusting.vet)
            layer = ExtensionScope(
                self._host_config, surroundings, partial(self._find, cwd, trusting), trusting=trusting
            )
            if session.environment.trusts_workspace:
                trusting.vouch()
            self._workspaces[cwd] = layer
            self._spawn(f"start extensions of {cwd}", self._open(layer))
        else:
            self._vouch(layer, session)
        return layer

    def _vouch(self, layer: ExtensionScope, session: Session) -> None:
        """Apply the trust of the client that attached last to the code as it is now."""
        if not session.environment.trusts_workspace or layer.trusting is None:
            return
        was_trusted = layer.trusting.is_vouched_for and layer.trusting.is_trusted
        layer.trusting.vouch()
        if not was_trusted:
            self.trust_changed(layer.trusting.path)

    def _find(self, cwd: str, trusting: WorkspaceTrust) -> Discovered:
        is_trusted = trusting.look()
        return discovery.of_workspace(self._grounds.places, Path(cwd), is_trusted=is_trusted, trusting=trusting)

    def _begin_own(self, session: Session, paths: Sequence[str]) -> ExtensionScope:
        explicit = [Path(session.ledger.row.cwd, path) for path in paths]
        surroundings = replace(self._surroundings(session, f"session {session.id}"), is_explicit=True)
        layer = ExtensionScope(self._host_config, surroundings, partial(discovery.of_session, self.places, explicit))
        self._own[session.id] = layer
        self._spawn(f"start extensions of {session.id}", self._open_followed(layer, None, explicit))
        return layer

    def _begin_brought(self, session: Session, discover: Callable[[], Discovered]) -> ExtensionScope:
        """Begin a host with what clients have brought, which does not outlive the daemon."""
        surroundings = self._surroundings(session, f"clients of {session.id}")
        surroundings = replace(surroundings, is_explicit=True, handover_store=None)
        layer = ExtensionScope(self._host_config, surroundings, discover)
        self._spawn(f"start MCP servers of clients of {session.id}", layer.start())
        return layer

    async def _open(self, layer: ExtensionScope) -> None:
        """Start a workspace's extensions, and the host of Python modules when there is a first one."""
        # Watched before the start: what comes in between is found twice, and not missed.
        await layer.start(is_watched=await self._watches.follow_workspace(layer))

    async def _open_followed(self, layer: ExtensionScope, home: Path | None, explicit: Sequence[Path] = ()) -> None:
        """Start the extensions of the daemon or of one session."""
        await self._watches.follow_saved(layer, home, explicit)
        await layer.start(self._grounds.reaper.swept if home is not None else None)

    async def _open_channels(self, layer: ExtensionScope) -> None:
        """Start the channels that there are, and those whose files come later."""
        await self._watches.follow_channels(layer)
        await layer.start(self._grounds.reaper.swept)

    def _end(self, layer: ExtensionScope) -> None:
        self._watches.forget(layer)
        self._ending.add(layer)
        self._spawn(f"stop extensions of {layer.cwd}", self._stop(layer))

    def _close(self, cwd: str) -> None:
        self._stops.pop(cwd, None)
        self._end(self._workspaces.pop(cwd))

    async def _stop(self, layer: ExtensionScope) -> None:
        await layer.stop()
        self._ending.discard(layer)

    def _surroundings(self, session: Session, place: str) -> Surroundings:
        row = session.ledger.row
        return Surroundings(
            cwd=row.cwd,
            home=self._grounds.places.home,
            env=session.environment.variables,
            withheld={**self._grounds.environment.keys, **session.environment.keys},
            version=VERSION,
            provider=row.settings.provider,
            model=row.settings.model,
            features=FEATURES,
            reaper=self._grounds.reaper,
            handover_store=self._grounds.handover_store,
            forks=self._grounds.forks,
            jails=self._grounds.jails,
            place=place,
        )

    def _tell(self, event: events.Event) -> None:
        self._listener.tell(event)

    def _call_tool(self, request: ToolRequest) -> None:
        self._listener.call_tool(request)


def _has_extensions(home: Path) -> bool:
    try:
        return any((home / "extensions").iterdir())
    except OSError:
        return False


def _nowhere(session: Session, extension: str, frame: Submission) -> None:
    log.warning("a %s of %s to %s goes nowhere", frame.__struct_config__.tag, extension, session.id)


def _unanswered(request: ToolRequest) -> None:
    log.warning("a call of %s by %s goes nowhere", request.name, request.extension)


_NOWHERE = PoolListener(tell=lambda _: None, call_tool=_unanswered, submit=_nowhere)
