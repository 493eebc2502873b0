r"""The server side of WebSocket framing (RFC 6455), without I/O: bytes of a client in, text messages out as lines.

    Frames.feed(bytes) -> Heard(lines=b'{"type":"ping"}\n', ping=None, close=None)      independent of how bytes are divided

Payload is passed on as it arrives, so a message takes no more memory than in `wire.framing`, which limits its length. A
line break within a message is replaced by a carriage return, which is equivalent white space in JSON, so that each
message is one line.
"""

from dataclasses import dataclass, field
from enum import IntEnum

MAX_FRAGMENTS = 16_384
"""Maximum number of frames per message: 16 MiB in pieces of 1 KiB. Browsers send pieces of 128 KiB."""

MAX_CONTROL_BYTES = 125
"""Longest payload of a ping, pong or close frame (RFC 6455, 5.5)."""

_WORD, _LONG = 126, 127
"""Values of the 7-bit length that announce a length of two, or of eight, bytes."""

_LONGEST = 1 << 63
"""The first length that RFC 6455 does not allow."""


class CloseCode(IntEnum):
    """Close codes (RFC 6455, 7.4), and one of our own."""

    NORMAL = 1000
    GOING_AWAY = 1001
    PROTOCOL_ERROR = 1002
    UNSUPPORTED = 1003
    POLICY = 1008
    TRY_LATER = 1013
    UNAUTHORIZED = 4401
    """The token is missing, invalid or no longer valid; the reason is not disclosed."""


