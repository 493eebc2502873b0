"""Commands about the connection and the daemon itself."""

import logging
import os
from collections.abc import Awaitable, Callable

import msgspec

from zotd.api.connection import TOPICS, ForwardedClient
from zotd.api.context import DaemonContext
from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import connection_of, role_named
from zotd.core.ports import NAME_CHARS
from zotd.runs.queue import MAX_WAITING
from zotd.sessions.shutdown import hand_over
from zotd.store.archive import Archive
from zotd.store.members import heirs
from zotd.wire import api, reports
from zotd.wire.errors import Code, CommandError
from zotd.wire.framing import CLIENT_LIMIT, SERVER_LIMIT
from zotd.wire.version import VERSION, agreed, protocols, refusal

log = logging.getLogger(__name__)


async def hello(epoch: str, call: Invocation, params: api.Hello) -> api.HelloResult:
    """Introduce the client; negotiate the protocol version and the role."""
    protocol = _protocol(params)
    connection = connection_of(call)
    role = connection.role if params.role is None else role_named(params.role)
    if connection.confinement is not None:
        connection.confinement.check(role, f"the role {params.role}")
    if role > connection.ceiling:
        log.warning("connection %s (%s) asked for the role %s", connection.id, connection.peer, params.role)
        role = connection.ceiling
    connection.client, connection.role = params.client, role
    connection.can_decide = params.can_approve and role >= api.Role.APPROVE
    if connection.forwarding is not None:
        await connection.forwarding.introduce()
    if params.role is not None and role is api.Role.ADMIN:
        log.info("connection %s (%s, %s) is admin", connection.id, connection.peer, connection.sender)
    return api.HelloResult(
        protocol,
        VERSION,
        epoch=epoch,
        connection=connection.id,
        pid=os.getpid(),
        role=connection.role.name.lower(),
        features=[],
        limits=api.Limits(CLIENT_LIMIT, SERVER_LIMIT, MAX_WAITING),
        protocols=protocols(),
        proof=connection.admitted.proof if isinstance(connection.admitted, ForwardedClient) else None,
    )


async def hello_on_pipes(call: Invocation, params: api.Hello) -> api.HelloResult:
    """Introduce the client of `zot rpc`; negotiate the protocol version."""
    settings = call.manager.loaded[0].ledger.row.settings
    return api.HelloResult(_protocol(params), VERSION, provider=settings.provider, model=settings.model)


async def ping(call: Invocation, params: api.Nothing) -> api.Pong:
    """Respond at once, to show that the daemon is alive."""
    del call, params
    return api.Pong(pong=True)


async def status(context: DaemonContext, call: Invocation, params: api.Nothing) -> api.Status:
    """Return the daemon's status."""
    del params
    found = context.status()
    return found if call.door.confinement is None else msgspec.structs.replace(found, warnings=[])


async def metrics(context: DaemonContext, call: Invocation, params: api.Nothing) -> reports.Metrics:
    """Return the daemon's counters."""
    del call, params
    return await context.metrics()


async def compact(archive: Archive, call: Invocation, params: api.Nothing) -> reports.Compacted:
    """Return free space of the database to the file system."""
    del call, params
    before, after = await archive.compact()
    return reports.Compacted(before, after)


async def subscribe(call: Invocation, params: api.Subscribe) -> None:
    """Subscribe to topics; replaces earlier subscriptions of the connection."""
    unknown = [topic for topic in params.topics if topic not in TOPICS]
    if unknown:
        raise CommandError(Code.BAD_REQUEST, f'unknown topic "{unknown[0]}"; there are {", ".join(TOPICS)}')
    asked = [layer.trusting.question for layer in call.manager.extension_pool.layers if layer.trusting is not None]
    connection_of(call).subscribe(params.topics, now=[question for question in asked if question is not None])


async def reload(
    again: Callable[[], Awaitable[api.ConfigReloaded]] | None, call: Invocation, params: api.Nothing
) -> api.ConfigReloaded:
    """Reload the configuration."""
    del params
    connection = connection_of(call)
    if again is None:
        raise CommandError(Code.UNSUPPORTED, "this daemon has no configuration file to reload")
    log.info("connection %s (%s) asked the daemon to reload its configuration", connection.id, connection.sender)
    return await again()


async def shutdown(stop: Callable[[bool], None], call: Invocation, params: api.Shutdown) -> None:
    """Stop the daemon; the response is sent before."""
    connection = connection_of(call)
    log.info("connection %s (%s) asked the daemon to stop", connection.id, connection.sender)
    call.respond()
    stop(params.when_idle)


async def drain(context: DaemonContext, call: Invocation, params: api.DaemonDrain) -> api.Draining:  # noqa: ARG001  (says nothing more)
    """Stop the daemon at the ends of its steps, and have others go on; the response is sent before."""
    ownership = None if call.manager.journal is None else call.manager.journal.ownership
    others = [] if ownership is None else list(heirs(await ownership.members.loads()))
    if ownership is None or not others:
        raise CommandError(
            Code.CONFLICT, "no other daemon has the same journal, so none could go on; `zotctl stop` ends this one"
        )
    connection = connection_of(call)
    log.info("connection %s (%s) asked the daemon to hand over its sessions", connection.id, connection.sender)
    running = [session for session in call.manager.loaded if session.work.is_active and not session.ephemeral]
    ownership.prepare_to_end([session.id for session in running])  # what has not stopped in time
    answer = api.Draining(others, call.manager.config.value.limits.drain_s)
    call.respond(answer)
    context.drain()
    for session in running:
        context.spawn(f"hand-over of {session.id}", hand_over(call.manager, session))
    return answer


def _protocol(params: api.Hello) -> int:
    """Return the connection's protocol: the newest that both support, or ours if the client does not state a range."""
    ours, client = protocols(), params.client
    if max(map(len, (client.name, client.kind, client.version))) > NAME_CHARS:
        raise CommandError(Code.BAD_REQUEST, f"name, kind and version have at most {NAME_CHARS} characters each")
    if params.protocol is None:
        return ours[1]
    if params.protocol[0] > params.protocol[1]:
        raise CommandError(
            Code.BAD_REQUEST, "protocol must be the oldest and the newest version that the client supports"
        )
    protocol = agreed(params.protocol, ours)
    if protocol is None:
        name = " ".join(filter(None, (client.name or client.kind or "this client", client.version)))
        raise CommandError(Code.UNSUPPORTED, refusal(name, params.protocol, ours, VERSION))
    return protocol
