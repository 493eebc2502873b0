"""Puts the parts together that every program of ours needs which runs sessions: the daemon, `zot rpc`, a Runtime."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from zotd.config import Config
from zotd.contributions.discovery import ExtensionSources, programs
from zotd.core.ports import Probe
from zotd.core.retry import ATTENDED_S, Policy
from zotd.exthost.host import Limits
from zotd.ledger.spending import Spending
from zotd.permissions.config import ApprovalConfig
from zotd.permissions.rules import RuleStore
from zotd.process.estate import Estate, estate_of
from zotd.process.strays import Strays
from zotd.process.supervisor import unsupervised
from zotd.providers.catalog import Catalog
from zotd.providers.connect import Providers
from zotd.sessions.defaults import SessionDefaults
from zotd.sessions.extension_pool import LINGER_S, ExtensionPool, PoolConfig
from zotd.sessions.manager import Manager, Spawn
from zotd.sessions.models import Defaults, Keys, Models
from zotd.sessions.notifier import Notifier
from zotd.sessions.planner import Planner, PlannerConfig
from zotd.sessions.slash_commands import RESERVED
from zotd.store import credentials
from zotd.store.journal import Journal
from zotd.store.key_command import KeyCommand
from zotd.store.trust import Trust
from zotd.workspace.environment import split

CONFIG_FILE = "config.toml"
MODELS_FILE = "models.json"
CREDENTIALS_FILE = "auth.json"


@dataclass(frozen=True, slots=True)
class Parts:
    """What was built; `close` lets go of it."""

    manager: Manager
    models: Models
    catalog: Catalog
    spending: Spending
    """It knows of nothing that was spent before; the daemon has it `recall` that."""
    strays: Strays
    """The processes that extensions leave behind."""
    notifier: Notifier
    estate: Estate | None
    """The processes that outlive this program, if some do."""
    close: Callable[[], Awaitable[None]]

    async def stop(self) -> None:
        """End every session and every process, but for those that the program that follows goes on with."""
        if self.estate is not None:
            await self.estate.decide()
        await self.manager.stop()
        if self.estate is not None:
            self.estate.close()
        await self.strays.close()


def assemble(
    *,
    home: Path,
    env: Mapping[str, str],
    config: Config,
    journal: Journal | None,
    spawn: Spawn,
    addressed: bool,
    probe: Probe | None = None,
) -> Parts:
    """A manager and what it works with.

    `addressed`: as in `sessions.terms.Terms`; `probe`: as in `sessions.planner.Desk`.
    """
    catalog = Catalog.load(home / MODELS_FILE)
    grounds = _grounds(home, env, config, catalog, spawn=spawn, addressed=addressed)
    env = unsupervised(env)
    providers = Providers(catalog, env)
    models = _models(home, env, config, catalog=catalog, providers=providers)
    extension_pool = ExtensionPool(grounds, spawn=spawn)
    notifier = Notifier(config.approval.notify_command, env=grounds.environment.variables, spawn_task=spawn)
    approval_config = ApprovalConfig(
        rule_store=RuleStore(config.rules, path=home / CONFIG_FILE),
        unattended=config.approval.unattended if addressed else "deny",  # nobody can decide over standard input
        ttl_s=config.approval.ttl_s,
        notify=notifier.tell,
    )
    desk = PlannerConfig(
        home=home,
        user=Path.home(),
        compact_at=config.compact_at,
        stream_guarded=config.guard.stream,
        retries=retries(config, addressed=addressed),
        approval_config=approval_config,
        probe=probe,
    )
    spending = Spending(config.budget)
    planner = Planner(models, extension_pool, spending, desk)
    manager = Manager(
        journal=journal,
        models=models,
        planner=planner,
        extension_pool=extension_pool,
        spawn=spawn,
        terms=SessionDefaults(
            environment=env,
            unload_s=config.limits.session_unload_s,
            mode=config.approval.mode,
            reasoning=config.reasoning,
            max_steps=config.max_steps,
            addressed=addressed,
            approval_config=approval_config,
        ),
    )
    return Parts(manager, models, catalog, spending, grounds.strays, notifier, grounds.estate, providers.close)


def _grounds(
    home: Path, env: Mapping[str, str], config: Config, catalog: Catalog, *, spawn: Spawn, addressed: bool
) -> PoolConfig:
    strays = Strays(home, spawn)
    # As long as a workspace's processes would have stayed that nobody came back to.
    within_s = config.limits.session_unload_s + LINGER_S
    estate = estate_of(env, strays, within_s=within_s) if addressed else None
    strays.sweep(spares_kept=not addressed)  # but for what the estate has taken
    return PoolConfig(
        places=ExtensionSources(home=home, python=config.ext.python, has_daemon=addressed),
        environment=split(unsupervised(env), catalog.key_variables(), None),
        limits=Limits(config.ext.tool_timeout_s, config.ext.command_timeout_s, config.ext.intercept_timeout_s),
        trust=Trust(home, partial(programs, config.ext.python)),
        strays=strays,
        reserved_commands=RESERVED,
        estate=estate,
    )


def _models(home: Path, env: Mapping[str, str], config: Config, *, catalog: Catalog, providers: Providers) -> Models:
    return Models(
        catalog=catalog,
        providers=providers,
        keys=Keys(
            stored=partial(credentials.load, home / CREDENTIALS_FILE),
            store=partial(credentials.change, home / CREDENTIALS_FILE),
            command=key_command(config, env),
            inherited={name: env[name] for name in catalog.key_variables() if name in env},
        ),
        defaults=defaults(config),
    )


def retries(config: Config, *, addressed: bool = True) -> Policy:
    """How long runs wait for a model that fails; where the embedding program waits for them (not `addressed`), less."""
    patience_s = config.limits.retry_patience_s
    return Policy(patience_s if addressed else min(patience_s, ATTENDED_S), config.limits.retry_pause_s)


def defaults(config: Config) -> Defaults:
    """What the configuration says about models."""
    urls = {name: row.base_url for name, row in config.providers.items() if row.base_url}
    return Defaults(provider=config.provider, model=config.model, base_urls=urls)


def key_command(config: Config, env: Mapping[str, str]) -> Callable[[str], Awaitable[str | None]] | None:
    """Asks the configured program for a vendor's key; None: there is no such program."""
    return KeyCommand(config.api_key_command, env=env).key if config.api_key_command else None
