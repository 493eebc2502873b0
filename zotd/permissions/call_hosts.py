"""Which hosts the command of one call may reach: asks about those that nothing allows, each once.

connection ──> rules ──> allowed, denied
                 └──> asked before? ──> the same answer, or the wait for it
                            └──> a person ──> an answer for this command
"""

import asyncio
from collections.abc import Awaitable, Callable

from zotd.core.permissions import Action, Ruling
from zotd.core.web_access import WebAccess
from zotd.jail import NetworkOutlet
from zotd.proxy import HostDecider, HostDecision, HostQuestion
from zotd.proxy.hosts import HostPort

ASKED_MAX = 10
"""Most hosts that one command may ask about; it could ask without an end."""

REFUSED_MAX = 5
"""Most hosts that the model is told of after a command; all are in the log of the network."""


class CallHosts:
    """Decides for the connections of one command; satisfies `zotd.proxy.HostDecider`. Used on one event loop."""

    def __init__(
        self,
        judge: Callable[[HostQuestion], Ruling],
        ask: Callable[[HostQuestion, Ruling], Awaitable[HostDecision]],
    ) -> None:
        """Ask nothing yet.

        Args:
            judge: what rules and configuration say now.
            ask: asks a person, for this reason. It ends before `zotd.proxy.rules.DECIDE_S`; it is cancelled when the command
                ends.
        """
        self._judge = judge
        self._ask = ask
        self._answers: dict[HostPort, asyncio.Future[HostDecision]] = {}
        self._refused: dict[HostPort, str] = {}

    @property
    def refused(self) -> list[str]:
        """What was refused so far, as clauses that follow "it may not"."""
        return [f"connect to {remote} ({reason})" for remote, reason in self._refused.items()]

    async def decide(self, question: HostQuestion) -> HostDecision:
        """See `HostDecider`. A second connection to a host that is being asked about waits for the same answer."""
        ruling = self._judge(question)
        if ruling.action is Action.ASK:
            decision = await self._asked(question, ruling)
        else:
            decision = HostDecision(ruling.action is Action.ALLOW, ruling.reason)
        if not decision.allowed and len(self._refused) < REFUSED_MAX:
            self._refused[question.remote] = decision.reason
        return decision

    async def _asked(self, question: HostQuestion, ruling: Ruling) -> HostDecision:
        answer = self._answers.get(question.remote)
        if answer is not None:
            return await asyncio.shield(answer)
        if len(self._answers) >= ASKED_MAX:
            reason = f"{ruling.reason}, and the command has asked about {ASKED_MAX} others already"
            return HostDecision(allowed=False, reason=reason)
        answer = self._answers[question.remote] = asyncio.get_running_loop().create_future()
        try:
            decision = await self._ask(question, ruling)
        except BaseException:
            answer.cancel()  # the command has ended, and with it those that wait for the same answer
            raise
        answer.set_result(decision)
        return decision


def no_access(decider: HostDecider) -> WebAccess | None:
    """Return None: tools reach no hosts."""
    del decider
    return None


async def no_outlet(decider: HostDecider) -> NetworkOutlet | None:
    """Return None: commands reach no hosts."""
    del decider
    return None
