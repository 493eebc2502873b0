"""The arguments of the tool `plan` as lines that people read and edit."""

from zotd.wire.base import BadFrameError, convert
from zotd.wire.plan import EXPLAINED, PlanStep, read_steps, step_lines

TOOL = "plan"


def shown(args: dict[str, object]) -> str:
    """Return a line for each step; empty if the arguments are none of a plan."""
    try:
        return "\n".join(step_lines(convert(args.get("steps"), list[PlanStep])))
    except BadFrameError:
        return ""


def written(args: dict[str, object]) -> str:
    """Return the text for an editor."""
    return f"{EXPLAINED}{shown(args)}\n"


def read(text: str) -> dict[str, object]:
    """Return the arguments that the text stands for."""
    return {"steps": [{"text": step.text, "state": step.state} for step in read_steps(text)]}
