"""Which extension processes live, and for whom.

--ext of a session          a host of its own, as long as the session is in memory
a workspace                 one host for its sessions, from the first one until `LINGER_S` after the last
scope `daemon`              one host for all, from the daemon's start to its end
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from zotd.core.life import State
from zotd.exthost.discovery import Discovered, discover
from zotd.exthost.extension import Surroundings
from zotd.exthost.host import Host, Limits, ReloadReport, Wish
from zotd.exthost.manifest import Manifest, Scope
from zotd.sessions.extensions import Extensions, Submission
from zotd.sessions.session import Session
from zotd.wire import events, ext
from zotd.wire.version import VERSION

log = logging.getLogger(__name__)

LINGER_S = 60.0
"""How long a workspace's processes stay after its last session: a client that comes back finds them warm."""

FEATURES = ("session_id", "tool_progress", "set_status", "unregister")
"""What `hello_ack` says that this host knows beyond the original."""

Tell = Callable[[events.Event], None]


@dataclass(frozen=True, slots=True)
class Grounds:
    """What every host of this process stands on."""

    home: Path
    """`$ZOT_HOME`."""
    env: Mapping[str, str]
    """Of this process, for what no client has opened."""
    limits: Limits
    is_trusted: Callable[[Path], bool]
    """May the code in this directory be run? Blocks."""
    has_daemon: bool
    """Extensions of scope `daemon` have a host of their own."""
    reserved_commands: Sequence[str] = ()
    """Slash commands that no extension can have."""


@dataclass(slots=True, eq=False)
class Layer:
    """A host and the sessions that use it; what an extension wants goes to those."""

    cwd: str
    tell: Tell
    host: Host = field(init=False)
    views: dict[str, Extensions] = field(default_factory=dict)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    is_trusted: bool = False
    """A client has said that it trusts this workspace."""
    faults: dict[str, str] = field(default_factory=dict)
    """Python modules that failed to load, by file."""

    # --- exthost.host.Listener --------------------------------------------------------------------------------

    def wish(self, extension: str, session: str | None, wish: Wish) -> None:
        """To the session that it is about, or to all."""
        if session is None:
            for view in list(self.views.values()):
                view.wish(extension, wish)
        elif session in self.views:
            self.views[session].wish(extension, wish)
        else:
            log.warning("a %s of %s is about %s, which is not open", wish.__struct_config__.tag, extension, session)

    def activate(self, session: str, tools: Sequence[str]) -> None:
        """Show deferred tools to a session's model."""
        if session in self.views:
            self.views[session].activate(tools)

    def state_changed(self, extension: str, state: State, reason: str) -> None:
        """Tell the sessions, and whoever follows the topic."""
        for view in list(self.views.values()):
            view.state_changed(extension, state, reason)
        self.tell(events.ExtState(extension, self.cwd, state, reason or None))

    def contributions_changed(self) -> None:
        """Have every session look anew."""
        for view in list(self.views.values()):
            view.changed()

    def complained(self, extension: str, sentence: str) -> None:
        """For its log and the doctor; people who use it cannot do anything about it."""
        log.info("extension %s: %s", extension, sentence)

    def other(self, extension: str, frame: ext.FromExtension) -> None:
        """Modules that failed to load; channels and calls of tools have listeners of their own."""
        if not isinstance(frame, ext.ModuleError):
            return
        if frame.error:
            self.faults[frame.file] = frame.error
        else:
            self.faults.pop(frame.file, None)
        for view in list(self.views.values()):
            level, words = (
                ("warn", f"{frame.file}: {frame.error}") if frame.error else ("success", f"{frame.file} loads")
            )
            view.board.note(extension, level, words)


