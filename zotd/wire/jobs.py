"""Jobs: commands that run in the background of a session."""

import msgspec

from zotd.wire.base import Frozen

RUNNING, ENDED, STOPPED, INTERRUPTED = "running", "ended", "stopped", "interrupted"

COMMAND_CHARS = 200
"""Longest excerpt of a command in what is known of its job."""


class JobInfo(Frozen, frozen=True, kw_only=True):
    """A job as it is now."""

    id: str
    """`j1`, `j2`, …: unique in the session."""
    command: str
    """The command, cut after 200 characters."""
    call: str
    """The id of the tool call that began it."""
    started: str
    """When it began: RFC 3339."""
    output: str
    """Path of the file with the newest part of its output; it may not exist."""
    state: str
    """`running`; `ended` by itself; `stopped` by a client, the model or the daemon (`reason`); `interrupted`: the daemon was killed while it ran, and
    what became of it is not known."""
    exit: int | None = None
    """Its exit code, 128 + N after signal N; null: it runs, or that is not known."""
    reason: str = ""
    """Who stopped it or why, as a clause, such as `stopped by the model`; or why it could not be started."""
    took_s: float | None = None
    """How long it ran, in seconds."""
    output_bytes: int = 0
    """Length of its output, of which the file may have less; 0 while it runs, in stored records."""
    session: str = ""
    """The session of the subagent that works in the background; empty: the job is a command."""
    ports: list[int] = msgspec.field(default_factory=list)
    """TCP ports on which it listens."""
    kept: bool = False
    """It goes on when the session or the daemon ends."""
