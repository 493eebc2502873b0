"""The host and port of a daemon on another machine, from the URL that a user gives."""

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from zotd.client.errors import ClientError
from zotd.loopback import address_of, is_loopback
from zotd.wire.version import WEBSOCKET_PATH

PORTS = {"wss": 443, "ws": 80}
"""Default port."""

_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
"""Characters of a host name; international names must be in their ASCII form (`xn--`)."""

_WHAT_IT_IS = "a URL such as wss://host:port"


class TokenAudience(NamedTuple):
    """The host and port that a token is sent to."""

    is_tls: bool
    host: str
    """Lower case, without a trailing dot; an IPv6 address without brackets."""
    port: int

    @property
    def name(self) -> str:
        """`host:port`, to which a token is pinned."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """URL of the WebSocket."""
        return f"{'wss' if self.is_tls else 'ws'}://{self.name}{WEBSOCKET_PATH}"


def parsed(url: str) -> TokenAudience:
    """Parse the URL of a daemon.

    Raises:
        ClientError: it is malformed, has no host, has parts besides the host, or would send a token unencrypted.
    """
    _refuse_secrets(url)
    # Checked before urlsplit, which silently removes tabs and newlines: the user must see the URL that is used.
    if not url.isascii() or any(letter <= " " or letter in "\\\x7f" for letter in url):
        raise ClientError(f"--host must be {_WHAT_IT_IS}, not {url!a}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ClientError(f"--host {url}: {error}") from error
    if parts.scheme not in PORTS or not parts.hostname:
        raise ClientError(f"--host must be {_WHAT_IT_IS}, not {url}")
    if parts.path not in {"", "/", WEBSOCKET_PATH}:
        raise ClientError(f"--host must end with the port, without the path {parts.path}")
    host = _host(parts.hostname)
    if host is None or port == 0:
        raise ClientError(f"--host {url} does not name a valid host")
    if parts.scheme == "ws" and not is_loopback(host):
        raise ClientError(
            f"--host {url} would send the token in the clear; use wss:// (ws:// is for this machine only)"
        )
    return TokenAudience(parts.scheme == "wss", host, port or PORTS[parts.scheme])


def _refuse_secrets(url: str) -> None:
    """Reject other parts of a URL first and without quoting them, because they could contain a token."""
    if "@" in url:
        raise ClientError("--host must not contain a user name or a password; pass the token with --token-file")
    if "?" in url or "#" in url:
        raise ClientError("--host must not contain a query or a fragment; pass the token with --token-file")


def _host(name: str) -> str | None:
    name = name.removesuffix(".")
    if ":" in name or name.replace(".", "").isdigit():
        return str(address) if (address := address_of(name)) else None
    return name if _HOST.fullmatch(name) else None
