"""What all sessions share about approvals: the rules, and what happens when nobody is there to decide."""

from collections.abc import Callable
from dataclasses import dataclass, field

from zotd.permissions.rules import RuleStore


@dataclass(slots=True)
class ApprovalConfig:
    """How calls are overseen (`[approval]` and `[[rules]]` of the configuration).

    One for all sessions: it changes when the configuration is read again, and holds for runs that begin afterwards.
    """

    rule_store: RuleStore = field(default_factory=RuleStore)
    unattended: str = "deny"
    """What becomes of a question when nobody is attached who can decide: see `permissions.unattended`."""
    ttl_s: float | None = None
    """How long a question may wait; None: for ever."""
    notify: Callable[[str], None] = lambda _: None
    """Tells the user, who is not looking, this sentence; returns at once."""
