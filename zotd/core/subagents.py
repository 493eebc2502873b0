"""Subagents: sessions that a session begins with a call of its tool `task` (`docs/subagents.md`)."""

from collections.abc import Sequence

from msgspec import Struct

NAME = "task"
"""Name of the tool."""

NOTE = (
    "You are a subagent: another agent has given you this task and waits for your last message, which is all that it reads. "
    "Nobody answers questions about the task. When it is done, or cannot be done, say what you have found or changed, with the "
    "paths and facts that the other agent needs."
)
"""What a subagent reads beside the system prompt of its parent."""


class TaskOrder(Struct, frozen=True):
    """What a call of `task` asks for."""

    prompt: str
    description: str
    """A few words for people; the name of the subagent's session."""
    agent: str = ""
    """The name of an agent type; empty: none."""
    model: str = ""
    """A model; empty: that of the agent type, or of the parent."""
    tools: Sequence[str] | None = None
    """Tools of the parent that the subagent may use; None: those of the agent type, or all."""
    background: bool = False
    """The call is over when the subagent has begun, which is a job of the session then."""


def session_of(call: str) -> str:
    """Return the id of the session that this call begins.

    The id of a call is used once, so the session's id is the key by which a repeated call finds what it began before a crash.
    """
    return f"s_{call.partition('_')[2]}"
