"""The tool `task`: a subagent does a part of the work, and its last answer is the result.

Whoever runs sessions runs the subagent too (`ToolContext.delegate`, `zotd.sessions.subagents`).
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from zotd.core.ports import Replay, ToolContext, ToolOutcome
from zotd.core.subagents import NAME, TaskOrder
from zotd.tools.shared import BuiltinTool, ToolError

DESCRIPTION = (
    "Has a subagent do a task and returns its last answer. It works in the same directory with its own conversation, and sees "
    "nothing of yours: the prompt must say everything that it needs, and what it should report. Use it for work that reads "
    "much and reports little, and for independent parts; several calls in one reply work side by side."
)


class TaskArgs(msgspec.Struct, frozen=True):
    """Arguments of `task`."""

    prompt: Annotated[str, Meta(min_length=1, description="The whole task, and what to report")]
    description: Annotated[str, Meta(min_length=1, description="The task in three to six words, for people")]
    model: Annotated[str, Meta(description="Another model than yours; default: the same")] = ""
    tools: Annotated[list[str], Meta(description="The only tools that it may use; default: yours")] | UnsetType = UNSET


async def _task(args: TaskArgs, context: ToolContext) -> ToolOutcome:
    if context.delegate is None:
        raise ToolError("there can be no subagents here; do it without one")
    order = TaskOrder(
        args.prompt, args.description, model=args.model, tools=None if args.tools is UNSET else args.tools
    )
    return await context.delegate(order, context)


TOOL = BuiltinTool(
    TaskArgs,
    _task,
    name=NAME,
    description=DESCRIPTION,
    parallel=True,
    # A repeated call finds the subagent that it has begun, by the id of the call.
    replay=Replay.IDEMPOTENT,
)
