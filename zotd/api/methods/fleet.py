"""Commands about the daemons that share a database."""

from zotd.api.context import DaemonContext
from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import named
from zotd.sessions import moving
from zotd.wire import api
from zotd.wire.errors import Code, CommandError


async def listing(call: Invocation, params: api.Nothing) -> api.FleetList:
    """List the daemons, this one included."""
    del params
    journal = call.manager.journal
    loads = [] if journal is None else await journal.ownership.members.loads()
    return api.FleetList(
        [
            api.FleetDaemon(
                load.member.name, load.member.address, load.state, load.is_this, load.sessions, load.running
            )
            for load in loads
        ]
    )


async def move(context: DaemonContext, call: Invocation, params: api.SessionMove) -> api.SessionMoved:
    """Move a session to another daemon, at the end of the step that runs."""
    session = await call.manager.get(named(params.session))
    journal = call.manager.journal
    load = moving.chosen([] if journal is None else await journal.ownership.members.loads(), params.to)
    member, was_active = load.member, session.work.is_active
    if load.is_this:
        return api.SessionMoved(member.name)
    moving.begin(session)
    is_moved = await moving.finish(call.manager, session, member, was_active=was_active)
    if context.timers is not None:
        await context.timers.load()
    if not is_moved:
        raise CommandError(Code.CONFLICT, f"the daemon {member.name} has ended, so the session goes on here")
    return api.SessionMoved(member.name)
