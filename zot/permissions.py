"""Decisions of a program about tool calls: `Agent(can_use_tool=…)`."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import msgspec

from zot.errors import AgentError
from zotd.embed.in_thread import in_thread
from zotd.sdk.hints import is_coroutine_function
from zotd.wire import events
from zotd.wire.api import Approve

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""

    args: Mapping[str, object] | None = None
    """Arguments to run it with instead of its own."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not run; the model reads the reason, and may try something else."""

    reason: str


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a decision about a tool call may depend on, beside its name and arguments."""

    id: str
    """The id of the call, as in its events."""
    preview: str
    """What the call would do, as text for people: a diff, a command line, or the arguments."""


CanUseTool = Callable[[str, dict[str, object], CallContext], Allow | Deny | Awaitable[Allow | Deny]]
"""Gets the tool's name, its arguments and the context."""


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
        # A copy: what the function does to the arguments must not change the call.
        work = partial(self._can_use_tool, asked.tool, deepcopy(asked.args), context)
        limit = asyncio.timeout(self._within_s)
        try:
            async with limit:
                found: object = work() if is_coroutine_function(self._can_use_tool) else await in_thread(work)
                if isinstance(found, Awaitable):
                    found = await found
            return _checked(found)
        except Exception as error:  # a check that fails must not let the call run
            if limit.expired():
                return Deny(f"the program has not decided within {self._within_s:g} s")
            log.warning("can_use_tool failed for a call of %s", asked.tool, exc_info=True)
            return Deny(f"the program's check of this call failed: {type(error).__name__}: {error}")


def _checked(found: object) -> Allow | Deny:
    """Raise TypeError for what is no decision, or has arguments that JSON cannot express."""
    if isinstance(found, Allow):
        args = (
            None if found.args is None else msgspec.json.decode(msgspec.json.encode(found.args), type=dict[str, object])
        )
        return Allow(args)
    if isinstance(found, Deny):
        return found
    raise TypeError(f"can_use_tool returned {found!r:.80}; it must return Allow() or Deny(reason)")
