"""The arguments of a pending call as text that people read and change: the steps of a plan as lines, others as JSON."""

import json

from zotd.client.asking import PLAN
from zotd.wire.base import BadFrameError, convert, decode
from zotd.wire.plan import EXPLAINED, PlanStep, read_steps, step_lines


class CallText:
    """Reads and writes the arguments of one call."""

    def __init__(self, tool: str, args: dict[str, object]) -> None:
        # An extension may have a tool of that name.
        self.is_plan = tool == PLAN and bool(_plan_lines(args))
        """Whether the call proposes a plan."""
        self.suffix = ".txt" if self.is_plan else ".json"
        """Of a file with the text."""

    def shown(self, args: dict[str, object]) -> str:
        """Return the text that people read."""
        return _plan_lines(args) if self.is_plan else json.dumps(args, indent=2, ensure_ascii=False)

    def written(self, args: dict[str, object]) -> str:
        """Return the text for an editor."""
        return f"{EXPLAINED if self.is_plan else ''}{self.shown(args)}\n"

    def read(self, text: str) -> dict[str, object]:
        """Return the arguments that the text stands for. Raises ValueError: a sentence that says what is wrong with it."""
        if self.is_plan:
            return {"steps": [{"text": step.text, "state": step.state} for step in read_steps(text)]}
        try:
            return decode(text.encode(), dict[str, object])
        except BadFrameError as error:
            raise ValueError(f"the arguments must be a JSON object: {error}") from error


def _plan_lines(args: dict[str, object]) -> str:
    try:
        return "\n".join(step_lines(convert(args.get("steps"), list[PlanStep])))
    except BadFrameError:
        return ""
