"""The name of a host in the first message of a TLS client (SNI), which is not encrypted.

Large services have many hosts at one address and choose by this name. A command that may reach one of them could ask for
another one in it. RFC 8446, 4.1.2; RFC 6066, 3.
"""

from zotd.proxy.errors import HostError

MAX_HELLO = 64 * 1024
"""Longest first message; usual ones have 2 kB at most."""

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME = 22, 1, 0


def is_tls(data: bytes) -> bool:
    """Return whether the first bytes of a connection begin a TLS handshake."""
    return data[0] == _HANDSHAKE and data[1:2] in {b"", b"\x03"}


def server_name(data: bytes) -> str | None:
    """Return the name in a first message, "" if it has none, and None if more bytes are needed to tell.

    Raises:
        HostError: it is no first message of TLS, or longer than `MAX_HELLO`.
    """
    message = _Fields(b"")
    records = _Fields(data)
    # A message may be cut into records anywhere.
    while not _is_whole(message.rest):
        if len(data) > MAX_HELLO or (data and not is_tls(data)):
            raise HostError("the first message of TLS is malformed")
        if len(records.rest) < 5 or len(records.rest) < 5 + int.from_bytes(records.rest[3:5], "big"):
            return None
        if records.number(1) != _HANDSHAKE:
            raise HostError("the first message of TLS is malformed")
        records.take(2)
        message = _Fields(message.rest + records.vector(2))
    try:
        return _name_in(message)
    except (IndexError, UnicodeDecodeError) as error:
        raise HostError("the first message of TLS is malformed") from error


def _is_whole(message: bytes) -> bool:
    return len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4], "big")


def _name_in(message: "_Fields") -> str:
    if message.number(1) != _CLIENT_HELLO:
        raise IndexError
    hello = _Fields(message.vector(3))
    hello.take(2 + 32)  # version and random bytes
    for width in (1, 2, 1):  # session, ciphers, compression
        hello.vector(width)
    extensions = _Fields(hello.vector(2) if hello.rest else b"")
    while extensions.rest:
        kind, content = extensions.number(2), _Fields(extensions.vector(2))
        if kind == _SERVER_NAME:
            names = _Fields(content.vector(2))
            names.take(1)  # the only kind of name there is
            return names.vector(2).decode("ascii")
    return ""


class _Fields:
    """Reads numbers and byte strings from the start; raises IndexError when there are too few bytes."""

    def __init__(self, rest: bytes) -> None:
        self.rest = rest

    def take(self, count: int) -> bytes:
        if len(self.rest) < count:
            raise IndexError
        found, self.rest = self.rest[:count], self.rest[count:]
        return found

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def vector(self, width: int) -> bytes:
        """Read a byte string whose length stands before it."""
        return self.take(self.number(width))
