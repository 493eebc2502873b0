"""The daemon: assembles configuration, journal, sessions and doors, and runs from start to stop."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from zotd import config, paths
from zotd.api import websocket
from zotd.api.context import DaemonContext, DoorStatus
from zotd.api.dispatch import Dispatcher
from zotd.api.fleet.joining import joined
from zotd.api.methods import daemon_handlers
from zotd.api.presence import Presences
from zotd.api.push_watcher import PushWatcher
from zotd.api.unix import Socket, UnixServer, passed_listener
from zotd.api.websocket.listening import Listening, prepared
from zotd.channels.channels import Channels
from zotd.channels.programs import Programs
from zotd.channels.state import PeerStore
from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.folders import unfinished
from zotd.core.ports import Probe, StorageError
from zotd.embed.assembly import EmbeddedParts, Instruments, assemble
from zotd.embed.leaving import STOP_S, Leaving
from zotd.embed.reloading import Configuration
from zotd.exthost import staging
from zotd.exthost.installed import InstallError
from zotd.exthost.modules import interpreter
from zotd.history.retention import RetentionTask
from zotd.process import signals
from zotd.process.heritage import Heritage
from zotd.process.keeper import keeper
from zotd.process.ledger import ChildLedger
from zotd.process.subreaper import orphans_adopted
from zotd.process.supervisor import Supervisor
from zotd.push import subscriptions
from zotd.push.service import PushService
from zotd.push.subscriptions import SubscriptionStore
from zotd.sessions.boot_recovery import recover
from zotd.sessions.lease_watch import LeaseWatch
from zotd.sessions.manager import Manager
from zotd.store.archive import Archive
from zotd.store.audit import AuditTrail
from zotd.store.home import held
from zotd.store.journal import StoredJournal
from zotd.store.opening import open_journal
from zotd.store.timers import sessions_with_timers
from zotd.store.tokens import FILE, TokenStore
from zotd.tasks import contain, contained
from zotd.wire.api import ConfigReloaded
from zotd.wire.errors import CommandError
from zotd.wire.version import VERSION
from zotd.workspace.environment import WITHHELD

log = logging.getLogger(__name__)

CONFIG_FILE = "config.toml"
CHANNELS_FILE = "channels.json"


class DaemonSetup(Struct, frozen=True):
    """Settings with which the daemon is started."""

    env: Mapping[str, str]
    home: Path
    socket: Path
    loaded: config.LoadedConfig
    autostarted: bool
    """A client started it, so it ends by itself when it is idle."""
    flags: Mapping[str, object]
    """Settings from the command line, which override the file."""

    def load(self) -> config.LoadedConfig:
        """Load the configuration again; raises ConfigError."""
        return config.load(self.home / CONFIG_FILE, self.env, self.flags)


def prepare(env: Mapping[str, str], *, autostarted: bool, flags: Mapping[str, object]) -> DaemonSetup:
    """Determine the paths, create the private directories, and load the configuration.

    Raises:
        UnsafePathError, ConfigError: the message is one sentence for the user.
    """
    home = Path(paths.zot_home(env))
    socket = Path(paths.socket_path(env))
    paths.check_text(str(home))
    paths.check_text(str(socket))
    paths.make_private_dir(str(home))
    paths.check_private_dir(str(socket.parent))
    paths.make_private_dir(str(home / "logs"))
    return DaemonSetup(env, home, socket, config.load(home / CONFIG_FILE, env, flags), autostarted, flags)


class DescendantError(Exception):
    """The program that starts this daemon was started by an earlier one, and must not get rights by that."""


class Daemon:
    """A daemon, from start to stop."""

    def __init__(
        self, setup: DaemonSetup, probe: Probe | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        """`probe` is called at the points of `store.writer`, `runs.runner` and `sessions.timers`.

        `clock` dates requests to models, and tells when timers are due.
        """
        self._setup = setup
        self._instruments = Instruments(probe, clock)
        self._tasks: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._configuration: Configuration | None = None
        self._supervisor = Supervisor.found(setup.env)
        self._leaving = Leaving(
            autostarted=setup.autostarted, supervisor=self._supervisor, limits=lambda: self._config.limits
        )

    async def run(self, ready: asyncio.Future[None]) -> None:
        """Run until the daemon is stopped; `ready` is completed when the socket accepts connections.

        Raises:
            ConfigError, SocketError, StorageError, DescendantError: the daemon cannot start; the message is one
                sentence for the user.
            RunningError, HeldError: another daemon uses the socket or the home.
        """
        async with AsyncExitStack() as stack:
            stack.enter_context(held(self._setup.home))  # first: everything below writes to files of the home
            listening = await prepared(self._setup.loaded.config.websocket)
            socket = Socket(self._setup.socket, passed_listener(self._setup.env))
            stack.callback(socket.close)
            await asyncio.to_thread(_tidy, self._setup.home)
            # Before the journal is opened and before anything is started: a descendant of an earlier daemon is refused.
            heritage = await self._inherit()
            heritage.begin(self._setup.env)
            stack.callback(heritage.close)
            url = self._setup.loaded.config.journal.url
            journal = await open_journal(self._setup.home, url, self._instruments.probe)
            stack.push_async_callback(journal.close)
            # Before the first child is started, so that no orphan is reparented to init.
            stack.enter_context(orphans_adopted())
            self._tasks = await stack.enter_async_context(asyncio.TaskGroup())
            parts = self._assemble(journal)
            stack.push_async_callback(parts.close)
            await parts.manager.recent_models.recall()
            parts.manager.extension_pool.start()
            context = await self._furnish(parts, journal, heritage, "" if listening is None else listening.certificate)
            server = await self._open_doors(context, socket, listening, stack)
            # In the background: repairing many sessions must not keep clients waiting.
            self._spawn("interrupted restores", asyncio.to_thread(_finish_restores, self._setup.home, self._setup.env))
            self._spawn("recovery", self._recover(parts))
            self._spawn("watchdog", self._supervisor.feed())
            signals.listen(drain=self._leaving.drain, stop=self.stop, reload=self._reload_unheard)
            log.info("zotd %s serves %s", VERSION, self._setup.socket)
            # Only now: systemd starts units that depend on this one when it reads READY=1.
            ready.set_result(None)
            self._supervisor.ready()
            await self._leaving.over.wait()
            log.info("zotd stops")
            # Refuse new work first, or a client could start a run in a session that is being ended.
            context.begin_stop()
            self._supervisor.stopping(STOP_S)
            await parts.stop()
            server.close()
            for task in self._running:
                task.cancel()

    def stop(self, when_idle: bool = False) -> None:
        """End the daemon, at once or as soon as no run is interrupted by it."""
        self._leaving.stop(when_idle)

    # --- inside -------------------------------------------------------------------------------------------------------

    @property
    def _config(self) -> config.Config:
        return self._configuration.config if self._configuration else self._setup.loaded.config

    async def _reload(self, configuration: Configuration, *, by_signal: bool = False) -> ConfigReloaded:
        self._supervisor.reloading()
        try:
            return await configuration.reload(by_signal=by_signal)
        finally:
            self._leaving.look()  # the idle time may have changed
            self._supervisor.ready()

    def _reload_unheard(self) -> None:
        assert self._configuration is not None
        if self._leaving.over.is_set():  # the task group may have ended
            return
        self._spawn("reload", _unheard(self._reload(self._configuration, by_signal=True)))

    async def _recover(self, parts: EmbeddedParts) -> None:
        """Repair sessions that were cut off, and then fire timers: a run that goes on comes before the next prompt."""
        resumes, manager = self._setup.loaded.config.resume == "auto", parts.manager
        assert manager.journal is not None
        manager.journal.ownership.follow(LeaseWatch(manager, parts.timers, spawn=self._spawn, resumes=resumes).events)
        await contain("recovery", recover(manager, resumes=resumes))
        if parts.batches is not None:
            self._spawn("batches", parts.batches.run())
        if parts.timers is not None:
            await parts.timers.run()

    async def _inherit(self) -> Heritage:
        """Load what is known about processes of earlier daemons.

        Raises:
            DescendantError: one of them is starting this daemon.
        """
        home = self._setup.home
        heritage = Heritage(home)
        abandoned = await asyncio.to_thread(ChildLedger(home / "run" / "children").abandoned, spares_kept=True)
        await asyncio.to_thread(heritage.load, [child.leader for child in abandoned if child.leader is not None])
        if await asyncio.to_thread(heritage.has, os.getpid()):
            sentence = f"a program started by the zotd of {home} cannot start the next one"
            raise DescendantError(
                f"{sentence} (rule: descendants never decide); run `zotctl start` in your own terminal"
            )
        return heritage

    def _assemble(self, journal: StoredJournal) -> EmbeddedParts:
        return assemble(
            home=self._setup.home,
            env=self._setup.env,
            config=self._setup.loaded.config,
            journal=journal,
            spawn=self._spawn,
            addressed=True,
            instruments=self._instruments,
        )

    async def _open_doors(
        self, context: DaemonContext, socket: Socket, listening: Listening | None, stack: AsyncExitStack
    ) -> UnixServer:
        dispatcher = Dispatcher(context.manager, daemon_handlers(context))
        server = UnixServer(context, dispatcher)
        server.start(socket)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, server.look)
        self._spawn("heartbeat", server.heartbeat())
        if listening is not None and (door := await websocket.opened(listening, context, dispatcher)) is not None:
            stack.push_async_callback(door.close)
            self._spawn("heartbeat of the WebSocket door", door.heartbeat())
        if context.fleet is not None:
            context.warnings += context.fleet.announce(self._setup.loaded.config.fleet.address, context.doors.websocket)
        return server

    async def _open_channels(self, manager: Manager, audit: AuditTrail, warnings: list[str]) -> Channels | None:
        """Start to serve messaging channels; returns None, and adds a warning, if the stored senders cannot be read."""
        home, config = self._setup.home, self._setup.loaded.config
        extension_pool = manager.extension_pool
        try:
            store = await asyncio.to_thread(PeerStore, home / CHANNELS_FILE)
        except StorageError as error:
            warnings.append(f"messaging channels are not served: {error}")
            return None
        programs = Programs(home, config.channels.telegram, interpreter(config.ext.python, home, uses_workspace=True))
        environment = manager.environment(None, None).variables
        token = {name: self._setup.env[name] for name in WITHHELD if name in self._setup.env}
        surroundings = await asyncio.to_thread(programs.surroundings, {**environment, **token})
        channels = Channels(
            store=store,
            manager=manager,
            send=extension_pool.send_channel,
            spawn=self._spawn,
            cwd=Path(config.channels.cwd or paths.channels_dir(self._setup.env)),
            audit=audit,
        )
        extension_pool.start_channels(surroundings, programs.discover, channels)
        self._spawn("channels", channels.recover())
        return channels

    async def _open_push(
        self, parts: EmbeddedParts, presences: Presences, tokens: TokenStore, warnings: list[str]
    ) -> PushService | None:
        """Prepare push messages; returns None, and adds a warning, if the subscriptions cannot be read."""
        try:
            store = await asyncio.to_thread(SubscriptionStore, self._setup.home / subscriptions.FILE)
        except StorageError as error:
            warnings.append(str(error))
            return None

        def stands(one: subscriptions.Subscription) -> bool:
            if not one.token:
                return True
            token = tokens.list().get(one.token)
            return token is not None and token.digest == one.digest and tokens.stands(one.token, token)

        manager, timers = parts.manager, parts.timers
        push = PushService(store, manager.config, spawn=self._spawn, stands=stands)
        watcher = PushWatcher(manager, presences, push, lambda: self._config.limits.attention_s)
        if timers is not None:
            timers.pause_listeners.append(watcher.timer_paused)
        return push

    async def _furnish(
        self, parts: EmbeddedParts, journal: StoredJournal, heritage: Heritage, certificate: str
    ) -> DaemonContext:
        setup, manager, archive = self._setup, parts.manager, Archive(journal.database)
        configuration = self._configuration = Configuration(
            setup.loaded, read=setup.load, parts=parts, spent=archive.spent
        )
        warnings = list(journal.database.warnings)
        try:
            await parts.spending.recall(archive.spent)
        except StorageError as error:  # an unreadable part of the history must not prevent the start
            warnings.append(f"today's budget starts at zero, because today's spending cannot be read: {error}")
        try:
            if parts.timers is not None:
                await parts.timers.load()
        except StorageError as error:
            warnings.append(f"timers do not fire, because they cannot be read: {error}")
        if manager.models.catalog.problem:
            warnings.append(manager.models.catalog.problem)
        channels = await self._open_channels(manager, archive.audit, warnings)
        presences = Presences(lambda: parts.config.value.limits.attention_s)
        tokens = TokenStore(self._setup.home / FILE)
        push = await self._open_push(parts, presences, tokens, warnings)
        for warning in (*self._setup.loaded.warnings, *warnings):
            log.warning("%s", warning)
        context = DaemonContext(
            manager=manager,
            spawn=self._spawn,
            archive=archive,
            spending=parts.spending,
            telemetry=parts.telemetry,
            presences=presences,
            push=push,
            reload=partial(self._reload, configuration),
            config_problems=configuration.problems,
            fork_problem=lambda: "" if parts.forks is None else parts.forks.problem,
            epoch=journal.epoch,
            doors=DoorStatus(str(self._setup.socket), tokens),
            channels=channels,
            fleet=joined(
                setup.home,
                setup.loaded.config.fleet,
                certificate=certificate,
                members=journal.ownership.members,
                spawn=self._spawn,
            ),
            timers=parts.timers,
            batches=parts.batches,
            stop=self.stop,
            drain=self._leaving.drain,
            changed=self._leaving.look,
            warnings=warnings,
            service=None if self._setup.autostarted else keeper(self._setup.env, os.getpid()),
            heritage=heritage,
        )
        self._leaving.watch(context)
        self._spawn("descendants", heritage.watch())
        used, kept = journal.database.used_bytes, partial(sessions_with_timers, journal.database)
        self._spawn("retention", RetentionTask(manager, self._retention, used, kept, archive=archive).run())
        return context

    def _retention(self) -> config.RetentionSection:
        return self._config.retention

    def _spawn(self, name: str, work: Coroutine[object, object, None]) -> None:
        assert self._tasks is not None
        task = contained(self._tasks, name, work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)


def _tidy(home: Path) -> None:
    """Complete or undo an installation that a killed daemon left unfinished."""
    try:
        staging.recover(home)
    except (InstallError, OSError) as error:
        log.warning("%s", error)


def _finish_restores(home: Path, env: Mapping[str, str]) -> None:
    """Finish restores of files that a killed daemon left unfinished. What cannot be finished now is at its next use."""
    for workspace in unfinished(str(home)):
        from zotd.checkpoints.checkpoints import Checkpoints  # noqa: PLC0415  (1 MiB, which few starts need)

        try:
            Checkpoints(workspace, str(home), env).finish()
        except CheckpointError as error:
            log.warning("an interrupted restore of files in %s was not finished: %s", workspace, error)


async def _unheard(reload: Awaitable[ConfigReloaded]) -> None:
    """Await a reload that was requested by a signal; the error is in the log."""
    with suppress(CommandError):
        await reload
