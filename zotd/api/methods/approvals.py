"""Commands about approvals."""

from contextlib import aclosing, suppress

import msgspec

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import ENVELOPE_BYTES, connection_of, loaded, session_of, wait_for_room
from zotd.core.choices import ALWAYS
from zotd.core.permissions import Action, PermissionRule
from zotd.core.ports import StorageError
from zotd.permissions import pending
from zotd.permissions.session_grants import revoke
from zotd.sessions.defaults import check_mode
from zotd.sessions.info import questions_of
from zotd.sessions.session import Session
from zotd.wire import api, events
from zotd.wire.base import encode
from zotd.wire.errors import CommandError
from zotd.wire.framing import SERVER_LIMIT


async def listing(call: Invocation, params: api.ApprovalScope) -> api.Approvals:
    """List the pending approvals, including those of sessions that are not in memory, which persist across restarts."""
    oldest = _Oldest()
    if params.session:
        sessions = [await loaded(call, params.session)]
    else:
        await _take_stored(call, oldest)
        sessions = await _in_memory(call)
    for session in sessions:
        for one in questions_of(session) if params.session else session.approvals.pending():
            oldest.take(one)
    await wait_for_room(call)
    return api.Approvals(oldest.questions(), truncated=oldest.is_cut)


async def approve(call: Invocation, params: api.Approve) -> None:
    """Decide about a pending call; the response precedes the events that the decision causes."""
    session = await loaded(call, params.session)
    below = session.children.asked.get(params.approval)
    if below is not None and below.subagent is not None:
        session = await loaded(call, below.subagent)
    connection = connection_of(call)
    # If the decision is invalid, this is empty, and `decide` raises the error.
    rules = session.approvals.rules_of(params) if params.scope == ALWAYS else ()
    for rule in rules:
        # Checked before the decision: a rule that cannot be saved must not leave a decision that says `always`.
        await call.manager.rules.check(rule)
    await session.decide(params, connection.sender, accepted=call.respond)
    if rules:
        await _keep(call, session, rules)


async def set_mode(call: Invocation, params: api.SetMode) -> None:
    """Change the approval mode, from the next tool call on."""
    session = await session_of(call, params.session)
    check_mode(params.mode)
    row = session.ledger.row
    settings = msgspec.structs.replace(row.settings, mode=params.mode)
    changes = events.SessionChanged(session.state, mode=params.mode)
    await session.configure(settings, row.name, accepted=call.respond, changes=changes)


async def grants(call: Invocation, params: api.OfSession) -> api.Grants:
    """List what was allowed for the rest of a session."""
    return _grants(await loaded(call, params.session))


async def revoke_grants(call: Invocation, params: api.RevokeGrants) -> api.Grants:
    """Take grants back, from the next tool call on; calls that run keep what they have.

    Raises CommandError: `not_found` if one of them is none of the session's; then none is taken back.
    """
    session = await session_of(call, params.session)
    await revoke(session.ledger, [PermissionRule(one.tool, Action.ALLOW, one.match) for one in params.grants])
    return _grants(session)


def _grants(session: Session) -> api.Grants:
    return api.Grants([api.Grant(rule.tool, rule.match) for rule in session.ledger.row.granted])


async def _take_stored(call: Invocation, oldest: "_Oldest") -> None:
    """Add the pending approvals of sessions that are not in memory."""
    if call.manager.journal is None:
        return
    async with aclosing(pending.questions(call.manager.journal, call.manager.is_loaded)) as found:
        async for one in found:
            oldest.take(one)


async def _in_memory(call: Invocation) -> list[Session]:
    """Return the sessions in memory, with expired approvals removed."""
    for session in call.manager.loaded:
        if session.is_cut:  # not repaired yet: its approvals are not known before `load`
            with suppress(CommandError, StorageError):  # a blocked session must not hide the approvals of others
                await loaded(call, session.id)
        await session.approvals.expire()
    return call.manager.loaded


class _Oldest:
    """Keeps the oldest approvals that fit into a frame."""

    def __init__(self) -> None:
        self.is_cut = False
        """Whether some did not fit."""
        self._found: dict[str, events.ApprovalRequested] = {}
        self._room = SERVER_LIMIT - ENVELOPE_BYTES

    def take(self, one: events.ApprovalRequested) -> None:
        """Add an approval, unless it was added before."""
        if one.approval in self._found:
            return
        self._found[one.approval] = one
        self._room -= _size(one)
        while self._room < 0:
            self._room += _size(self._found.pop(max(self._found)))  # ids sort by time
            self.is_cut = True

    def questions(self) -> list[events.ApprovalRequested]:
        """Return the questions that fit into a frame, oldest first."""
        return [self._found[key] for key in sorted(self._found)]


def _size(one: events.ApprovalRequested) -> int:
    return len(encode(one)) + 1


async def _keep(call: Invocation, session: Session, rules: tuple[PermissionRule, ...]) -> None:
    """Save the rules of an accepted decision. They apply to the session even if that fails."""
    level, text = "info", "the rule was added to config.toml and applies to all sessions"
    try:
        for rule in rules:
            await call.manager.rules.add(rule)
    except CommandError as error:
        level, text = "error", error.sentence
    session.ledger.live([events.Notice(level, text, session=session.id)])
