"""The tool `task`: a subagent does a part of the work, and its last answer is the result.

Whoever runs sessions runs the subagent too (`ToolContext.delegate`, `zotd.sessions.subagents`).
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from zotd.core.ports import Replay, Tool, ToolContext, ToolOutcome
from zotd.core.subagents import NAME, TaskOrder
from zotd.tools.shared import BuiltinTool, ToolError

DESCRIPTION = (
    "Has a subagent do a task and returns its last answer. It works in the same directory with its own conversation, and sees "
    "nothing of yours: the prompt must say everything that it needs, and what it should report. Use it for work that reads "
    "much and reports little, and for independent parts; several calls in one reply work side by side. Set background if you need not "
    "wait for its answer: you are told it."
)


TYPES = "Agent types, which have instructions of their own for such work:"


class TaskArgs(msgspec.Struct, frozen=True):
    """Arguments of `task`."""

    prompt: Annotated[str, Meta(min_length=1, description="The whole task, and what to report")]
    description: Annotated[str, Meta(min_length=1, description="The task in three to six words, for people")]
    agent: Annotated[str, Meta(description="The name of an agent type; default: none")] = ""
    model: Annotated[str, Meta(description="Another model than yours; default: the same")] = ""
    tools: Annotated[list[str], Meta(description="The only tools that it may use; default: yours")] | UnsetType = UNSET
    background: Annotated[
        bool, Meta(description="Have it work as a job: the call returns at once with the job's id")
    ] = False


async def _task(args: TaskArgs, context: ToolContext) -> ToolOutcome:
    if context.delegate is None:
        raise ToolError("there can be no subagents here; do it without one")
    return await context.delegate(order_of(args), context)


def order_of(args: TaskArgs) -> TaskOrder:
    """Return what these arguments ask for."""
    return TaskOrder(
        args.prompt,
        args.description,
        agent=args.agent,
        model=args.model,
        tools=None if args.tools is UNSET else args.tools,
        background=args.background,
    )


def task_tool(agents: Sequence[tuple[str, str]]) -> Tool:
    """Return the tool with these agent types, by name and description, in what the model reads."""
    return _tool("\n".join([DESCRIPTION, TYPES, *(f"- {name}: {about}" for name, about in agents)])) if agents else TOOL


def _tool(description: str) -> Tool:
    return BuiltinTool(
        TaskArgs,
        _task,
        name=NAME,
        description=description,
        parallel=True,
        # A repeated call finds the subagent that it has begun, by the id of the call.
        replay=Replay.IDEMPOTENT,
    )


TOOL = _tool(DESCRIPTION)
