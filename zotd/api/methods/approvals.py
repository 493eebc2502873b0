"""Commands about what waits for a person's decision."""

from contextlib import suppress

import msgspec

from zotd.api.dispatch import Call
from zotd.api.methods.shared import ENVELOPE_BYTES, connection_of, loaded, session_of, wait_for_room
from zotd.core.permissions import Rule
from zotd.core.ports import StorageError
from zotd.sessions.manager import check_mode
from zotd.sessions.session import Session
from zotd.wire import api, events
from zotd.wire.base import encode
from zotd.wire.errors import CommandError
from zotd.wire.framing import SERVER_LIMIT

STATES = ("waiting", "running")
"""States, on disk, of sessions in which something may be pending; of those outside of memory the latter were cut."""

MAX_SESSIONS = 100
"""Sessions outside of memory that one answer looks into; each is loaded for that."""


async def listing(call: Call, params: api.ApprovalScope) -> api.Approvals:
    """What is pending, also in sessions that are not in memory: after a restart those wait, too."""
    if params.session:
        sessions = [await loaded(call, params.session)]
    else:
        sessions = await _all(call)
    pending = [one for session in sessions for one in session.approvals.pending()]
    pending.sort(key=lambda one: one.approval)  # ids sort by time
    fitting, room = 0, SERVER_LIMIT - ENVELOPE_BYTES
    for one in pending:
        room -= len(encode(one)) + 1
        fitting += room > 0
    await wait_for_room(call)
    return api.Approvals(pending[:fitting], truncated=fitting < len(pending))


async def approve(call: Call, params: api.Approve) -> None:
    """Decide about a call; the answer precedes what comes of it."""
    session = await loaded(call, params.session)
    connection = connection_of(call)
    rulebook, rule = call.manager.oversight.rulebook, None
    if params.scope == "always":
        rule = session.approvals.rule_of(params.approval)
        if rule is not None:  # else the decision is refused, for a reason of its own
            await rulebook.check(rule)
    await session.decide(params, connection.sender, accepted=call.respond)
    if rule is not None:
        await _keep(call, session, rule)


async def set_mode(call: Call, params: api.SetMode) -> None:
    """Another approval mode, from the next call of a tool on."""
    session = await session_of(call, params.session)
    check_mode(params.mode)
    row = session.ledger.row
    settings = msgspec.structs.replace(row.settings, mode=params.mode)
    changes = events.SessionChanged(session.state, mode=params.mode)
    await session.configure(settings, row.name, accepted=call.respond, changes=changes)


async def _all(call: Call) -> list[Session]:
    """The sessions in memory, and those on disk in which something may be pending."""
    found = {session.id: session for session in call.manager.loaded}
    for state in STATES:
        infos, _ = await call.manager.page(cwd=None, state=state, before=None, limit=MAX_SESSIONS)
        for info in (info for info in infos if info.id not in found):
            with suppress(CommandError, StorageError):  # deleted meanwhile, or damaged: others have questions, too
                found[info.id] = await loaded(call, info.id)
    return list(found.values())


async def _keep(call: Call, session: Session, rule: Rule) -> None:
    """Save the rule of a decision that has won; it holds for its session, whether that works or not."""
    level, text = "info", "the rule is in config.toml, and holds for all sessions"
    try:
        await call.manager.oversight.rulebook.add(rule)
    except CommandError as error:
        level, text = "error", error.sentence
    session.ledger.live([events.Notice(level, text, session=session.id)])
