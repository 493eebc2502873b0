"""Decides about the calls that a session asks about: `Agent(can_use_tool=…)`."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from zot.errors import AgentError
from zot.permissions import Allow, CallCheck, CallContext, CanUseTool, Deny
from zotd.wire import events
from zotd.wire.api import Approve

log = logging.getLogger(__name__)


class Approver:
    """Answers a session's questions about tool calls with a function of the program."""

    def __init__(self, can_use_tool: CanUseTool, *, within_s: float) -> None:
        """A decision that takes longer than `within_s` seconds is a denial."""
        self._can_use_tool = can_use_tool
        self._within_s = within_s

    async def serve(self, asked: AsyncIterator[events.Event], send: Callable[[Approve], Awaitable[None]]) -> None:
        """Decide about each question in `asked`, several at once, until this is cancelled.

        A question that is over cancels the function that decides about it. `send` raises AgentError if the call is not
        pending any more.
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
        send: Callable[[Approve], Awaitable[None]],
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
