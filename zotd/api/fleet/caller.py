"""Connects to other daemons of the fleet: WebSocket, and the proofs of both sides."""

import asyncio
import ssl
from contextlib import AsyncExitStack, suppress
from functools import cache

import aiohttp
import msgspec

from zotd import fleet_key
from zotd.api.fleet.address import door_of, problem_of
from zotd.api.fleet.introduction import FleetHello
from zotd.api.fleet.relay import Relay, RelayClient, RelayError
from zotd.fleet_key import FleetKey
from zotd.store.members import FleetMember
from zotd.wire.api import HelloResult
from zotd.wire.framing import SERVER_LIMIT

CALL_S = 3.0
"""Longest wait until another daemon has answered a hello. One on a lost machine does not answer at all."""

PING_S = 6.0
"""Silence after which another daemon is pinged; half as much later it counts as gone. Together less than a lease."""

FORBIDDEN = 403
"""HTTP status for a name of the host that the door does not accept."""

UNAUTHORIZED = 4401
"""Close code of a door that does not accept the proof."""

CLOSE_S = 1.0
"""Longest wait for the other side's close frame."""


async def call(member: FleetMember, client: RelayClient, key: FleetKey) -> Relay:
    """Connect for a client, which the other daemon then treats as its own. The caller runs the relay, which closes itself.

    Raises:
        RelayError: the daemon does not answer, or does not have the key.
    """
    messages, _ = await connect(member, key, client)
    return Relay(member, messages, client)


async def connect(
    member: FleetMember, key: FleetKey, client: RelayClient | None
) -> tuple["SocketMessages", HelloResult]:
    """Connect, for a client or for one that comes later, and return what the other daemon has said. The caller closes it.

    Raises RelayError like `call`.
    """
    if not member.address:
        raise RelayError("it has no address for other daemons", is_lasting=True)
    if problem := problem_of(member.address):
        raise RelayError(f"its address {member.address} {problem}", is_lasting=True)
    try:
        async with asyncio.timeout(CALL_S):
            return await _introduced(member, key, client)
    except (TimeoutError, aiohttp.ClientError, OSError, msgspec.MsgspecError) as error:
        raise _reason(error, member) from error


async def _introduced(
    member: FleetMember, key: FleetKey, client: RelayClient | None
) -> tuple["SocketMessages", HelloResult]:
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(_session())
        socket = await http.ws_connect(
            door_of(member.address),
            ssl=_tls() if member.address.startswith("wss:") else True,
            heartbeat=PING_S,
            max_msg_size=SERVER_LIMIT + 1,  # aiohttp rejects messages of exactly this size
            timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),
        )
        messages = SocketMessages(http, socket)
        stack.push_async_callback(messages.close)
        introduction = FleetHello(member, key, messages.certificate)
        await messages.send(introduction.hello(client))
        line = await messages.receive()
        if line is None:
            raise _closed(socket.close_code, member)
        answer = introduction.checked(line)
        stack.pop_all()
    return messages, answer


def _reason(error: Exception, member: FleetMember) -> RelayError:
    """Return the error for one that the connection has met."""
    match error:
        case TimeoutError():
            return RelayError(f"it has not answered within {CALL_S:g} s at {member.address}")
        case aiohttp.WSServerHandshakeError():
            advice = "; add this host name to websocket.hosts there" if error.status == FORBIDDEN else ""
            return RelayError(f"{member.address} answers with HTTP status {error.status}{advice}")
        case _:
            return RelayError(" ".join(str(error).split()) or type(error).__name__)


@cache
def _tls() -> ssl.SSLContext:
    """Return a context that trusts every certificate: the proofs, which are bound to it, say who answers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _session() -> aiohttp.ClientSession:
    """Return an HTTP session for a single connection."""
    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_refuse_redirect)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=1, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        trust_env=False,
        trace_configs=[trace],
    )


async def _refuse_redirect(_: object, __: object, ___: object) -> None:
    raise RelayError("it answers with a redirect, which is not followed")


def _certificate(socket: aiohttp.ClientWebSocketResponse) -> str:
    """Return the digest of the certificate that the other side has shown; empty without TLS."""
    encrypted: ssl.SSLObject | None = socket.get_extra_info("ssl_object")
    shown = None if encrypted is None else encrypted.getpeercert(binary_form=True)
    return "" if shown is None else fleet_key.digest(shown)


def _closed(code: int | None, member: FleetMember) -> RelayError:
    """Return the error for a connection that was closed instead of an answer."""
    if code == UNAUTHORIZED:
        sentence = f"it has refused the fleet key at {member.address}; all daemons need the same one"
        return RelayError(sentence, is_lasting=True)
    return RelayError(f"it has closed the connection at {member.address} ({code}); it may have too many clients")


class SocketMessages:
    """The text messages of a WebSocket."""

    def __init__(self, http: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Take ownership of both."""
        self._http = http
        self._socket = socket
        self.certificate = _certificate(socket)
        """Digest of the certificate that the other side has shown; empty without TLS."""

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be sent."""
        return self._socket.closed

    async def send(self, line: bytes) -> None:
        """Send a line; raises ConnectionError."""
        await self._socket.send_str(line.decode())

    async def receive(self) -> str | None:
        """Return the next message; None at the end."""
        message = await self._socket.receive()
        text: str | None = message.data if message.type is aiohttp.WSMsgType.TEXT else None
        return text

    async def close(self) -> None:
        """Close the connection."""
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            await self._socket.close()
        await self._http.close()
