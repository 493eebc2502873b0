"""Splits a byte stream into lines, without I/O: the NDJSON framing of every carrier (`docs/protocol.md`).

A line ends only at LF: U+2028, NEL, VT and FF inside a string are data. A line that exceeds the limit is reported once
and skipped; reading continues with the next one.

    Lines.feed(bytes) -> [line | TooLong, ...]      the result does not depend on how the bytes are divided
"""

from msgspec import Struct

CLIENT_LIMIT = 16 * 1024 * 1024
"""Longest line accepted from a client, in bytes without its newline (`docs/protocol.md`)."""

SERVER_LIMIT = 4 * 1024 * 1024
"""Longest frame that zotd sends, and the longest accepted from an extension."""

HEAD_BYTES = 4096
"""Length of the kept beginning of a line that is too long, in which the id for the error response is looked up."""


class TooLong(Struct, frozen=True):
    """Stands for a line that exceeded the limit and was skipped."""

    head: bytes
    """Its first `HEAD_BYTES` bytes."""


class Lines:
    """Splits a byte stream into lines without their newline; empty and blank lines are dropped."""

    def __init__(self, limit: int) -> None:
        """`limit`: longest line in bytes. At most that much is kept between two calls of `feed`."""
        self._limit = limit
        # One buffer: with a list of chunks, a line that arrives byte by byte would take twenty times its size.
        self._held = bytearray()
        self._skipping = False

    @property
    def held(self) -> int:
        """Bytes received of an incomplete line; 0 if there is none, or if it is being skipped."""
        return len(self._held)

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Add `data` and return the lines that it completes, oldest first."""
        pieces = data.split(b"\n")
        rest = pieces.pop()
        lines: list[bytes | TooLong] = []
        for piece in pieces:
            self._end_line(piece, lines)
        self._hold(rest, lines)
        return lines

    def end(self) -> list[bytes | TooLong]:
        """Return the unterminated last line, if any. Call it at the end of the stream."""
        lines: list[bytes | TooLong] = []
        self._end_line(b"", lines)
        return lines

    def _end_line(self, piece: bytes, lines: list[bytes | TooLong]) -> None:
        if self._held or self._skipping:
            # Only lines that arrived in several chunks are copied; most are complete in one.
            self._hold(piece, lines)
            piece = bytes(self._held)
            self._held.clear()
        if self._skipping:
            self._skipping = False
        elif len(piece) > self._limit:
            lines.append(TooLong(piece[:HEAD_BYTES]))
        elif piece and not piece.isspace():
            lines.append(piece)

    def _hold(self, piece: bytes, lines: list[bytes | TooLong]) -> None:
        if self._skipping or not piece:
            return
        self._held += piece
        if len(self._held) > self._limit:
            # Reported before its end: a line that never ends must not delay the error.
            lines.append(TooLong(bytes(self._held[:HEAD_BYTES])))
            self._held.clear()
            self._skipping = True