class Hosting:
    """The hosts of one process."""

    def __init__(self, grounds: Grounds, *, spawn: Callable[[str, Coroutine[object, object, None]], None]) -> None:
        """`spawn` starts a named task whose owner outlives the sessions."""
        self._grounds = grounds
        self._spawn = spawn
        self.tell: Tell = lambda _: None
        """Gets events of topics; set by who has followers."""
        self._daemon: Layer | None = None
        self._workspaces: dict[str, Layer] = {}
        self._own: dict[str, Layer] = {}
        self._stops: dict[str, asyncio.TimerHandle] = {}
        self._ending: set[Layer] = set()
        self.submit: Callable[[Session, str, Submission], None] = _nowhere
        """Given a session, an extension's name, and what it wants submitted; set by who can run commands."""

    @property
    def layers(self) -> list[Layer]:
        """Every host, those of the daemon and of workspaces first."""
        daemon = [self._daemon] if self._daemon else []
        return [*daemon, *self._workspaces.values(), *self._own.values()]

    @property
    def count(self) -> int:
        """How many extensions there are that are not stopped, over all hosts."""
        return sum(one.state is not State.STOPPED for layer in self.layers for one in layer.host.extensions)

    def start(self) -> None:
        """Start what lives as long as the daemon."""
        if self._grounds.has_daemon:
            surroundings = Surroundings(
                str(self._grounds.home), self._grounds.home, self._grounds.env, version=VERSION, features=FEATURES
            )
            self._daemon = self._begin(str(self._grounds.home), surroundings, self._for_all)

    def join(self, session: Session) -> Extensions | None:
        """The session's extensions, started if they are not running; None: it wants none. Returns at once."""
        settings = session.ledger.row.settings
        if session.extensions is not None or (settings.no_ext and not settings.extensions):
            return session.extensions
        own = self._begin_own(session, settings.extensions) if settings.extensions else None
        shared = [] if settings.no_ext else [self._workspace(session), *([self._daemon] if self._daemon else [])]
        view = session.extensions = Extensions(
            session.ledger,
            own=own,
            shared=shared,
            home=self._grounds.home,
            limits=self._grounds.limits,
            reserved_commands=self._grounds.reserved_commands,
            submit=lambda extension, frame: self.submit(session, extension, frame),
        )
        for layer in (own, *shared):
            if layer is not None:
                layer.views[session.id] = view
        view.greet()
        return view

    def leave(self, session: Session) -> None:
        """The session leaves memory, or gets other extensions; harmless when it has none."""
        view, session.extensions = session.extensions, None
        if view is None:
            return
        view.farewell()
        for layer in self.layers:
            layer.views.pop(session.id, None)
        own = self._own.pop(session.id, None)
        if own is not None:
            self._end(own)
        cwd = session.ledger.row.cwd
        workspace = self._workspaces.get(cwd)
        if workspace is not None and not workspace.views:
            self._stops[cwd] = asyncio.get_running_loop().call_later(LINGER_S, self._close, cwd)

    def of_session(self, session_id: str) -> list[Layer]:
        """The hosts that a session uses."""
        return [layer for layer in self.layers if session_id in layer.views]

    async def reload(self, layers: Sequence[Layer], name: str | None) -> ReloadReport:
        """Restart one extension, or read all manifests again, in these layers side by side."""
        report = ReloadReport()
        if name is not None:
            await _all_started(layers)
            layers = [layer for layer in layers if any(one.name == name for one in layer.host.extensions)]
            report.errors += [] if layers else [f"no extension {name} runs here; reload all to find a new one"]
        async with asyncio.TaskGroup() as tasks:
            for layer in layers:
                tasks.create_task(_reload(layer, name, report), name=f"reload in {layer.cwd}")
        return report

    async def stop(self) -> None:
        """End every process, all side by side, within 3.3 s."""
        for timer in self._stops.values():
            timer.cancel()
        async with asyncio.TaskGroup() as tasks:
            for layer in (*self.layers, *self._ending):
                tasks.create_task(layer.host.stop(), name=f"stop extensions of {layer.cwd}")
        self._workspaces.clear()
        self._own.clear()
        self._daemon = None

    # --- inside -----------------------------------------------------------------------------------------------

    def _workspace(self, session: Session) -> Layer:
        cwd = session.ledger.row.cwd
        timer = self._stops.pop(cwd, None)
        if timer is not None:
            timer.cancel()
        layer = self._workspaces.get(cwd)
        trusts = session.environment.trusts_workspace
        if layer is None:
            layer = self._workspaces[cwd] = self._begin(cwd, self._surroundings(session), self._of_workspace)
            layer.is_trusted = trusts
        elif trusts and not layer.is_trusted:
            layer.is_trusted = True
            self._spawn(f"trust {cwd}", self._reload_quietly(layer))
        return layer

    def _begin_own(self, session: Session, paths: Sequence[str]) -> Layer:
        explicit = [Path(session.ledger.row.cwd, path) for path in paths]

        def found(_: Layer) -> Discovered:
            return discover(explicit=explicit, cwd=None, home=None, is_trusted=lambda _: False)

        layer = self._own[session.id] = self._begin(session.ledger.row.cwd, self._surroundings(session), found)
        return layer

    def _begin(self, cwd: str, surroundings: Surroundings, find: Callable[[Layer], Discovered]) -> Layer:
        layer = Layer(cwd, self._tell)
        layer.host = Host(
            discover=partial(find, layer),
            surroundings=surroundings,
            listener=layer,
            reserved_commands=self._grounds.reserved_commands,
            limits=self._grounds.limits,
        )
        self._spawn(f"start extensions of {cwd}", _start(layer))
        return layer

    def _end(self, layer: Layer) -> None:
        self._ending.add(layer)
        self._spawn(f"stop extensions of {layer.cwd}", self._stop(layer))

    def _close(self, cwd: str) -> None:
        self._stops.pop(cwd, None)
        self._end(self._workspaces.pop(cwd))

    async def _stop(self, layer: Layer) -> None:
        await layer.host.stop()
        self._ending.discard(layer)

    async def _reload_quietly(self, layer: Layer) -> None:
        await layer.started.wait()
        await layer.host.reload_all()

    def _surroundings(self, session: Session) -> Surroundings:
        row = session.ledger.row
        return Surroundings(
            cwd=row.cwd,
            home=self._grounds.home,
            env=session.environment.variables,
            withheld=session.environment.keys,
            version=VERSION,
            provider=row.settings.provider,
            model=row.settings.model,
            features=FEATURES,
        )

    def _tell(self, event: events.Event) -> None:
        self.tell(event)

    # --- what there is (in a thread) --------------------------------------------------------------------------

    def _of_workspace(self, layer: Layer) -> Discovered:
        def is_trusted(cwd: Path) -> bool:
            return layer.is_trusted or self._grounds.is_trusted(cwd)

        found = discover(explicit=(), cwd=Path(layer.cwd), home=self._grounds.home, is_trusted=is_trusted)
        found.manifests = [one for one in found.manifests if not self._is_for_all(one)]
        return found

    def _for_all(self, layer: Layer) -> Discovered:
        del layer
        found = discover(explicit=(), cwd=None, home=self._grounds.home, is_trusted=lambda _: False)
        found.manifests = [one for one in found.manifests if self._is_for_all(one)]
        found.errors.clear()  # those of workspaces are told there
        return found

    def _is_for_all(self, manifest: Manifest) -> bool:
        """A project's extension serves the project, whatever it says: nobody else has trusted it."""
        return (
            self._grounds.has_daemon
            and manifest.scope is Scope.DAEMON
            and manifest.directory.is_relative_to(self._grounds.home)
        )


def _nowhere(session: Session, extension: str, frame: Submission) -> None:
    log.warning("a %s of %s to %s goes nowhere", frame.__struct_config__.tag, extension, session.id)


async def _start(layer: Layer) -> None:
    try:
        await layer.host.start()
    finally:
        layer.started.set()


async def _all_started(layers: Sequence[Layer]) -> None:
    for layer in layers:
        await layer.started.wait()


async def _reload(layer: Layer, name: str | None, into: ReloadReport) -> None:
    await layer.started.wait()
    if name is not None:
        error = await layer.host.reload(name)
        into.loaded.append(name)
        into.errors += [error] if error is not None else []
        into.ready += [] if error is not None else [name]
        return
    report = await layer.host.reload_all()
    into.stopped += report.stopped
    into.loaded += report.loaded
    into.ready += report.ready
    into.errors += report.errors
