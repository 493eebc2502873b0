"""Decides about the calls that a session asks about: `Agent(can_use_tool=…)`."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from zot.errors import AgentError, OptionError
from zot.permissions import Allow, CallCheck, CallContext, CanUseTool, Deny, check_function
from zotd.wire import events
from zotd.wire.api import Approve

log = logging.getLogger(__name__)


DECIDE_WITHIN_S = 300.0
"""Time limit of `can_use_tool` in seconds: long enough for a person who is asked."""

Send = Callable[[Approve], Awaitable[None]]
"""Sends a decision; raises AgentError if the call is not pending any more."""


class Approver:
    """Answers a session's questions about tool calls with a function of the program."""

    def __init__(self, can_use_tool: CanUseTool, *, within_s: float) -> None:
        """A decision that takes longer than `within_s` seconds is a denial."""
        self._can_use_tool = can_use_tool
        self._within_s = within_s

    async def serve(self, asked: AsyncIterator[events.Event], send: Send) -> None:
        """Decide about each question in `asked`, several at once, until this is cancelled.

        A question that is over cancels the function that decides about it.
        """
        deciding: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as tasks:
            async for event in asked:
                if isinstance(event, events.ApprovalRequested):
                    task = tasks.create_task(
                        self._answer(event, send, deciding), name=f"decision about {event.tool_id}"
                    )
                    deciding[event.approval] = task
                elif isinstance(event, events.ApprovalResolved) and event.approval in deciding:
                    deciding.pop(event.approval).cancel()

    async def _answer(
        self,
        asked: events.ApprovalRequested,
        send: Send,
        deciding: dict[str, asyncio.Task[None]],
    ) -> None:
        decision = await self._decision(asked)
        args = decision.args if isinstance(decision, Allow) else None
        deciding.pop(asked.approval, None)  # what is decided is not cancelled by its own end
        approve = Approve(
            session=asked.session or "",
            approval=asked.approval,
            args_digest=asked.args_digest,
            decision="allow" if isinstance(decision, Allow) else "deny",
            reason=decision.reason if isinstance(decision, Deny) else None,
            args=None if args is None else dict(args),
        )
        try:
            await send(approve)
        except AgentError as error:
            log.info("the decision about %s came too late: %s", asked.tool, error)

    async def _decision(self, asked: events.ApprovalRequested) -> Allow | Deny:
        context = CallContext(asked.tool_id, asked.preview or "")
        check = CallCheck(self._can_use_tool, "can_use_tool", self._within_s)
        decision = await check.decision(asked.tool, asked.args, context)
        return decision or Deny("can_use_tool returned None; it must return Allow() or Deny(reason)")


def approver_of(can_use_tool: CanUseTool | None, decide_within_s: float | None) -> Approver | None:
    """Return the approver of these options; None: there is none. Raises OptionError for a wrong one."""
    within_s = seconds_of(decide_within_s)
    if can_use_tool is None:
        return None
    check_function("can_use_tool", can_use_tool)
    return Approver(can_use_tool, within_s=within_s)


def seconds_of(decide_within_s: object) -> float:
    """Return the time limit of decisions in seconds; raises OptionError for what is none."""
    if decide_within_s is None:
        return DECIDE_WITHIN_S
    if isinstance(decide_within_s, bool) or not isinstance(decide_within_s, int | float) or not decide_within_s > 0:
        raise OptionError(f"decide_within_s must be a number of seconds above 0, not {decide_within_s!r:.80}")
    return decide_within_s


@asynccontextmanager
async def deciding(approver: Approver, asked: AsyncIterator[events.Event], send: Send) -> AsyncIterator[None]:
    """Have the approver decide about the calls of a session, for the block; see `Approver.serve`."""
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(approver.serve(asked, send), name="zot approver")
        try:
            yield
        finally:
            serving.cancel()
