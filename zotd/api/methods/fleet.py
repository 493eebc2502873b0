"""Commands about the daemons that share a database."""

from zotd.api.context import DaemonContext
from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import named
from zotd.sessions import moving
from zotd.sessions.workspace_arrival import store
from zotd.wire import api
from zotd.wire.errors import Code, CommandError


async def listing(context: DaemonContext, call: Invocation, params: api.Nothing) -> api.FleetList:
    """List the daemons, this one included, and the prompts that wait for one."""
    del params
    journal = call.manager.journal
    loads = [] if journal is None else await journal.ownership.members.loads()
    daemons = [
        api.FleetDaemon(
            load.member.name,
            load.member.address,
            load.state,
            load.is_this,
            load.sessions,
            load.running,
            list(load.labels),
            load.prompts,
            load.lease_s,
        )
        for load in loads
    ]
    if context.batches is None:
        return api.FleetList(daemons)
    # With a file this daemon is the only one.
    offers = [load.labels for load in loads if load.state == "running"] if loads else [context.batches.labels()]
    waiting = [
        api.WaitingPrompts(list(labels), prompts, sum(set(labels) <= set(offer) for offer in offers))
        for labels, prompts in await context.batches.store.waiting()
    ]
    return api.FleetList(daemons, waiting)


async def ready(context: DaemonContext, call: Invocation, params: api.Nothing) -> api.FleetReady:
    """Return whether this daemon takes work."""
    del params
    journal = call.manager.journal
    lease_s = None if journal is None else await journal.ownership.members.lease_s()
    return api.FleetReady(not context.stopping and lease_s != 0, context.stopping, lease_s)


async def move(context: DaemonContext, call: Invocation, params: api.SessionMove) -> api.SessionMoved:
    """Move a session to another daemon, at the end of the step that runs."""
    session = await call.manager.get(named(params.session))
    journal = call.manager.journal
    load = moving.chosen([] if journal is None else await journal.ownership.members.loads(), params.to)
    member, was_active = load.member, session.work.is_active
    if load.is_this:
        return api.SessionMoved(member.name)
    await store(session)  # before anything is stopped; what the last step changes follows
    moving.begin(session)
    is_moved = await moving.finish(call.manager, session, member, was_active=was_active)
    if context.timers is not None:
        await context.timers.load()
    if not is_moved:
        raise CommandError(Code.CONFLICT, f"the daemon {member.name} has ended, so the session goes on here")
    return api.SessionMoved(member.name)
