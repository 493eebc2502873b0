"""Takes over a configuration that has changed, while the daemon runs.

    read ──> bad: the old one stays, and everybody who asks hears why
        └──> good: what can change now does; the rest is named, and holds after a restart

What is taken over goes to the objects that use it, one by one: they are read from there by what begins afterwards, so a
run keeps what it began with.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from zotd.api.house import House
from zotd.config import Config, ConfigError, Loaded
from zotd.core.ports import StorageError
from zotd.embed.assembly import Parts, defaults, key_command, retries
from zotd.embed.widening import narrowed
from zotd.wire.api import ConfigReloaded
from zotd.wire.content import Tokens
from zotd.wire.errors import Code, CommandError

RESTART = ("channels.", "ext.", "local.", "websocket.")
"""Keys of what is started with them, and runs. All others are read when they are needed."""

KEPT = "the configuration that was read before still holds"

log = logging.getLogger(__name__)


class Configuration:
    """The configuration that holds now."""

    def __init__(
        self,
        loaded: Loaded,
        *,
        read: Callable[[], Loaded],
        parts: Parts,
        house: House,
        env: Mapping[str, str],
    ) -> None:
        """`read` reads it again and raises ConfigError, in a thread; `env` is that of programs that it names."""
        self._loaded = loaded
        self._read = read
        self._parts = parts
        self._house = house
        self._env = env
        # Held over the reading: of two that overlap, the one that has read last must be the one that is taken over last.
        self._reading = asyncio.Lock()

    @property
    def config(self) -> Config:
        """Its values."""
        return self._loaded.config

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
                self._house.about_config = [sentence]
                log.error("%s", sentence)  # noqa: TRY400  (the sentence says it all)
                raise CommandError(Code.CONFLICT, sentence) from error
            waiting: list[str] = []
            if by_signal:
                found, waiting = narrowed(found, self._loaded.values)
            changed = _changed(self._loaded, found)
            self._house.about_config = list(found.warnings)
            if changed:
                await self._apply(found.config, changed)
            self._loaded = _with_old(found, self._loaded)
        later = [name for name in changed if name.startswith(RESTART)]
        applied = [name for name in changed if name not in later]
        log.info("the configuration was read again; changed: %s", ", ".join(applied) or "nothing")
        if waiting:
            log.warning("%s: changed, and not taken over by a signal; zotctl reload does that", ", ".join(waiting))
        if later:
            log.warning("these keys hold after a restart of the daemon: %s", ", ".join(later))
        return ConfigReloaded(applied=applied, restart=later, warnings=list(found.warnings))

    async def _apply(self, config: Config, changed: list[str]) -> None:
        logging.getLogger("zotd").setLevel(config.log_level.upper())
        self._change_house(config)
        self._change_sessions(config)
        models = self._parts.models
        models.defaults = defaults(config)
        if "api_key_command" in changed:  # else what it has said stays known, and nobody is asked for a password again
            models.keys = replace(models.keys, command=key_command(config, self._env))
        try:
            await self._parts.spending.change(config.budget, self._spent)
        except StorageError as error:
            log.warning("what is spent of the budget of today cannot be read: %s", error)

    def _change_house(self, config: Config) -> None:
        self._house.lets_nest = config.nested == "submit"
        self._house.presences.attention_s = config.limits.attention_s

    def _change_sessions(self, config: Config) -> None:
        manager = self._parts.manager
        manager.terms = replace(
            manager.terms,
            unload_s=config.limits.session_unload_s,
            mode=config.approval.mode,
            reasoning=config.reasoning,
            max_steps=config.max_steps,
        )
        planner = manager.planner
        planner.desk = replace(
            planner.desk, compact_at=config.compact_at, stream_guarded=config.guard.stream, retries=retries(config)
        )
        approval_config = manager.approval_config
        approval_config.rule_store.replace(config.rules)
        approval_config.unattended = config.approval.unattended
        approval_config.ttl_s = config.approval.ttl_s
        self._parts.notifier.argv = config.approval.notify_command

    def _spent(self, since: str) -> Awaitable[Tokens]:
        return self._house.archive.spent(since)


def _changed(old: Loaded, new: Loaded) -> list[str]:
    """The keys whose values differ, by name; also those that only one of them has."""
    names = {**old.values, **new.values}
    return sorted(name for name in names if old.values.get(name) != new.values.get(name))


def _with_old(new: Loaded, old: Loaded) -> Loaded:
    """What holds now, by name: keys that wait for a restart have their old values, and are named again next time."""
    waiting = {name: value for name, value in old.values.items() if name.startswith(RESTART)}
    return replace(new, values={**new.values, **waiting})
