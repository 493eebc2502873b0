r"""Splits a byte stream into messages that have a header with their length, without I/O: the framing of language servers.

Content-Length: 52\r\n
\r\n
{"jsonrpc":"2.0", ...}

HeaderFrames.feed(bytes) -> [message | TooLong, ...]      the result does not depend on how the bytes are divided
"""

import re

from zotd.wire.framing import HEAD_BYTES, TooLong

HEADER_BYTES = 4096
"""Longest header."""

_END = b"\r\n\r\n"

_LENGTH = re.compile(rb"^content-length[ \t]*:[ \t]*([0-9]{1,15})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)


class BadHeaderError(ValueError):
    """The stream cannot be read any further; the message continues the name of its program."""


class HeaderFrames:
    """Splits a byte stream into messages without their headers."""

    def __init__(self, limit: int) -> None:
        """`limit`: longest message in bytes. At most that much is kept between two calls of `feed`."""
        self._limit = limit
        self._held = bytearray()
        self._length: int | None = None
        """Length of the message whose header was read; None: the header comes next."""
        self._skipped = 0
        """Bytes that are still to come of a message that is too long."""

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Add `data` and return the messages that it completes, oldest first. One that is too long counts when its header is read.

        Raises:
            BadHeaderError: where a header should be there is something else; call it no more.
        """
        messages: list[bytes | TooLong] = []
        skipped = min(self._skipped, len(data))
        self._skipped -= skipped
        self._held += memoryview(data)[skipped:]
        while self._held and not self._skipped:
            if self._length is None:
                if (length := self._header()) is None:
                    break
                self._begin(length, messages)
            elif len(self._held) >= self._length:
                messages.append(bytes(self._held[: self._length]))
                del self._held[: self._length]
                self._length = None
            else:
                break
        return messages

    def _begin(self, length: int, messages: list[bytes | TooLong]) -> None:
        if length <= self._limit:
            self._length = length
            return
        messages.append(TooLong(bytes(self._held[:HEAD_BYTES])))
        self._skipped = max(0, length - len(self._held))
        del self._held[:length]

    def _header(self) -> int | None:
        """Take a header from what is held, and return the length that it names; None: it is not complete."""
        end = self._held.find(_END, 0, HEADER_BYTES)
        if end < 0:
            if len(self._held) >= HEADER_BYTES:
                raise BadHeaderError("has sent something that is not a message with a header")
            return None
        found = _LENGTH.search(bytes(self._held[:end]))
        if found is None:
            raise BadHeaderError("has sent a header without a Content-Length")
        del self._held[: end + len(_END)]
        return int(found[1])


def framed(message: bytes) -> bytes:
    """Return the message with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(message), message)
