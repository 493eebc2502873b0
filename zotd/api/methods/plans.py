"""Commands about the plan of a session."""

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import loaded, session_of
from zotd.wire import api


async def get(call: Invocation, params: api.OfSession) -> api.PlanState:
    """Return the plan."""
    return (await session_of(call, params.session)).plan.state


async def edit(call: Invocation, params: api.PlanEdit) -> None:
    """Change the steps of the plan; the response precedes the event."""
    session = await loaded(call, params.session)
    approves = call.door.role >= api.Role.APPROVE
    await session.plan.edit(params, by=call.door.sender, approves=approves, accepted=call.respond)