class Op(IntEnum):
    """Type of a frame (RFC 6455, 5.2)."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


@dataclass(slots=True)
class DecodedFrames:
    """Result of feeding some bytes."""

    lines: bytearray = field(default_factory=bytearray)
    """Text messages, each followed by a newline; the last one may be incomplete."""
    ping: bytes | None = None
    """Payload of the last ping; only that one has to be answered."""
    controls: int = 0
    """Number of pings, pongs and empty messages, which cost as much as others but carry nothing."""
    close: int | None = None
    """Code to close with, after a close frame or a violation of the protocol. Later bytes were not processed."""


class _BrokenError(Exception):
    """The client violates the protocol; the code says how."""

    def __init__(self, code: CloseCode) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class _Header:
    op: Op
    is_last: bool
    size: int
    mask: bytes
    end: int
    """Index at which the payload begins."""


class Frames:
    """Decoder state of one client."""

    def __init__(self) -> None:
        self._held = bytearray()  # between two feeds: an incomplete header or control frame
        self._left = 0
        """Remaining bytes of the current payload."""
        self._mask = b""
        """Mask for the next of these bytes."""
        self._ends_message = True
        self._in_message = False
        self._fragments = 0
        self.is_over = False
        """A close frame was received, or the protocol was violated; `feed` must not be called again."""

    def feed(self, data: bytes) -> DecodedFrames:
        """Decode more bytes."""
        self._held += data
        heard = DecodedFrames()
        at = 0
        try:
            while heard.close is None:
                after = self._payload(at, heard) if self._left else self._frame(at, heard)
                if after is None:
                    break
                at = after
        except _BrokenError as error:
            heard.close = error.code
        del self._held[:at]
        self.is_over = heard.close is not None
        return heard

    def _payload(self, at: int, heard: DecodedFrames) -> int | None:
        """Consume available bytes of the current payload; None at its end if there was nothing to consume."""
        data = self._held[at : at + self._left]
        if not data:
            return None
        heard.lines += _unmasked(data, self._mask).replace(b"\n", b"\r")
        self._left -= len(data)
        turn = len(data) % len(self._mask)
        self._mask = self._mask[turn:] + self._mask[:turn]
        if not self._left:
            self._end_frame(heard)
        return at + len(data)

    def _frame(self, at: int, heard: DecodedFrames) -> int | None:
        """Start the frame at this position, or process it if it is a control frame; None if it is incomplete."""
        header = self._header(at)
        if header is None:
            return None
        if header.op >= Op.CLOSE:
            return self._control(header, heard)
        self._check_order(header)
        self._in_message, self._ends_message = True, header.is_last
        self._left, self._mask = header.size, header.mask
        heard.controls += header.op is Op.TEXT and header.is_last and not header.size
        if not self._left:
            self._end_frame(heard)
        return header.end

    def _check_order(self, header: _Header) -> None:
        if header.op is Op.BINARY:
            raise _BrokenError(CloseCode.UNSUPPORTED)
        if (header.op is Op.CONTINUATION) != self._in_message:
            raise _BrokenError(CloseCode.PROTOCOL_ERROR)
        self._fragments += 1
        if self._fragments > MAX_FRAGMENTS:
            raise _BrokenError(CloseCode.POLICY)

    def _end_frame(self, heard: DecodedFrames) -> None:
        if self._ends_message:
            heard.lines += b"\n"
            self._in_message = False
            self._fragments = 0

    def _control(self, header: _Header, heard: DecodedFrames) -> int | None:
        end = header.end + header.size
        if len(self._held) < end:
            return None
        payload = _unmasked(self._held[header.end : end], header.mask)
        if header.op is Op.CLOSE:
            heard.close = _code_for(payload)
        else:
            heard.controls += 1
            if header.op is Op.PING:
                heard.ping = payload
        return end

    def _header(self, at: int) -> _Header | None:
        """Parse the header at this position; None if it is incomplete. Errors are detected in its first two bytes."""
        if len(self._held) < at + 2:
            return None
        first, second = self._held[at : at + 2]
        op, is_last, size = _op(first & 0x0F), bool(first & 0x80), second & 0x7F
        is_extended = bool(first & 0x70)  # reserved bits, such as permessage-deflate's: no extension is negotiated
        is_bad_control = op >= Op.CLOSE and (size > MAX_CONTROL_BYTES or not is_last)
        if is_extended or is_bad_control or not second & 0x80:
            raise _BrokenError(CloseCode.PROTOCOL_ERROR)
        start = at + 2 + {_WORD: 2, _LONG: 8}.get(size, 0)
        if len(self._held) < start + 4:
            return None
        if size >= _WORD:
            size = int.from_bytes(self._held[at + 2 : start], "big")
        if size >= _LONGEST:
            raise _BrokenError(CloseCode.PROTOCOL_ERROR)
        return _Header(op, is_last, size, bytes(self._held[start : start + 4]), start + 4)


def frame(op: Op, payload: bytes) -> bytes:
    """Encode a frame of the server: in one piece, and not masked."""
    size = len(payload)
    head = 0x80 | op
    if size < _WORD:
        return bytes([head, size]) + payload
    if size < 1 << 16:
        return bytes([head, _WORD]) + size.to_bytes(2, "big") + payload
    return bytes([head, _LONG]) + size.to_bytes(8, "big") + payload


def closing(code: int) -> bytes:
    """Encode the frame that closes a connection, without a reason text."""
    return frame(Op.CLOSE, code.to_bytes(2, "big"))


def _op(number: int) -> Op:
    try:
        return Op(number)
    except ValueError as error:
        raise _BrokenError(CloseCode.PROTOCOL_ERROR) from error


def _code_for(payload: bytes) -> int:
    """Return the code to answer a close frame with: its own, or a default if that is reserved (RFC 6455, 7.4.1)."""
    if not payload:
        return CloseCode.NORMAL
    code = int.from_bytes(payload[:2], "big")
    may_be_sent = 1000 <= code <= 1014 and code not in {1004, 1005, 1006}
    if len(payload) >= 2 and (may_be_sent or 3000 <= code < 5000):
        return code
    return CloseCode.PROTOCOL_ERROR


def _unmasked(data: bytes | bytearray, mask: bytes) -> bytes:
    """Return `data` unmasked. Uses one long integer, which is a hundred times as fast as a loop over the bytes."""
    size = len(data)
    key = int.from_bytes((mask * (size // len(mask) + 1))[:size], "little")
    return (int.from_bytes(data, "little") ^ key).to_bytes(size, "little")
