"""The port through which figures and traces learn of a run what no record says; records pass through the ledger."""

from typing import Protocol

from msgspec import Struct


class GuardAnswer(Struct, frozen=True):
    """What a guard said, or that it said nothing."""

    key: str
    """Id of the question, which its span is named after (`RunWatch.traceparent`)."""
    extension: str
    event: str
    tool_id: str
    """The call that it was asked about; empty: it was not about a call."""
    ended: float
    """Time in seconds since the epoch."""
    took_s: float
    outcome: str
    """`allowed`, `changed`, `blocked` or `unanswered`."""


class NestedCall(Struct, frozen=True):
    """A tool call that an extension made, and that has ended."""

    key: str
    tool: str
    extension: str
    """Who made it."""
    within: str
    """The call during which it was made; empty: there was none."""
    ended: float
    """Time in seconds since the epoch."""
    took_s: float
    is_error: bool


class RunWatch(Protocol):
    """Follows the runs of one session, for figures and traces. Methods return at once and never raise."""

    makes_traces: bool
    """Whether `traceparent` ever returns one."""

    def traceparent(self, key: str) -> str:
        """Return the `traceparent` for the call, or the question to a guard, with this id; empty: no traces are made."""
        ...

    def guarded(self, answer: GuardAnswer) -> None:
        """A guard was asked."""
        ...

    def nested(self, call: NestedCall) -> None:
        """An extension has made a call."""
        ...


class Unwatched:
    """No one follows the session."""

    makes_traces = False

    def traceparent(self, key: str) -> str:
        """Return an empty text."""
        del key
        return ""

    def guarded(self, answer: GuardAnswer) -> None:
        """Do nothing."""

    def nested(self, call: NestedCall) -> None:
        """Do nothing."""


def unwatched(*_: object) -> RunWatch:
    """Follow nothing."""
    return Unwatched()
