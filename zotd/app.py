"""The daemon, put together: configuration, journal, sessions, the door; and its life from start to stop."""

import asyncio
import logging
import signal
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from zotd import config, paths
from zotd.api.dispatch import Dispatcher
from zotd.api.house import House
from zotd.api.methods import HANDLERS
from zotd.api.presence import Presences
from zotd.api.unix import Server, Socket
from zotd.channels.channels import Channels
from zotd.channels.programs import Programs
from zotd.channels.state import Store
from zotd.core.ports import Probe, StorageError
from zotd.embed.assembly import Parts, assemble
from zotd.exthost import staging
from zotd.exthost.installed import InstallError
from zotd.exthost.modules import interpreter
from zotd.process.subreaper import orphans_adopted
from zotd.sessions.boot import recover
from zotd.sessions.environment import WITHHELD
from zotd.sessions.manager import LAST_USED
from zotd.sessions.stopping import is_awaited, is_busy
from zotd.store.archive import Archive
from zotd.store.home import held
from zotd.store.journal import Journal
from zotd.tasks import contained
from zotd.wire.version import VERSION

log = logging.getLogger(__name__)

DATABASE = "zot.db"
CONFIG_FILE = "config.toml"
CHANNELS_FILE = "channels.json"


@dataclass(frozen=True, slots=True)
class Setup:
    """What the daemon is started with."""

    env: Mapping[str, str]
    home: Path
    socket: Path
    loaded: config.Loaded
    autostarted: bool
    """A client started it: it ends by itself when nobody needs it."""


def prepare(env: Mapping[str, str], *, autostarted: bool, flags: Mapping[str, object]) -> Setup:
    """Find the places, make private what has to be private, read the configuration.

    Raises:
        UnsafePathError, ConfigError: one sentence says what is wrong.
    """
    home = Path(paths.zot_home(env))
    socket = Path(paths.socket_path(env))
    paths.make_private_dir(str(home))
    paths.check_private_dir(str(socket.parent))
    paths.make_private_dir(str(home / "logs"))
    return Setup(env, home, socket, config.load(home / CONFIG_FILE, env, flags), autostarted)


