"""Plans that senders approve with steps of their own, which they write in a message."""

from zotd.channels.outcomes import HOW_TO_CHANGE
from zotd.core.plan import PlanError, checked
from zotd.wire import events
from zotd.wire.plan import MARKS, read_steps

NO_PLAN = "Only a plan can be changed here; /allow or /deny this call."
NO_STEPS = (
    "That has no line that begins with [ ], [>] or [x], so it is taken for a remark, and the plan still waits: send its steps, "
    "or /deny it and say what should be different."
)


def is_plan(event: events.ApprovalRequested) -> bool:
    """Return whether this is a plan that waits for a decision; an extension may have a tool of the same name."""
    return event.tool == "plan" and isinstance(event.args.get("steps"), list)


def changed_plan(event: events.ApprovalRequested, written: str) -> dict[str, object]:
    """Return the arguments of a plan with these steps, a line for each.

    Raises:
        PlanError: a sentence for the sender, who has written no plan or asks how to.
    """
    if not is_plan(event):
        raise PlanError(NO_PLAN)
    if not written.strip():
        raise PlanError(HOW_TO_CHANGE)
    # In a chat people answer a plan with remarks too, which must not become steps that are approved.
    marks = tuple(f"[{mark}]" for mark in MARKS.values())
    if not any(line.strip().lower().startswith(marks) for line in written.splitlines()):
        raise PlanError(NO_STEPS)
    try:
        steps = checked(read_steps(written))
    except PlanError as error:
        raise PlanError(f"The plan still waits: {error}.") from error
    return {"steps": [{"text": step.text, "state": step.state} for step in steps]}
