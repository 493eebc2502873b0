"""Assembles the parts that every program needs to run sessions: the daemon, `zot rpc`, and `Runtime`."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from msgspec import Struct, structs

from zotd import paths
from zotd.batches.batches import Batches
from zotd.batches.prompt_runs import PromptRuns
from zotd.config import Config
from zotd.config.current import CurrentConfig
from zotd.contributions.discovery import ExtensionSources, programs
from zotd.contributions.guards import CallGuard
from zotd.core.ports import Probe, Tool, ToolContext, ToolOutcome
from zotd.core.retry import ATTENDED_S
from zotd.core.run_watch import unwatched
from zotd.core.subagents import TaskOrder
from zotd.embed.fleet_place import connect_files, fleet_labels
from zotd.exthost.host import ExtensionTimeouts
from zotd.exthost.jails import ExtensionJails
from zotd.ledger.spending import Spending, spending_of
from zotd.logins.desk import Logins
from zotd.permissions.rules import RuleStore
from zotd.process.handover_store import HandoverStore, handover_store_of
from zotd.process.orphan_reaper import OrphanReaper
from zotd.process.supervisor import unsupervised
from zotd.providers.catalog import Catalog
from zotd.providers.connect import Providers
from zotd.proxy.on_demand import ProxyOnDemand
from zotd.sessions.edit_checks import EditChecks
from zotd.sessions.extension_pool import LINGER_S, ExtensionPool, PoolConfig
from zotd.sessions.loop_command import loop
from zotd.sessions.machine import Machine, Watch
from zotd.sessions.manager import Manager, Spawn
from zotd.sessions.models import Keys, ModelChooser
from zotd.sessions.notifier import Notifier
from zotd.sessions.other_agents import AgentRuns
from zotd.sessions.planner import Planner
from zotd.sessions.session import Session
from zotd.sessions.slash_commands import RESERVED
from zotd.sessions.timer_firings import TimerFirings
from zotd.sessions.timers import Timers
from zotd.sessions.tool_offers import Delegate, Resume
from zotd.sessions.wakes import wake_later
from zotd.store import credentials, keyring_vault
from zotd.store.batches import StoredBatches
from zotd.store.journal import StoredJournal
from zotd.store.key_command import KeyCommand
from zotd.store.logins import LoginStore
from zotd.store.timers import StoredTimers
from zotd.store.trust import Trust
from zotd.telemetry.watching import Telemetry
from zotd.template.forks import Forks
from zotd.workspace.environment import split

CONFIG_FILE = "config.toml"
MODELS_FILE = "models.json"
CREDENTIALS_FILE = "auth.json"


class Instruments(Struct, frozen=True):
    """What the caller has of its own: a program its tools, a test the rest."""

    probe: Probe | None = None
    """Called at the points of each run, `runs.context.POINTS`."""
    clock: Callable[[], float] = time.time
    """The time that requests to models are dated with, and that timers look at, in seconds since the epoch."""
    tools: Sequence[Tool] = ()
    """Offered to every session beside the built-in ones; their names differ from those."""
    guard: CallGuard | None = None
    """Asked about every tool call, before the guards of extensions."""


REAL = Instruments()


class EmbeddedParts(Struct, frozen=True):
    """The assembled parts; release them with `close`."""

    config: CurrentConfig
    """The current configuration; all parts read it from here, so replacing it affects all of them."""
    manager: Manager
    timers: Timers | None
    """Prompts that are sent when they are due, while its `run` does; None: only a daemon has any."""
    batches: Batches | None
    """Prompts that any daemon of the database runs, while its `run` does; None: only a daemon has any."""
    models: ModelChooser
    catalog: Catalog
    spending: Spending
    """Starts at zero; the daemon then loads what was spent before, with `recall`."""
    reaper: OrphanReaper
    """Ends processes that extensions leave behind."""
    handover_store: HandoverStore | None
    """Processes that outlive this program; None if there can be none."""
    forks: Forks | None
    """Forks the Python programs among the extensions."""
    telemetry: Telemetry
    close: Callable[[], Awaitable[None]]

    async def stop(self) -> None:
        """End all sessions and processes, except processes that are kept for the next daemon."""
        if self.handover_store is not None:
            # First: whether this stop is a restart decides which processes `manager.stop` leaves running.
            await self.handover_store.decide()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.manager.planner.edit_checks.stop(), name="stop of language servers")
            await self.manager.stop()
        if self.forks is not None:
            await self.forks.stop()  # before the ledger is closed, which has them
        if self.handover_store is not None:
            self.handover_store.close()
        await self.reaper.close()
        await self.telemetry.close()


def assemble(
    *,
    home: Path,
    env: Mapping[str, str],
    config: Config,
    journal: StoredJournal | None,
    spawn: Spawn,
    addressed: bool,
    instruments: Instruments = REAL,
) -> EmbeddedParts:
    """Create a manager and everything it needs; `addressed` is as in `sessions.manager.Manager`."""
    current = CurrentConfig(config if addressed else _for_stdio(config))
    catalog = Catalog.load(home / MODELS_FILE, config)
    proxy = ProxyOnDemand(paths.outlet_dir(env), str(home), spawn)
    grounds = _grounds(home, env, current, catalog, proxy=proxy, spawn=spawn, addressed=addressed)
    env = unsupervised(env)
    providers = Providers(catalog, env)
    models = _models(home, env, current, catalog=catalog, providers=providers, spawn=spawn)
    spending, telemetry = spending_of(current, journal), Telemetry.opened(config.telemetry)
    planner = Planner(
        models,
        ExtensionPool(grounds, spawn=spawn),
        spending,
        RuleStore(config.rules, path=home / CONFIG_FILE),
        config=current,
        machine=_machine(
            _places(home, env),
            proxy,
            instruments,
            notifier=_notifier(current, grounds, spawn),
            watch=_watch(telemetry, addressed=addressed),
            reaper=grounds.reaper,
        ),
        edit_checks=EditChecks(home, current, spawn=spawn, jails=grounds.jails, reaper=grounds.reaper),
    )
    manager = Manager(
        journal=journal,
        models=models,
        planner=planner,
        spawn=spawn,
        config=current,
        environment=env,
        addressed=addressed,
    )
    _connect(manager, config, home, spawn)
    return EmbeddedParts(
        config=current,
        manager=manager,
        timers=_timers(manager, instruments, spawn) if addressed else None,
        batches=_batches(manager, spawn) if addressed else None,
        models=models,
        catalog=catalog,
        spending=spending,
        reaper=grounds.reaper,
        handover_store=grounds.handover_store,
        forks=grounds.forks,
        telemetry=telemetry,
        close=providers.close,
    )


def _connect(manager: Manager, config: Config, home: Path, spawn: Spawn) -> None:
    """Give the planner what needs the manager, or what few sessions use."""
    connect_files(manager.planner, config, home, spawn)
    _connect_subagents(manager)
    manager.planner.other_agents.connect(partial(_agent_runs, manager.config, spawn))


def _notifier(current: CurrentConfig, grounds: PoolConfig, spawn: Spawn) -> Notifier:
    return Notifier(lambda: current.value.approval.notify_command, env=grounds.environment.variables, spawn_task=spawn)


def _connect_subagents(manager: Manager) -> None:
    """Have subagents do tasks; what runs them is loaded with the first one."""

    @cache
    def loaded() -> tuple[Delegate, Delegate, Resume]:
        from zotd.sessions.background_subagents import BackgroundSubagents  # noqa: PLC0415  (few sessions have any)
        from zotd.sessions.subagents import Subagents  # noqa: PLC0415

        subagents = Subagents(manager)
        background = BackgroundSubagents(manager, subagents)
        return subagents.run, background.begin, background.resume

    async def delegate(parent: Session, order: TaskOrder, context: ToolContext) -> ToolOutcome:
        run, begin, _ = loaded()
        return await (begin if order.background else run)(parent, order, context)

    async def resume(parent: Session) -> None:
        await loaded()[2](parent)

    manager.planner.offers.connect(delegate, resume)


def _timers(manager: Manager, instruments: Instruments, spawn: Spawn) -> Timers | None:
    journal = manager.journal
    if journal is None:
        return None
    timers = Timers(
        manager,
        StoredTimers(journal.database, journal.ownership),
        TimerFirings(manager, journal),
        spawn=spawn,
        clock=instruments.clock,
        probe=instruments.probe,
    )
    manager.commands.connect(partial(loop, timers))
    manager.planner.offers.connect_timers(partial(wake_later, timers))
    return timers


def _batches(manager: Manager, spawn: Spawn) -> Batches | None:
    journal = manager.journal
    if journal is None:
        return None
    fleet = manager.config.value.fleet
    return Batches(
        manager,
        StoredBatches(journal.database, journal.ownership),
        PromptRuns(manager, journal),
        spawn=spawn,
        labels=lambda: fleet_labels(fleet),
        places=lambda: fleet.prompts_at_once,
    )


def _agent_runs(config: CurrentConfig, spawn: Spawn, machine: Machine) -> AgentRuns:
    from zotd.sessions.agent_runs import LoadedAgentRuns  # noqa: PLC0415  (few sessions are run by another agent)

    return LoadedAgentRuns(machine, config=config, spawn=spawn)


def _places(home: Path, env: Mapping[str, str]) -> Mapping[str, str]:
    return {
        "ZOT_HOME": str(home),
        "ZOTD_SOCKET": paths.socket_path(env),
        "ZOTD_OUTLETS": paths.outlet_dir(env),
    }


def _machine(
    places: Mapping[str, str],
    proxy: ProxyOnDemand,
    instruments: Instruments,
    *,
    notifier: Notifier,
    watch: Watch,
    reaper: OrphanReaper,
) -> Machine:
    return Machine(
        Path(places["ZOT_HOME"]),
        Path.home(),
        proxy,
        notify=notifier.tell,
        probe=instruments.probe,
        watch=watch,
        clock=instruments.clock,
        tools=instruments.tools,
        guard=instruments.guard,
        reaper=reaper,
        places=places,
    )


def _watch(telemetry: Telemetry, *, addressed: bool) -> Watch:
    # The figures are for `daemon.metrics`, which only a daemon answers.
    return telemetry.watch if addressed or telemetry.makes_traces else unwatched


def _grounds(
    home: Path,
    env: Mapping[str, str],
    current: CurrentConfig,
    catalog: Catalog,
    *,
    proxy: ProxyOnDemand,
    spawn: Spawn,
    addressed: bool,
) -> PoolConfig:
    config, reaper = current.value, OrphanReaper(home, spawn)
    # As long as the processes of an unused workspace would have been kept.
    within_s = config.limits.session_unload_s + LINGER_S
    handover_store = handover_store_of(env, reaper, within_s=within_s) if addressed else None
    reaper.sweep(spares_kept=not addressed)  # after the handover store, which takes over processes that this would end
    return PoolConfig(
        places=ExtensionSources(
            home=home,
            python=config.ext.python,
            has_daemon=addressed,
            claude_settings=Path.home() / ".claude" / "settings.json" if config.ext.claude_hooks else None,
        ),
        environment=split(unsupervised(env), catalog.key_variables(), None),
        limits=ExtensionTimeouts(
            config.ext.tool_timeout_s, config.ext.command_timeout_s, config.ext.intercept_timeout_s
        ),
        listed_tools=config.ext.listed_mcp_tools,
        trust=Trust(home, partial(programs, config.ext.python)),
        reaper=reaper,
        reserved_commands=RESERVED,
        handover_store=handover_store,
        forks=Forks(unsupervised(env), spawn, reaper.ledger, lasts=addressed),
        jails=ExtensionJails(
            spawn, places=_places(home, env), proxy=proxy, is_on=lambda: current.value.sandbox.extensions
        ),
    )


def _logins(home: Path, config: CurrentConfig, catalog: Catalog, *, spawn: Spawn) -> Logins:
    # Looked for when a login is read or written: asking the system for its keyring takes a tenth of a second.
    vault = cache(partial(keyring_vault.find, home))
    return Logins(
        LoginStore(home, vault, prefers_vault=lambda: config.value.keyring),
        config,
        titles=lambda name: catalog.by_name[name].title,
        spawn=spawn,
    )


def _models(
    home: Path,
    env: Mapping[str, str],
    config: CurrentConfig,
    *,
    catalog: Catalog,
    providers: Providers,
    spawn: Spawn,
) -> ModelChooser:
    return ModelChooser(
        catalog=catalog,
        providers=providers,
        keys=Keys(
            stored=partial(credentials.load, home / CREDENTIALS_FILE),
            store=partial(credentials.change, home / CREDENTIALS_FILE),
            command=_key_command(config, env),
            inherited={name: env[name] for name in catalog.key_variables() | catalog.other_variables() if name in env},
        ),
        logins=_logins(home, config, catalog, spawn=spawn),
        config=config,
    )


def _for_stdio(config: Config) -> Config:
    """Adapt the configuration for a program without a user to ask: approvals are denied, and retries end sooner."""
    limits = structs.replace(config.limits, retry_patience_s=min(config.limits.retry_patience_s, ATTENDED_S))
    approval = structs.replace(config.approval, unattended="deny")
    return structs.replace(config, limits=limits, approval=approval)


def _key_command(
    config: CurrentConfig, env: Mapping[str, str]
) -> Callable[[], Callable[[str], Awaitable[str | None]] | None]:
    """Return a function that returns the key lookup of the configured command, or None if none is configured."""
    # The same object as long as the setting is unchanged: it caches keys, so a password manager asks only once.
    last: tuple[Sequence[str], KeyCommand] | None = None

    def current() -> Callable[[str], Awaitable[str | None]] | None:
        nonlocal last
        argv = config.value.api_key_command
        if not argv:
            return None
        if last is None or last[0] != argv:
            last = argv, KeyCommand(argv, env=env)
        return last[1].key

    return current
