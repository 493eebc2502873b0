"""A person's decision as it came, checked against the question that it is about."""

from msgspec import Struct

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.approvals import ALLOW, DENY, ApprovalResolution
from zotd.core.choices import SAME
from zotd.core.permissions import PermissionRule
from zotd.core.person_questions import QUESTION
from zotd.wire import api, events
from zotd.wire.errors import Code, CommandError

SCOPES = ("once", "session", "always")


class ApprovalAnswer(Struct, frozen=True):
    """What came of a question."""

    allowed: bool
    args: dict[str, object] | None
    """Run it with these arguments instead; they have not been seen by any guard."""
    reason: str
    """Why the call was denied: one sentence for the model."""
    by: str
    """Who decided; empty if there was no decision in time."""
    scope: str


def decision_of(params: api.Approve, by: str) -> records.Decision:
    """The decision of `by`, for the record; raises CommandError for words that are none."""
    if params.decision not in {ALLOW, DENY}:
        raise CommandError(Code.BAD_REQUEST, f'the decision must be "{ALLOW}" or "{DENY}", not "{params.decision}"')
    if params.scope not in SCOPES:
        raise CommandError(Code.BAD_REQUEST, f'unknown scope "{params.scope}"; there are {", ".join(SCOPES)}')
    return records.Decision(
        time=rfc3339(),
        approval=params.approval,
        decision=params.decision,
        scope=params.scope,
        by=by or "somebody",
        reason=params.reason,
        args=params.args,
        choice="" if params.scope == "once" else params.choice or SAME,
    )


def resolved_event(decision: records.Decision) -> events.ApprovalResolved:
    """Return the event that tells clients of a decision."""
    return events.ApprovalResolved(decision.approval, decision.decision, decision.scope, decision.by, decision.reason)


def resolution_of(decision: records.Decision) -> ApprovalResolution:
    """Return the decision as the table of approvals has it."""
    return ApprovalResolution(decision.decision, decision.by, decision.scope, decision.reason)


def answer_of(decision: records.Decision) -> ApprovalAnswer:
    """Return the decision as the waiting call gets it."""
    if not decision.by:
        reason = f"not run: {decision.reason}"
    else:
        reason = f"denied by the user{f': {decision.reason}' if decision.reason else ''}"
    is_allowed = decision.decision == ALLOW
    return ApprovalAnswer(is_allowed, decision.args, "" if is_allowed else reason, decision.by, decision.scope)


def rules_of(scope: str, choice: str | None, row: records.ApprovalRow) -> tuple[PermissionRule, ...]:
    """What is allowed from then on, when this is the decision; nothing, when it was not offered."""
    found = (one for one in row.offered if one.id == (choice or SAME) and scope in one.scopes)
    return next((one.rules for one in found), ())


def check_scope(params: api.Approve, row: records.ApprovalRow) -> None:
    """Raise CommandError for a decision that reaches further than what the person has seen."""
    if params.decision == DENY and params.args is not None:
        raise CommandError(Code.BAD_REQUEST, "a denied call runs with no arguments; leave `args` out")
    if row.while_running and row.tool != QUESTION and params.args is not None:
        raise CommandError(Code.BAD_REQUEST, "the command runs already, so its arguments cannot be changed")
    if row.result is not None and params.args is not None:
        raise CommandError(Code.BAD_REQUEST, "the command has ended, so its arguments cannot be changed")
    if params.scope == "once":
        return
    if params.decision == DENY:
        raise CommandError(Code.BAD_REQUEST, "a denial has the scope once; to deny always, add a rule to config.toml")
    if params.args is not None:
        raise CommandError(Code.BAD_REQUEST, "changed arguments can only be allowed with the scope once")
    if not row.offered:
        raise CommandError(Code.BAD_REQUEST, f"no rule can allow this call of {row.tool}; allow it with the scope once")
    if not rules_of(params.scope, params.choice, row):
        offers = ", ".join(f"{one.id} ({' or '.join(one.scopes)})" for one in row.offered)
        wanted = f'"{params.choice or SAME}" with the scope {params.scope}'
        raise CommandError(Code.BAD_REQUEST, f"{wanted} is not offered for this call; there are {offers}")
