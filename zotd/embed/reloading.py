"""Takes over a configuration that has changed, while the daemon runs.

    read ──> bad: the old one stays, and everybody who asks hears why
        └──> good: what can change now does; the rest is named, and holds after a restart

The new configuration replaces the old one as a whole (`config.current.CurrentConfig`). Three things that are derived from
it are told as well: the log level, the permission rules and the budgets. A run keeps what it began with.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from zotd.config import Config, ConfigError, LoadedConfig
from zotd.core.ports import StorageError
from zotd.embed.assembly import EmbeddedParts
from zotd.embed.widening import narrowed
from zotd.wire.api import ConfigReloaded
from zotd.wire.content import Tokens
from zotd.wire.errors import Code, CommandError

RESTART = ("channels.", "ext.", "local.", "websocket.")
"""Keys of what is started with them, and runs. All others are read when they are needed."""

KEPT = "the previous configuration stays in effect"

log = logging.getLogger(__name__)


class Configuration:
    """The configuration that holds now."""

    def __init__(
        self,
        loaded: LoadedConfig,
        *,
        read: Callable[[], LoadedConfig],
        parts: EmbeddedParts,
        spent: Callable[[str], Awaitable[Tokens]],
    ) -> None:
        """`read` reads it again and raises ConfigError, in a thread; `spent`: what was spent since then, for budgets."""
        self._loaded = loaded
        self._read = read
        self._parts = parts
        self._spent = spent
        self._problems: Sequence[str] = list(loaded.warnings)
        # Held over the reading: of two that overlap, the one that has read last must be the one that is taken over last.
        self._reading = asyncio.Lock()

    @property
    def config(self) -> Config:
        """Its values."""
        return self._loaded.config

    def problems(self) -> Sequence[str]:
        """What is wrong with the configuration that was read last: a sentence each, for `daemon.status`."""
        return self._problems

    async def reload(self, *, by_signal: bool = False) -> ConfigReloaded:
        """Read it again, and take over what has changed; `by_signal`: what `embed.widening` lets pass of it.

        Raises:
            CommandError: it cannot be used; nothing has changed, and `daemon.status` says so until it can.
        """
        async with self._reading:
            try:
                found = await asyncio.to_thread(self._read)
            except ConfigError as error:
                sentence = f"{error}; {KEPT}"
                self._problems = [sentence]
                log.error("%s", sentence)  # noqa: TRY400  (the sentence says it all)
                raise CommandError(Code.CONFLICT, sentence) from error
            waiting: list[str] = []
            if by_signal:
                found, waiting = narrowed(found, self._loaded.values)
            changed = _changed(self._loaded, found)
            self._problems = list(found.warnings)
            if changed:
                await self._apply(found.config)
            self._loaded = _with_old(found, self._loaded)
        later = [name for name in changed if name.startswith(RESTART)]
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
    """The keys whose values differ, by name; also those that only one of them has."""
    names = {**old.values, **new.values}
    return sorted(name for name in names if old.values.get(name) != new.values.get(name))


def _with_old(new: LoadedConfig, old: LoadedConfig) -> LoadedConfig:
    """What holds now, by name: keys that wait for a restart have their old values, and are named again next time."""
    waiting = {name: value for name, value in old.values.items() if name.startswith(RESTART)}
    return replace(new, values={**new.values, **waiting})
