"""Puts the parts together that every program of ours needs which runs sessions: the daemon, `zot rpc`, a Runtime."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from zotd.config import Config
from zotd.core.ports import Probe
from zotd.exthost.host import Limits
from zotd.process.strays import Strays
from zotd.providers.catalog import Catalog
from zotd.providers.connect import Providers
from zotd.sessions.commands import RESERVED
from zotd.sessions.environment import split
from zotd.sessions.finding import Places
from zotd.sessions.hosting import Grounds, Hosting
from zotd.sessions.manager import Manager, Spawn, Terms
from zotd.sessions.models import Defaults, Keys, Models
from zotd.sessions.notifying import Notifier
from zotd.sessions.oversight import Oversight
from zotd.sessions.planner import Desk, Planner
from zotd.sessions.rulebook import Rulebook
from zotd.sessions.spending import Spending
from zotd.store import credentials
from zotd.store.journal import Journal
from zotd.store.key_command import KeyCommand
from zotd.store.trust import Trust

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
    """The processes that extensions leave behind; to be closed after the manager has stopped."""
    close: Callable[[], Awaitable[None]]


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

    `addressed`: as in `sessions.manager.Terms`; `probe`: as in `sessions.planner.Desk`.
    """
    catalog = Catalog.load(home / MODELS_FILE)
    providers = Providers(catalog, env)
    models = _models(home, env, config, catalog=catalog, providers=providers)
    strays = Strays(home, spawn)
    strays.sweep()
    grounds = Grounds(
        places=Places(home=home, python=config.ext.python, has_daemon=addressed),
        environment=split(env, catalog.key_variables(), None),
        limits=Limits(config.ext.tool_timeout_s, config.ext.command_timeout_s, config.ext.intercept_timeout_s),
        trust=Trust(home),
        strays=strays,
        reserved_commands=RESERVED,
    )
    hosting = Hosting(grounds, spawn=spawn)
    oversight = Oversight(
        rulebook=Rulebook(config.rules, path=home / CONFIG_FILE),
        unattended=config.approval.unattended if addressed else "deny",  # nobody can decide over standard input
        ttl_s=config.approval.ttl_s,
        notify=Notifier(config.approval.notify_command, env=grounds.environment.variables, spawn_task=spawn).tell,
    )
    desk = Desk(
        home=home,
        user=Path.home(),
        compact_at=config.compact_at,
        stream_guarded=config.guard.stream,
        oversight=oversight,
        probe=probe,
    )
    spending = Spending(config.budget)
    planner = Planner(models, hosting, spending, desk)
    terms = Terms(
        environment=env,
        unload_s=config.limits.session_unload_s,
        mode=config.approval.mode,
        reasoning=config.reasoning,
        max_steps=config.max_steps,
        addressed=addressed,
        oversight=oversight,
    )
    manager = Manager(journal=journal, models=models, planner=planner, hosting=hosting, spawn=spawn, terms=terms)
    return Parts(manager, models, catalog, spending, strays, providers.close)


def _models(home: Path, env: Mapping[str, str], config: Config, *, catalog: Catalog, providers: Providers) -> Models:
    return Models(
        catalog=catalog,
        providers=providers,
        keys=Keys(
            stored=partial(credentials.load, home / CREDENTIALS_FILE),
            store=partial(credentials.change, home / CREDENTIALS_FILE),
            command=_key_command(config, env),
            inherited={name: env[name] for name in catalog.key_variables() if name in env},
        ),
        defaults=Defaults(
            provider=config.provider,
            model=config.model,
            base_urls={name: row.base_url for name, row in config.providers.items() if row.base_url},
        ),
    )


def _key_command(config: Config, env: Mapping[str, str]) -> Callable[[str], Awaitable[str | None]] | None:
    return KeyCommand(config.api_key_command, env=env).key if config.api_key_command else None
