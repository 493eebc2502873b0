"""Commands about the connection and the daemon itself."""

import logging
import os

from zotd.api.connection import TOPICS
from zotd.api.dispatch import Call
from zotd.api.methods.shared import connection_of
from zotd.core.ports import NAME_CHARS
from zotd.sessions.queue import MAX_WAITING
from zotd.wire import api, reports
from zotd.wire.errors import Code, CommandError
from zotd.wire.framing import CLIENT_LIMIT, SERVER_LIMIT
from zotd.wire.version import PROTOCOL, VERSION

log = logging.getLogger(__name__)


async def hello(call: Call, params: api.Hello) -> api.HelloResult:
    """Say who is there; agree on a version and a role."""
    if params.protocol is not None and not params.protocol[0] <= PROTOCOL <= params.protocol[1]:
        wanted = f"{params.protocol[0]} to {params.protocol[1]}"
        sentence = f"this is zotd {VERSION} with protocol {PROTOCOL}, the client speaks {wanted}; update the older one"
        raise CommandError(Code.UNSUPPORTED, sentence)
    if call.door.stdio:
        settings = call.manager.loaded[0].ledger.row.settings
        return api.HelloResult(PROTOCOL, VERSION, provider=settings.provider, model=settings.model)
    connection = connection_of(call)
    if max(map(len, (params.client.name, params.client.kind, params.client.version))) > NAME_CHARS:
        raise CommandError(Code.BAD_REQUEST, f"name, kind and version have at most {NAME_CHARS} characters each")
    role = connection.role if params.role is None else _role(params.role)
    if connection.confinement is not None:
        connection.confinement.check(role, f"the role {params.role}")
    connection.client, connection.role = params.client, role
    connection.can_decide = params.can_approve and role >= api.Role.APPROVE
    if params.role is not None and role is api.Role.ADMIN:
        log.info("connection %s (%s, %s) is admin", connection.id, connection.peer, connection.sender)
    return api.HelloResult(
        PROTOCOL,
        VERSION,
        epoch=connection.house.epoch,
        connection=connection.id,
        pid=os.getpid(),
        role=connection.role.name.lower(),
        features=[],
        limits=api.Limits(CLIENT_LIMIT, SERVER_LIMIT, MAX_WAITING),
    )


async def ping(call: Call, params: api.Nothing) -> api.Pong:
    """Answer."""
    del call, params
    return api.Pong(pong=True)


async def status(call: Call, params: api.Nothing) -> api.Status:
    """The daemon in figures."""
    del params
    return connection_of(call).house.status()


async def metrics(call: Call, params: api.Nothing) -> reports.Metrics:
    """The daemon in more figures."""
    del params
    return await connection_of(call).house.metrics()


async def subscribe(call: Call, params: api.Subscribe) -> None:
    """Follow topics of the daemon; replaces those of an earlier call."""
    unknown = [topic for topic in params.topics if topic not in TOPICS]
    if unknown:
        raise CommandError(Code.BAD_REQUEST, f'unknown topic "{unknown[0]}"; there are {", ".join(TOPICS)}')
    connection_of(call).subscribe(params.topics)


async def shutdown(call: Call, params: api.Shutdown) -> None:
    """Stop the daemon; the answer comes first."""
    connection = connection_of(call)
    log.info("connection %s (%s) asked the daemon to stop", connection.id, connection.sender)
    call.respond()
    connection.house.stop(params.when_idle)


def _role(name: str) -> api.Role:
    try:
        return api.Role[name.upper()]
    except KeyError as error:
        raise CommandError(
            Code.BAD_REQUEST, f'unknown role "{name}"; there are read, submit, approve, admin'
        ) from error