class Daemon:
    """One daemon's life."""

    def __init__(self, setup: Setup, probe: Probe | None = None) -> None:
        """`probe` is called at the points of `store.writer` and `sessions.driver`."""
        self._setup = setup
        self._probe = probe
        self._stop = asyncio.Event()
        self._stop_when_idle = False
        self._tasks: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._house: House | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    async def run(self, ready: asyncio.Future[None]) -> None:
        """Serve until somebody stops it; `ready` is done when the socket accepts.

        Raises:
            SocketError, StorageError: it cannot start; one sentence says why. RunningError and HeldError: another one
                lives here.
        """
        async with AsyncExitStack() as stack:
            stack.enter_context(held(self._setup.home))  # first: nothing here is ours while another daemon lives
            socket = Socket(self._setup.socket)
            stack.callback(socket.close)
            await asyncio.to_thread(_tidy, self._setup.home)
            journal = await Journal.open(self._setup.home / DATABASE, self._probe)
            stack.push_async_callback(journal.close)
            stack.enter_context(orphans_adopted())
            self._tasks = await stack.enter_async_context(asyncio.TaskGroup())
            parts = self._assemble(journal)
            stack.push_async_callback(parts.close)
            parts.models.last_used = _pair(await journal.settings.get(LAST_USED))
            parts.manager.hosting.start()
            house = await self._furnish(parts, journal)
            await self._open_channels(house)
            server = Server(house, Dispatcher(parts.manager, HANDLERS))
            server.start(socket)
            self._spawn("heartbeat", server.heartbeat())
            self._spawn("recovery", recover(parts.manager, resumes=self._setup.loaded.config.resume == "auto"))
            self._handle_signals()
            log.info("zotd %s serves %s", VERSION, self._setup.socket)
            ready.set_result(None)
            await self._stop.wait()
            log.info("zotd stops")
            house.stopping = True
            await parts.manager.stop()
            await parts.strays.close()
            server.close()
            for task in self._running:
                task.cancel()

    def stop(self, when_idle: bool = False) -> None:
        """Stop: at once, or as soon as that cuts nothing."""
        if when_idle and self._house is not None:
            self._stop_when_idle = True
            self._house.manager.nested.ended = self._look
            self._look()
        else:
            self._stop.set()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _assemble(self, journal: Journal) -> Parts:
        return assemble(
            home=self._setup.home,
            env=self._setup.env,
            config=self._setup.loaded.config,
            journal=journal,
            spawn=self._spawn,
            addressed=True,
            probe=self._probe,
        )

    async def _open_channels(self, house: House) -> None:
        """Start what serves messaging channels; without it, when what is known about senders cannot be used."""
        home, config = self._setup.home, self._setup.loaded.config
        hosting = house.manager.hosting
        try:
            store = await asyncio.to_thread(Store, home / CHANNELS_FILE)
        except StorageError as error:
            house.warnings.append(f"messaging channels are not served: {error}")
            log.warning("%s", house.warnings[-1])
            return
        programs = Programs(home, config.channels.telegram, interpreter(config.ext.python, home))
        environment = house.manager.environment(None, None).variables
        token = {name: self._setup.env[name] for name in WITHHELD if name in self._setup.env}
        surroundings = await asyncio.to_thread(programs.surroundings, {**environment, **token})
        channels = house.channels = Channels(
            store=store,
            manager=house.manager,
            send=hosting.send_channel,
            spawn=self._spawn,
            cwd=Path(config.channels.cwd or home / "channels"),
        )
        hosting.start_channels(surroundings, programs.discover, channels)
        self._spawn("channels", channels.recover())

    async def _furnish(self, parts: Parts, journal: Journal) -> House:
        manager, archive = parts.manager, Archive(journal.database)
        warnings = list(self._setup.loaded.warnings)
        try:
            await parts.spending.recall(archive.spent)
        except StorageError as error:  # what can be read goes on
            warnings.append(f"the budget of today begins anew, because what is spent of it cannot be read: {error}")
        if manager.models.catalog.problem:
            warnings.append(manager.models.catalog.problem)
        for warning in warnings:
            log.warning("%s", warning)
        house = self._house = House(
            manager=manager,
            spawn=self._spawn,
            archive=archive,
            spending=parts.spending,
            presences=Presences(self._setup.loaded.config.limits.attention_s),
            epoch=journal.epoch,
            socket=str(self._setup.socket),
            stop=self.stop,
            changed=self._look,
            warnings=warnings,
            lets_nest=self._setup.loaded.config.nested == "submit",
        )
        manager.listen(lambda _: self._look())
        self._look()
        return house

    def _spawn(self, name: str, work: Coroutine[object, object, None]) -> None:
        assert self._tasks is not None
        task = contained(self._tasks, name, work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _handle_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # the latter: its terminal was closed
            asyncio.get_running_loop().add_signal_handler(number, self.stop)

    def _look(self) -> None:
        """Does anybody need the daemon? Asked whenever a session or a connection comes, goes or changes."""
        assert self._house is not None
        manager = self._house.manager
        if self._stop_when_idle and not is_busy(manager):
            self._stop.set()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        idle_s = self._setup.loaded.config.limits.idle_exit_s
        needed = self._house.connections or manager.hosting.serves_channels or any(map(is_awaited, manager.loaded))
        if self._setup.autostarted and idle_s and not needed:
            self._idle_timer = asyncio.get_running_loop().call_later(idle_s, self._leave)

    def _leave(self) -> None:
        """Nobody has needed the daemon for so long, unless an extension has calls made: of those nobody is told."""
        assert self._house is not None
        if is_busy(self._house.manager):
            self._look()
        else:
            self._stop.set()


def _tidy(home: Path) -> None:
    """Finish, or undo, what a killed daemon was installing."""
    try:
        staging.recover(home)
    except (InstallError, OSError) as error:
        log.warning("%s", error)


def _pair(text: str | None) -> tuple[str, str] | None:
    provider, slash, model = (text or "").partition("/")
    return (provider, model) if slash else None
