"""The tool `task` among the tools of a session: only sessions that may have subagents have it."""

from collections.abc import Awaitable, Callable

from zotd.config.sections import AgentsSection
from zotd.contributions.toolbox import Toolbox
from zotd.core.ports import Tool, ToolContext, ToolOutcome
from zotd.core.subagents import NAME, TaskOrder
from zotd.sessions.session import Session

Delegate = Callable[[Session, TaskOrder, ToolContext], Awaitable[ToolOutcome]]
"""Has a subagent of the session do a task."""


def with_task(box: Toolbox, tool: Tool | None) -> Toolbox:
    """Return the toolbox with this tool in the place of the built-in `task`; None: without one.

    An extension may have a tool of that name, which stays.
    """
    found = box.tools.get(NAME)
    if found is None or found.extension is not None or found is tool:
        return box
    if tool is None:
        left = {name: one for name, one in box.tools.items() if name != NAME}
        return Toolbox(left, tuple(spec for spec in box.specs if spec.name != NAME), box.hidden)
    specs = tuple(tool.spec if spec.name == NAME else spec for spec in box.specs)
    return Toolbox({**box.tools, NAME: tool}, specs, box.hidden)


def may_delegate(session: Session, limits: AgentsSection) -> bool:
    """Whether the session may have subagents; what is not stored could not find them again after a crash."""
    parent = session.ledger.row.parent
    return not session.ephemeral and (0 if parent is None else parent.depth) < limits.depth
