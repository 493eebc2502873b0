"""One session's questions to people: who decides, and what everybody else is told.

    pending --decide, expire, cancel--> resolved        the first one wins; the newest `KEPT` are remembered

No clock and no I/O: `zotd.permissions.approvals` records what comes out of this, and tells those who wait.
"""

from collections.abc import Sequence
from dataclasses import dataclass

KEPT = 512
"""Resolved ones that are remembered, for those who decide too late: a client is seconds behind, not hundreds of
questions."""

ALLOW, DENY, CANCELLED = "allow", "deny", "cancelled"
"""How a question can be resolved; the last one when nobody needs the answer any more."""


@dataclass(frozen=True, slots=True)
class ApprovalResolution:
    """How a question was resolved."""

    decision: str
    """`ALLOW`, `DENY` or `CANCELLED`."""
    by: str
    """Who has decided, as others know them; empty: nobody, and `reason` says why it is over."""
    scope: str = "once"
    """`once`, `session` or `always`."""
    reason: str | None = None

    @property
    def sentence(self) -> str:
        """For whoever came too late."""
        done = "allowed" if self.decision == ALLOW else "denied"
        return f"{self.by} has {done} it already" if self.by else f"it is no longer pending: {self.reason}"


@dataclass(frozen=True, slots=True)
class Won:
    """This decision is the one."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The decision came too late: `first` had already resolved the question."""

    first: ApprovalResolution


@dataclass(frozen=True, slots=True)
class Stale:
    """It is about other arguments than those that would run; the question stays."""


@dataclass(frozen=True, slots=True)
class UnknownQuestion:
    """There is no such question, or it was resolved long ago."""


Outcome = Won | Lost | Stale | UnknownQuestion


@dataclass(frozen=True, slots=True)
class _Pending:
    digest: str
    expires: float | None


class ApprovalTable:
    """The pending and resolved questions of one session."""

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}
        self._resolved: dict[str, ApprovalResolution] = {}

    @property
    def pending(self) -> Sequence[str]:
        """The ids of those that wait, oldest first."""
        return list(self._pending)

    @property
    def due(self) -> float | None:
        """When the next one should have been decided, in `expire`'s seconds; None: none has a deadline."""
        return min((one.expires for one in self._pending.values() if one.expires is not None), default=None)

    def request(self, key: str, digest: str, *, expires: float | None = None) -> None:
        """Somebody has to decide about arguments with this digest; `expires`: until then, in `expire`'s seconds.

        An id that was used already changes nothing: what is pending stays as it is, what is resolved is.
        """
        if key not in self._resolved:
            self._pending.setdefault(key, _Pending(digest, expires))

    def decide(self, key: str, digest: str, resolution: ApprovalResolution) -> Outcome:
        """A person decides about arguments with this digest."""
        if key in self._resolved:
            return Lost(self._resolved[key])
        if key not in self._pending:
            return UnknownQuestion()
        if self._pending[key].digest != digest:
            return Stale()
        self._resolve(key, resolution)
        return Won()

    def end(self, key: str, resolution: ApprovalResolution) -> bool:
        """Resolve it without a person, whatever its arguments are; False when it is not pending any more."""
        if key not in self._pending:
            return False
        self._resolve(key, resolution)
        return True

    def overdue(self, now: float) -> Sequence[str]:
        """Those that should have been decided by `now`, oldest first; `end` them."""
        return [key for key, one in self._pending.items() if one.expires is not None and one.expires <= now]

    def resolved(self, key: str, resolution: ApprovalResolution) -> None:
        """It was resolved before a restart."""
        self._pending.pop(key, None)
        self._remember(key, resolution)

    def _resolve(self, key: str, resolution: ApprovalResolution) -> None:
        del self._pending[key]
        self._remember(key, resolution)

    def _remember(self, key: str, resolution: ApprovalResolution) -> None:
        self._resolved.setdefault(key, resolution)
        if len(self._resolved) > KEPT:
            del self._resolved[next(iter(self._resolved))]
