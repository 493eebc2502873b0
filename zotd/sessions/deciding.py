"""A person's decision as it came, checked against the question that it is about."""

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.approvals import ALLOW, DENY
from zotd.wire import api
from zotd.wire.errors import Code, CommandError

SCOPES = ("once", "session", "always")


def decision_of(params: api.Approve, by: str) -> records.Decision:
    """The decision of `by`, for the record; raises CommandError for words that are none."""
    if params.decision not in {ALLOW, DENY}:
        raise CommandError(Code.BAD_REQUEST, f'a decision is "{ALLOW}" or "{DENY}", not "{params.decision}"')
    if params.scope not in SCOPES:
        raise CommandError(Code.BAD_REQUEST, f'there is no scope "{params.scope}"; there are {", ".join(SCOPES)}')
    return records.Decision(
        time=rfc3339(),
        approval=params.approval,
        decision=params.decision,
        scope=params.scope,
        by=by or "somebody",
        reason=params.reason,
        args=params.args,
    )


def check_scope(params: api.Approve, row: records.ApprovalRow) -> None:
    """Raise CommandError for a decision that reaches further than what the person has seen."""
    if params.decision == DENY and params.args is not None:
        raise CommandError(Code.BAD_REQUEST, "a denied call runs with no arguments; leave `args` out")
    if params.scope == "once":
        return
    if params.decision == DENY:
        raise CommandError(Code.BAD_REQUEST, "a denial is for once; what is always denied is a rule in config.toml")
    if params.args is not None:
        raise CommandError(Code.BAD_REQUEST, "other arguments are for once; allow them with the scope once")
    if row.rule is None:
        raise CommandError(Code.BAD_REQUEST, f"no rule can allow this call of {row.tool}; allow it with the scope once")
