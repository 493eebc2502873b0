"""The tool `plan`: the model proposes a plan, and keeps the states of its steps up to date."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from zotd.core.ports import Replay, ToolContext, ToolOutcome
from zotd.tools.shared import BuiltinTool, ToolError
from zotd.wire.plan import MAX_STEPS, STEP_CHARS, PlanStep


class PlannedStep(msgspec.Struct, frozen=True):
    """A step in the arguments of `plan`."""

    text: Annotated[str, Meta(description=f"What is to be done, at most {STEP_CHARS} characters")]
    state: Annotated[Literal["pending", "active", "done"], Meta(description="Default: pending")] = "pending"


class PlanArgs(msgspec.Struct, frozen=True):
    """Arguments of `plan`."""

    steps: Annotated[list[PlannedStep], Meta(description=f"All steps in order, at most {MAX_STEPS}")]


async def _plan(args: PlanArgs, context: ToolContext) -> ToolOutcome:
    if context.plan is None:
        raise ToolError("there is no plan here")
    return await context.plan([PlanStep(step.text, step.state) for step in args.steps])


TOOL = BuiltinTool(
    PlanArgs,
    _plan,
    name="plan",
    description=(
        "Set the plan that the user sees and can edit: the whole list of steps each time. Use it for work of several steps,"
        " and keep the states up to date while you work. Not for simple requests."
    ),
    parallel=True,
    replay=Replay.SAFE,
)
