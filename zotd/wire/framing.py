"""Bytes to lines, without I/O: the NDJSON framing of every carrier (`docs/protocol.md`).

A line ends at LF and nowhere else: U+2028, NEL, VT and FF inside a string are data. A line over the limit is
reported once, skipped to its newline, and the next one is read as usual.

    Lines.feed(bytes) -> [line | TooLong, ...]      any cutting of the bytes gives the same result
"""

from dataclasses import dataclass

CLIENT_LIMIT = 16 * 1024 * 1024
"""Longest line taken from a client, in bytes without its newline (`docs/protocol.md`)."""

SERVER_LIMIT = 4 * 1024 * 1024
"""Longest frame that we send, and the longest taken from an extension."""

HEAD_BYTES = 4096
"""How much of a line that is too long is kept, to find the id it answers."""


@dataclass(frozen=True, slots=True)
class TooLong:
    """Stands for a line that was skipped."""

    head: bytes
    """Its first `HEAD_BYTES` bytes."""


class Lines:
    """Cuts a byte stream into lines without their newline; empty and blank lines are dropped."""

    def __init__(self, limit: int) -> None:
        """`limit`: longest line in bytes; memory held never exceeds it by more than one feed."""
        self._limit = limit
        self._held = bytearray()  # a list of pieces would cost a drip-fed line twenty times its size
        self._skipping = False

    @property
    def held(self) -> int:
        """Bytes of the line that has begun; 0 when none has, or when it is skipped."""
        return len(self._held)

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Every line that `data` completes, oldest first."""
        pieces = data.split(b"\n")
        rest = pieces.pop()
        lines: list[bytes | TooLong] = []
        for piece in pieces:
            self._end_line(piece, lines)
        self._hold(rest, lines)
        return lines

    def end(self) -> list[bytes | TooLong]:
        """What an unterminated last line holds, when the stream has ended."""
        lines: list[bytes | TooLong] = []
        self._end_line(b"", lines)
        return lines

    def _end_line(self, piece: bytes, lines: list[bytes | TooLong]) -> None:
        if self._held or self._skipping:
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
            lines.append(TooLong(bytes(self._held[:HEAD_BYTES])))
            self._held.clear()
            self._skipping = True
