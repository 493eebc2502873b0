"""The guards of an agent, which see every tool call before it runs: `Agent.guard`."""

from collections.abc import Mapping, Sequence

from zot.permissions import CallCheck, CallContext, Deny, GuardFunction
from zotd.wire.ext import EventInterceptResponse


class CallGuards:
    """The guards of an agent (`Agent.guard`), asked one after another; satisfies `contributions.guards.CallGuard`."""

    def __init__(self, within_s: float) -> None:
        """A guard that takes longer than `within_s` seconds refuses the call."""
        self._within_s = within_s
        self._checks: list[CallCheck] = []

    def add(self, function: GuardFunction) -> None:
        """Ask this function, too, from the next call on; it sees the arguments as those before it have changed them."""
        self._checks.append(CallCheck(function, str(getattr(function, "__name__", function)), self._within_s))

    @property
    def functions(self) -> Sequence[GuardFunction]:
        """The functions, in the order in which they are asked."""
        return tuple(check.function for check in self._checks)

    @property
    def is_needed(self) -> bool:
        """Whether there are guards."""
        return bool(self._checks)

    async def call(self, key: str, tool: str, args: Mapping[str, object]) -> EventInterceptResponse:
        """Ask about a call, until a guard denies it."""
        changed: Mapping[str, object] | None = None
        for check in tuple(self._checks):
            decision = await check.decision(tool, args if changed is None else changed, CallContext(key, ""))
            if isinstance(decision, Deny):
                return EventInterceptResponse(key, block=True, reason=decision.reason)
            if decision is not None and decision.args is not None:
                changed = decision.args
        return EventInterceptResponse(key, modified_args=changed)
