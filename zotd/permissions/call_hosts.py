"""Which hosts the command of one call may reach: what the configuration allows."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from zotd.config.sections import SandboxSection
from zotd.jail import NetworkOutlet
from zotd.proxy import AllowList, HostDecider, HostDecision, HostError, HostQuestion, parse_rule
from zotd.proxy.default_hosts import DEFAULT_HOSTS
from zotd.proxy.hosts import HostPort

REFUSED_MAX = 5
"""Most hosts that the model is told of after a command; the others are in the log."""


class CallHosts:
    """Decides for the connections of one command; satisfies `zotd.proxy.HostDecider`."""

    def __init__(self, allowed: AllowList) -> None:
        """`allowed`: what the configuration allows."""
        self._allowed = allowed
        self._refused: dict[HostPort, str] = {}

    async def decide(self, question: HostQuestion) -> HostDecision:
        """See `HostDecider`."""
        decision = await self._allowed.decide(question)
        if not decision.allowed and len(self._refused) < REFUSED_MAX:
            self._refused.setdefault(question.remote, decision.reason)
        return decision

    @property
    def refused(self) -> list[str]:
        """What was refused so far, as clauses that follow "it may not"."""
        return [f"connect to {remote} ({reason})" for remote, reason in self._refused.items()]


class AllowedHosts(NamedTuple):
    """What the configuration allows."""

    rules: AllowList
    problems: Sequence[str]
    """What is wrong with hosts that are left out: sentences for people."""


@lru_cache(maxsize=4)
def allowed_hosts(section: SandboxSection) -> AllowedHosts:
    """Return the hosts that commands in a jail may reach by the configuration. Reading the list takes 0.2 ms, once."""
    rules, problems = [], []
    for text in (*(DEFAULT_HOSTS if section.default_hosts else ()), *section.hosts):
        try:
            rules.append(parse_rule(text))
        except HostError as error:
            problems.append(f"a host of sandbox.hosts in config.toml is malformed and left out: {error}")
    return AllowedHosts(AllowList(rules), problems)


def no_hosts() -> AllowList:
    """Return a list that allows none."""
    return AllowList(())


async def no_outlet(decider: HostDecider) -> NetworkOutlet | None:
    """Return None: commands reach no hosts."""
    del decider
    return None
