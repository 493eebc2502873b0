"""What `Authorization` decides by: the rules, guards and approvals of one session."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from zotd.core.permissions import Policy
from zotd.core.ports import Tool
from zotd.core.web_access import WebAccess
from zotd.jail import Jail, NetworkOutlet
from zotd.permissions.approvals import SessionApprovals
from zotd.permissions.call_hosts import no_access, no_outlet
from zotd.permissions.decisions import ApprovalAnswer
from zotd.permissions.file_grants import OnceGrants
from zotd.permissions.session_jail import no_jail
from zotd.proxy import HostDecider
from zotd.proxy.rules import HostRule


class PlanGate(Protocol):
    """Knows which calls propose a plan, and follows the questions about them."""

    def concerns(self, key: str, tool: Tool, args: Mapping[str, object]) -> bool:
        """Return whether the call `key` may run only if a person approves the plan in these arguments."""
        ...

    async def proposed(self, key: str, args: Mapping[str, object]) -> None:
        """Take note that a person is asked now, or again after a restart. Raises StorageError."""
        ...

    async def answered(self, key: str, answer: ApprovalAnswer) -> str:
        """Take note of what came of that; returns what the model is told of a refusal. Raises StorageError."""
        ...

    def given_up(self, key: str) -> None:
        """Take note that the question has ended with its call."""
        ...


@dataclass(frozen=True, slots=True)
class AuthorizationContext:
    """Rules, guards and approvals of one session."""

    policy: Callable[[], Policy]
    """Rules and mode as they are now."""
    approvals: SessionApprovals
    cwd: str
    home: str | None
    """What `~` stands for where the tools run."""
    run: Callable[[], str | None]
    """The run in progress."""
    recorded: Callable[[str, str], str | None]
    """The question about a call, with arguments of this digest, that was on record before a restart."""
    way: str
    """What becomes of an approval when no client can decide: `park`, `deny` or `rules`."""
    notify: Callable[[str], None]
    """Notifies an absent user that an approval is pending."""
    ttl_s: float | None = None
    jail: Callable[[str], Awaitable[Jail | None]] = no_jail
    """The jail of the session for a command, or for an empty text, in the mode `workspace`; None: none is possible, which users
    have been told."""
    hosts: Callable[[], Sequence[HostRule]] = tuple
    """The hosts that commands in a jail may reach by the configuration as it is now."""
    outlet: Callable[[HostDecider], Awaitable[NetworkOutlet | None]] = no_outlet
    """An outlet for commands in a jail; None: there can be none, which users have been told."""
    is_open: Callable[[], bool] = lambda: False
    """Whether tools that need no jail reach all hosts of the Internet without a question."""
    access: Callable[[HostDecider], WebAccess | None] = no_access
    """The network of tools that need no jail; None: they have none."""
    once: OnceGrants = field(default_factory=OnceGrants)
    """What commands may change when they are run again; `jail` heeds it."""
    plans: PlanGate | None = None
    """Which calls propose a plan that a person has to approve; None: none does."""
