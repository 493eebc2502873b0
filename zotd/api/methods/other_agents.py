"""Commands about the agents of others that run the turns of sessions."""

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import loaded
from zotd.wire import api


async def options(call: Invocation, params: api.OfSession) -> api.AgentOptionList:
    """Return what can be chosen of the agent, which is started if it does not run."""
    return await call.manager.planner.other_agents.options(await loaded(call, params.session))


async def choose(call: Invocation, params: api.AgentChoose) -> api.AgentOptionList:
    """Set an option of the agent, now and for its later processes."""
    session = await loaded(call, params.session)
    return await call.manager.planner.other_agents.choose(session, params.option, params.value)
