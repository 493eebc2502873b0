"""The approvals of one session as a state machine: which decision wins, and what later ones are told.

    pending --decide, end--> resolved        the first one wins; the newest `KEPT` are remembered

No clock and no I/O: `zotd.permissions.approvals` records the outcomes and wakes the waiting tasks.
"""

from collections.abc import Sequence

from msgspec import Struct

KEPT = 512
"""Number of resolved approvals kept to answer late decisions. A client lags by seconds, not by hundreds of
approvals, so older ones can be forgotten."""

ALLOW, DENY, CANCELLED = "allow", "deny", "cancelled"
"""Ways to resolve an approval; `CANCELLED` if the answer is no longer needed."""


class ApprovalResolution(Struct, frozen=True):
    """How an approval was resolved, by whom and for how long."""

    decision: str
    """`ALLOW`, `DENY` or `CANCELLED`."""
    by: str
    """Display name of the person who decided; empty if it ended without a decision, see `reason`."""
    scope: str = "once"
    """`once`, `session` or `always`."""
    reason: str | None = None

    @property
    def sentence(self) -> str:
        """Sentence for a client whose decision came too late."""
        done = "allowed" if self.decision == ALLOW else "denied"
        return f"{self.by} has {done} it already" if self.by else f"it is no longer pending: {self.reason}"


class Won(Struct, frozen=True):
    """The decision was the first one and counts."""


class Lost(Struct, frozen=True):
    """The decision came too late: `first` had already resolved the approval."""

    first: ApprovalResolution


class Stale(Struct, frozen=True):
    """The decision is for other arguments than those that would run; the approval stays pending."""


class UnknownQuestion(Struct, frozen=True):
    """No approval has this id, or it was resolved so long ago that it is forgotten."""


Outcome = Won | Lost | Stale | UnknownQuestion


class _Pending(Struct, frozen=True):
    digest: str
    expires: float | None


class ApprovalTable:
    """The pending and resolved approvals of one session."""

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}
        self._resolved: dict[str, ApprovalResolution] = {}

    @property
    def pending(self) -> Sequence[str]:
        """Ids of the pending approvals, oldest first."""
        return list(self._pending)  # a copy: the caller may end approvals while it iterates

    @property
    def due(self) -> float | None:
        """The next deadline, on the clock of `overdue`; None if no pending approval has one."""
        return min((one.expires for one in self._pending.values() if one.expires is not None), default=None)

    def request(self, key: str, digest: str, *, expires: float | None = None) -> None:
        """Add a pending approval for the arguments with this digest.

        Without effect if the id is known already, so that a resolved approval stays resolved.

        Args:
            key: the approval's id.
            digest: digest of the tool and its arguments, see `permissions.digest`.
            expires: deadline on the clock of `overdue`; None for no deadline.
        """
        if key not in self._resolved:
            self._pending.setdefault(key, _Pending(digest, expires))  # the first request counts

    def decide(self, key: str, digest: str, resolution: ApprovalResolution) -> Outcome:
        """Apply a person's decision about the arguments with this digest, if the approval is still pending."""
        if key in self._resolved:  # two clients may decide at the same moment; the second one is told who was first
            return Lost(self._resolved[key])
        if key not in self._pending:
            return UnknownQuestion()
        if self._pending[key].digest != digest:  # the arguments have changed since the client displayed them
            return Stale()
        self._resolve(key, resolution)
        return Won()

    def end(self, key: str, resolution: ApprovalResolution) -> bool:
        """Resolve an approval without a person and without checking its digest; False if it is not pending."""
        if key not in self._pending:
            return False
        self._resolve(key, resolution)
        return True

    def overdue(self, now: float) -> Sequence[str]:
        """Ids of the approvals whose deadline has passed at `now`, oldest first. The caller passes them to `end`."""
        return [key for key, one in self._pending.items() if one.expires is not None and one.expires <= now]

    def resolved(self, key: str, resolution: ApprovalResolution) -> None:
        """Note an approval that the journal says was resolved, during recovery."""
        self._pending.pop(key, None)  # its request need not have been restored
        self._remember(key, resolution)

    def _resolve(self, key: str, resolution: ApprovalResolution) -> None:
        del self._pending[key]
        self._remember(key, resolution)

    def _remember(self, key: str, resolution: ApprovalResolution) -> None:
        self._resolved.setdefault(key, resolution)
        if len(self._resolved) > KEPT:
            del self._resolved[next(iter(self._resolved))]  # the oldest, since a dict keeps its order
