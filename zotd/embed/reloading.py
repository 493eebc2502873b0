"""Reloads the configuration while the daemon runs.

    read ──> invalid: the old configuration stays in effect, and the reload fails with the reason
        └──> valid: settings that can change at run time change; the others are listed and apply after a restart

The new configuration replaces the old one as a whole (`config.current.CurrentConfig`). The log level, the permission
rules and the budgets are derived from it, so they are updated as well. Active runs keep their configuration.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from zotd.config import Config, ConfigError, LoadedConfig
from zotd.core.ports import StorageError
from zotd.embed.assembly import EmbeddedParts
from zotd.embed.widening import narrowed
from zotd.wire.api import ConfigReloaded
from zotd.wire.content import Tokens
from zotd.wire.errors import Code, CommandError

RESTART = re.compile(
    r"(channels|ext|fleet|journal|local|telemetry|websocket)\.|models$|providers\.[^.]+\.(?!(base_url|api|login_url|client_id)$)"
)
"""Settings that are only read when a part of the daemon starts. All others are read when needed."""

KEPT = "the previous configuration stays in effect"

log = logging.getLogger(__name__)


class Configuration:
    """The configuration in effect."""

    def __init__(
        self,
        loaded: LoadedConfig,
        *,
        read: Callable[[], LoadedConfig],
        parts: EmbeddedParts,
        spent: Callable[[str], Awaitable[Tokens]],
    ) -> None:
        """Create it from the loaded configuration.

        Args:
            loaded: the configuration with which the daemon was started.
            read: loads it again; called in a thread, may raise ConfigError.
            parts: the parts to update.
            spent: returns what was spent since a time, for changed budgets.
        """
        self._loaded = loaded
        self._read = read
        self._parts = parts
        self._spent = spent
        self._problems: Sequence[str] = list(loaded.warnings)
        # Covers the reading as well: of two concurrent reloads, the one that read last must also be applied last.
        self._reading = asyncio.Lock()

    @property
    def config(self) -> Config:
        """The settings in effect."""
        return self._loaded.config

    def problems(self) -> Sequence[str]:
        """Return the problems of the configuration that was read last, one sentence each, for `daemon.status`."""
        return self._problems

    async def reload(self, *, by_signal: bool = False) -> ConfigReloaded:
        """Load the configuration again and apply changes; with `by_signal` only those that `embed.widening` permits.

        Raises:
            CommandError: it is invalid; nothing has changed, and `daemon.status` reports the problem until it is fixed.
        """
        async with self._reading:
            try:
                found = await asyncio.to_thread(self._read)
            except ConfigError as error:
                sentence = f"{error}; {KEPT}"
                self._problems = [sentence]
                log.error("%s", sentence)  # noqa: TRY400  (a traceback would add nothing)
                raise CommandError(Code.CONFLICT, sentence) from error
            waiting: list[str] = []
            if by_signal:
                found, waiting = narrowed(found, self._loaded.values)
            changed = _changed(self._loaded, found)
            self._problems = list(found.warnings)
            if changed:
                await self._apply(found.config)
            self._loaded = _with_old(found, self._loaded)
        later = [name for name in changed if RESTART.match(name)]
        applied = [name for name in changed if name not in later]
        log.info("the configuration was reloaded; changed: %s", ", ".join(applied) or "nothing")
        if waiting:
            log.warning("%s: changed, but not applied by a signal; run: zotctl reload", ", ".join(waiting))
        if later:
            log.warning("these settings take effect after a restart of the daemon: %s", ", ".join(later))
        return ConfigReloaded(applied=applied, restart=later, warnings=list(found.warnings))

    async def _apply(self, config: Config) -> None:
        self._parts.config.swap(config)
        logging.getLogger("zotd").setLevel(config.log_level.upper())
        self._parts.manager.rules.replace(config.rules)
        try:
            await self._parts.spending.change(config.budget, self._spent)
        except StorageError as error:
            log.warning("today's spending cannot be read: %s", error)


def _changed(old: LoadedConfig, new: LoadedConfig) -> list[str]:
    """Return the names of settings that differ, including those that only one of the two has."""
    names = {**old.values, **new.values}
    return sorted(name for name in names if old.values.get(name) != new.values.get(name))


def _with_old(new: LoadedConfig, old: LoadedConfig) -> LoadedConfig:
    """Return `new` with the old values of settings that need a restart, so that the next reload lists them again."""
    waiting = {name: value for name, value in old.values.items() if RESTART.match(name)}
    return replace(new, values={**new.values, **waiting})
