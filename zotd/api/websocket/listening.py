"""Determines, checks and binds the addresses of the WebSocket door.

An address that other machines can reach requires TLS. The check uses the addresses that the configured name resolves
to, and exactly these are bound, so it does not matter if the name resolves to something else a moment later.
"""

import asyncio
import errno
import re
import socket
import ssl
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

from msgspec import Struct

from zotd.config import EXPOSED, ConfigError, WebsocketSection
from zotd.fleet_key import digest

RESOLVE_S = 10.0
"""Timeout for resolving the name at the start, in seconds; an address or `localhost` needs no name server."""

BACKLOG = 128

MAX_PORT = 65535

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
"""The first certificate of a file is the one that is shown; the others sign it."""


class ListenError(Exception):
    """The door cannot be opened; the message says why, and if known which process uses the address."""


class Listening(Struct, frozen=True):
    """A door that can be opened."""

    settings: WebsocketSection
    addresses: Sequence[tuple[str, int]]
    """Addresses that `listen` resolves to."""
    tls: ssl.SSLContext | None
    certificate: str = ""
    """SHA-256 of the certificate in DER; empty without TLS."""

    async def bind(self) -> Sequence[socket.socket]:
        """Return listening sockets, for the caller to close.

        Raises:
            BusyError: an address is in use, or does not belong to this machine.
        """
        bound: list[socket.socket] = []
        try:
            for host, port in self.addresses:
                found = _bound(host, bound[0].getsockname()[1] if bound and not port else port)
                bound += [] if found is None else [found]
        except OSError as error:
            for listener in bound:
                listener.close()
            raise ListenError(await self._sentence(error)) from error
        if not bound:
            raise ListenError(f"the WebSocket door is closed: {self.settings.listen} is not an address of this machine")
        return bound

    async def _sentence(self, error: OSError) -> str:
        port = self.addresses[0][1]
        if error.errno != errno.EADDRINUSE:
            return f"the WebSocket door is closed: {self.settings.listen} cannot be bound: {error.strerror}"
        owner = await asyncio.to_thread(_owner, port)
        sentence = f"the WebSocket door is closed: port {port} is in use{owner and f' by {owner}'}"
        return f"{sentence}; free it or set websocket.listen to another one, and restart zotd"


async def prepared(settings: WebsocketSection) -> Listening | None:
    """Return the configured door, or None if none is configured.

    Raises:
        ConfigError: a certificate, key or address is missing or invalid.
    """
    if settings.listen is None:
        return None
    host, _, digits = settings.listen.rpartition(":")
    port = int(digits)
    if port > MAX_PORT:
        raise ConfigError(f"websocket.listen: {port} is not a port; the largest is {MAX_PORT}")
    addresses = await _resolved(host.strip("[]"), port)
    tls = _tls(settings)
    if tls is None and not all(ip_address(address).is_loopback for address in addresses):
        raise ConfigError(f"websocket.listen: {EXPOSED.format(settings.listen)}")
    return Listening(settings, [(address, port) for address in addresses], tls, _digest(settings))


async def _resolved(host: str, port: int) -> Sequence[str]:
    try:
        async with asyncio.timeout(RESOLVE_S):
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
    except (OSError, TimeoutError, UnicodeError) as error:
        raise ConfigError(f'websocket.listen: cannot resolve "{host}"') from error
    return list(dict.fromkeys(str(address[0]).partition("%")[0] for *_, address in found))


def _tls(settings: WebsocketSection) -> ssl.SSLContext | None:
    if settings.tls_cert is None or settings.tls_key is None:  # the configuration has both or neither
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key, password=_refused)
    except (OSError, ssl.SSLError) as error:  # the `strerror` of an SSLError is a sentence as well
        place = f"tls_cert {settings.tls_cert} and tls_key {settings.tls_key}"
        raise ConfigError(f"websocket: {place} cannot be used: {error.strerror}") from error
    return context


def _digest(settings: WebsocketSection) -> str:
    if settings.tls_cert is None:
        return ""
    shown = _PEM.search(Path(settings.tls_cert).read_text(encoding="ascii", errors="replace"))
    return "" if shown is None else digest(ssl.PEM_cert_to_DER_cert(shown[0]))


def _refused() -> str:
    """Reject an encrypted key: OpenSSL would otherwise ask for a password on a terminal, which the daemon lacks."""
    raise ConfigError("websocket: tls_key is protected by a password; store it without one, readable only by you")


def _bound(host: str, port: int) -> socket.socket | None:
    """Return a listening socket; None if this machine does not have the address, such as ::1 in some containers."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError:  # no IPv6 support
        return None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # ignore connections in TIME_WAIT
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            return None
        raise
    listener.setblocking(False)
    return listener


def _owner(port: int) -> str:
    """Return which process listens there, as in `python3 (pid 4711)`; empty if unknown. Blocks."""
    import psutil  # noqa: PLC0415  (as much memory as 30 modules of ours, for an error that is rare)

    try:
        found = psutil.net_connections("tcp")
        pids = [one.pid for one in found if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port]
        pid = next(filter(None, pids), None)
        return "" if pid is None else f"{psutil.Process(pid).name()} (pid {pid})"
    except psutil.Error:  # a process of another user, or one that has just ended
        return ""
