"""Sessions that other sessions have begun: subagents."""

from zotd.wire.base import Frozen


class SessionParent(Frozen, frozen=True):
    """The session that began another one, a subagent, with a call of its tool `task`."""

    session: str
    call: str
    """The id of that call."""
    depth: int = 1
    """How many sessions are above the subagent."""
    agent: str = ""
    """The name of its agent type; empty: none."""
