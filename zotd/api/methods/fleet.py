"""Commands about the daemons that share a database."""

from zotd.api.dispatch import Invocation
from zotd.wire import api


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
