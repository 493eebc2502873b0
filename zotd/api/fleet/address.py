"""URLs at which daemons reach each other."""

from urllib.parse import urlsplit

from zotd.loopback import address_of, is_loopback
from zotd.wire.version import WEBSOCKET_PATH


def problem_of(url: str) -> str:
    """Return what is wrong with an address, as the end of a sentence that begins with it; empty if nothing is."""
    try:
        parts = urlsplit(url)
        has_port = parts.port is not None
    except ValueError as error:
        return f"is not a URL: {error}"
    if (
        parts.scheme not in {"ws", "wss"}
        or not parts.hostname
        or not has_port
        or parts.path not in {"", "/", WEBSOCKET_PATH}
    ):
        return "must be a URL such as wss://host:port"
    if parts.scheme == "ws" and not is_loopback(parts.hostname):
        return "must begin with wss://, because other machines can read along what is not encrypted"
    return ""


def door_of(url: str) -> str:
    """Return the URL of the WebSocket at an address without a problem."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{WEBSOCKET_PATH}"


def stands_for_all(url: str) -> bool:
    """Whether the host of a URL stands for all addresses of a machine, so that no other machine can use it."""
    address = address_of(urlsplit(url).hostname or "")
    return address is not None and address.is_unspecified
