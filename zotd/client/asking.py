"""Shows a pending tool call to a person and sends their decision, for blocking clients."""

from collections.abc import Sequence
from dataclasses import dataclass

from zotd.client.blocking import Connection, Json
from zotd.client.fields import child, children, maybe_text, text
from zotd.wire.base import convert
from zotd.wire.events import ApprovalChoice, ApprovalRequested

NETWORK = "network"
"""`tool` of a question about a host that a command wants to reach."""

FILES = "files"
"""`tool` of a question about files and directories that a command was refused to change."""

QUESTION = "question"
"""`tool` of a question that a tool asks while it is called."""

PLAN = "plan"
"""`tool` of a question about a plan that the model proposes."""

SAME = "same"
"""The default choice of `approve`."""

SCOPES = {"session": "for this session", "always": "always"}
"""Texts for the scopes of a rule."""

OVER = frozenset({"already_resolved", "not_found", "stale_args"})
"""Error codes of `approve` that mean that the call is not pending any more, or not as it was shown."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """A choice that allows more than the pending call."""

    choice: str
    """Id of the choice; `SAME` covers exactly this command or file."""
    scope: str
    """`session` or `always`."""
    text: str
    """What it covers, in words."""
    rules: str
    """The rules it adds, as TOML."""


def lasting(question: ApprovalRequested) -> Sequence[Lasting]:
    """Return the lasting choices for a pending call, narrowest first; empty if it can only be allowed once."""
    choices = question.choices
    if not choices and question.rule is not None:  # a daemon of an earlier version
        choices = [ApprovalChoice(SAME, "only this call", list(SCOPES), question.rule)]
    return [Lasting(one.id, scope, one.text, one.rules) for one in choices for scope in one.scopes if scope in SCOPES]


def lasting_of(approval: Json) -> Sequence[Lasting]:
    """Like `lasting`, for an undecoded event."""
    choices = [convert(one, ApprovalChoice) for one in children(approval, "choices")]
    rule = maybe_text(approval, "rule")
    return lasting(ApprovalRequested("", "", "", {}, "", rule=rule, choices=choices))


def shown(approval: Json) -> str:
    """Return the call as lines of text. The model controls its content: print it through `plain.harmless`."""
    preview = maybe_text(approval, "preview")
    if preview is None:
        preview = "\n".join(f"{name}: {value}" for name, value in child(approval, "args").items())
    tool = text(approval, "tool")
    head = f"{tool} wants to run:"
    if tool == QUESTION:
        head = "a tool asks a question:"
    elif tool == PLAN and children(child(approval, "args"), "steps"):  # else it is an extension's
        head = "the model proposes a plan:"
    return f"{head}\n" + "\n".join(f"  {line}" for line in preview.split("\n"))


def decide(
    connection: Connection,
    approval: Json,
    decision: str,
    *,
    scope: str = "once",
    choice: str | None = None,
    reason: str | None = None,
    args: Json | None = None,
) -> None:
    """Decide about a pending call, an event `approval_requested`: `allow` or `deny`; with `args`, it runs with these instead.

    Raises `CallError`: `already_resolved` says who decided first; other codes as for `approve` in docs/protocol.md.
    """
    connection.call(
        "approve",
        {name: value for name, value in (("choice", choice or None), ("args", args)) if value is not None},
        session=text(approval, "session"),
        approval=text(approval, "approval"),
        args_digest=text(approval, "args_digest"),
        decision=decision,
        scope=scope,
        reason=reason,
    )
