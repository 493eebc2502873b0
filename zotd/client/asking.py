"""What a person is shown of a call that waits for their decision, and the decision, for blocking clients."""

from zotd.client.blocking import Connection, Json
from zotd.client.fields import child, maybe_text, text

OVER = frozenset({"already_resolved", "not_found", "stale_args"})
"""Errors of `approve` after which nothing is left to decide about what was shown."""


def shown(approval: Json) -> str:
    """The call in words, as lines; what is in it comes from a model: print it through `plain.harmless`."""
    preview = maybe_text(approval, "preview")
    if preview is None:
        preview = "\n".join(f"{name}: {value}" for name, value in child(approval, "args").items())
    return f"{text(approval, 'tool')} wants to run:\n" + "\n".join(f"  {line}" for line in preview.split("\n"))


def decide(
    connection: Connection, approval: Json, decision: str, *, scope: str = "once", reason: str | None = None
) -> None:
    """Decide about a pending call, an event `approval_requested`: `allow` or `deny`.

    Raises `CallError`: `already_resolved` says who was quicker, and others as `approve` in docs/protocol.md.
    """
    connection.call(
        "approve",
        session=text(approval, "session"),
        approval=text(approval, "approval"),
        args_digest=text(approval, "args_digest"),
        decision=decision,
        scope=scope,
        reason=reason,
    )
