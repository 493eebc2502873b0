"""What guards make of the requests of one run: they may refuse them, change the system prompt, and rewrite replies."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from zotd.contributions.guards import Hooks
from zotd.contributions.toolbox import Toolbox
from zotd.core.caching import digest
from zotd.core.retry import Failure, ModelError
from zotd.exthost.guards import GuardRemark, GuardVerdict
from zotd.runs.context import RunContext


class SentRequest(Struct, frozen=True):
    """How a request was answered; the reply itself is `RequestSender.take()`."""

    toolbox: Toolbox
    """What the model could choose from."""
    seen: str | None
    """The reply's text as guards want people to see it, empty when they hide it; None: as it is."""


class RequestGuard:
    """Asks the guards about one request after the other; made when there is a guard."""

    def __init__(self, plan: RunContext, noted: Callable[[Sequence[GuardRemark]], None]) -> None:
        """`noted` is told what guards did that a reader of the transcript should know."""
        self._noted = noted
        self._is_asked = False
        self.system = plan.system
        """The system prompt, as the guards want it once they have seen it."""
        self.digests = plan.system_digests
        """Of the parts of `system`."""

    async def admit(self, hooks: Hooks, step: int, number: int) -> None:
        """Ask whether the request for this try of this step may be sent.

        Raises:
            ModelError: a guard is against it.
        """
        if not self._is_asked:
            asked = await hooks.system_prompt(self.system)
            self._heed(asked)
            self._is_asked = True
            if asked.value != self.system:
                self.system = asked.value
                self.digests = {**self.digests, "by a guard": digest(asked.value)}
        if number == 1:
            self._heed(await hooks.step(step))

    async def censored(self, hooks: Hooks, text: str) -> str:
        """Return a reply's text as people are to see it; empty: not at all."""
        verdict = await hooks.message(text)
        if verdict.notes:
            self._noted(verdict.notes)
        return "" if verdict.is_blocked else verdict.value

    def _heed(self, verdict: GuardVerdict[str] | GuardVerdict[int]) -> None:
        if verdict.notes:
            self._noted(verdict.notes)
        if verdict.is_blocked:
            raise ModelError(Failure.REFUSED, verdict.reason)
