"""Sessions that other sessions have begun: subagents."""

import msgspec

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


class AgentScope(Frozen, frozen=True, kw_only=True):
    """The directory whose agent types are listed, an absolute path."""

    cwd: str


class AgentInfo(Frozen, frozen=True):
    """An agent type, as its file says."""

    name: str
    description: str
    source: str
    """Where it was found, such as `.zot/agents`."""
    path: str
    tools: list[str] | None = None
    """The only tools that it may use, in the words of its file; absent: those of the parent."""
    model: str = ""
    """Empty: that of the parent."""
    mode: str = ""
    """The most that it may do; empty: what its parent may."""
    remarks: list[str] = msgspec.field(default_factory=list)
    """What the file says that has no effect."""


class Agents(Frozen, frozen=True):
    """The agent types of a directory, by name."""

    agents: list[AgentInfo]
    problems: list[str] = msgspec.field(default_factory=list)
    """Why other files are not used."""
