r"""The WebSocket framing of a server (RFC 6455), without I/O: bytes of a client in, its text messages out as lines.

    Frames.feed(bytes) -> Heard(lines=b'{"type":"ping"}\n', ping=None, close=None)      any cutting gives the same lines

A payload is handed on as it comes, so that a message costs no more memory here than in `wire.framing`, which knows how
long a line may be. A line break inside a message is white space of its JSON and becomes a carriage return, which JSON
takes in the same places and refuses in the same: what is one message stays one line.
"""

from dataclasses import dataclass, field
from enum import IntEnum

MAX_FRAGMENTS = 16_384
"""Frames of one message: 16 MiB in pieces of 1 KiB. Browsers send pieces of 128 KiB."""

MAX_CONTROL_BYTES = 125
"""Of the payload of a ping, a pong or a close (RFC 6455, 5.5)."""

_WORD, _LONG = 126, 127
"""Lengths of 7 bits that stand for two, and for eight, bytes of length behind them."""

_LONGEST = 1 << 63
"""The first length that RFC 6455 does not allow."""


class CloseCode(IntEnum):
    """Why a connection ends (RFC 6455, 7.4), and one of our own."""

    NORMAL = 1000
    GOING_AWAY = 1001
    PROTOCOL_ERROR = 1002
    UNSUPPORTED = 1003
    POLICY = 1008
    TRY_LATER = 1013
    UNAUTHORIZED = 4401
    """No token that counts, or none any more; nothing more is said."""


class Op(IntEnum):
    """What a frame is (RFC 6455, 5.2)."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


@dataclass(slots=True)
class DecodedFrames:
    """What some bytes have brought."""

    lines: bytearray = field(default_factory=bytearray)
    """Text messages, each with a newline behind it; the last one may go on."""
    ping: bytes | None = None
    """The payload of the last ping, which is the only one that has to be answered."""
    controls: int = 0
    """Pings and pongs, and messages without a byte: what says nothing, and costs as much as what does."""
    close: int | None = None
    """The code to close with: the client has closed, or broken the protocol. Nothing behind it was read."""


class _BrokenError(Exception):
    """The client breaks the protocol; the code says how."""

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
    """Where the payload begins."""


class Frames:
    """The state of one client's framing."""

    def __init__(self) -> None:
        self._held = bytearray()  # beyond one feed: a header, or a control frame, that is not complete
        self._left = 0
        """Bytes of the payload under way that are still to come."""
        self._mask = b""
        """For the next of them."""
        self._ends_message = True
        self._in_message = False
        self._fragments = 0
        self.is_over = False
        """It has said `close`, and is to be fed no more."""

    def feed(self, data: bytes) -> DecodedFrames:
        """What these bytes bring."""
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
        """Take what there is of the payload under way; where it ends, None when there was nothing."""
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
        """Begin the frame that stands here, or take it when it is a control frame; None: it is not all there."""
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
        """The header that stands here; None when it is not all there. What is wrong with it is told by two bytes."""
        if len(self._held) < at + 2:
            return None
        first, second = self._held[at : at + 2]
        op, is_last, size = _op(first & 0x0F), bool(first & 0x80), second & 0x7F
        is_extended = bool(first & 0x70)  # permessage-deflate for one, which was not agreed on
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
    """A frame of the server: whole, and not masked."""
    size = len(payload)
    head = 0x80 | op
    if size < _WORD:
        return bytes([head, size]) + payload
    if size < 1 << 16:
        return bytes([head, _WORD]) + size.to_bytes(2, "big") + payload
    return bytes([head, _LONG]) + size.to_bytes(8, "big") + payload


def closing(code: int) -> bytes:
    """The frame that ends a connection, without a reason in words."""
    return frame(Op.CLOSE, code.to_bytes(2, "big"))


def _op(number: int) -> Op:
    try:
        return Op(number)
    except ValueError as error:
        raise _BrokenError(CloseCode.PROTOCOL_ERROR) from error


def _code_for(payload: bytes) -> int:
    """The code to answer a close frame with: its own, or that it has none that may be sent (RFC 6455, 7.4.1)."""
    if not payload:
        return CloseCode.NORMAL
    code = int.from_bytes(payload[:2], "big")
    may_be_sent = 1000 <= code <= 1014 and code not in {1004, 1005, 1006}
    if len(payload) >= 2 and (may_be_sent or 3000 <= code < 5000):
        return code
    return CloseCode.PROTOCOL_ERROR


def _unmasked(data: bytes | bytearray, mask: bytes) -> bytes:
    """`data` without its mask: as one long number, which is a hundred times as fast as byte by byte."""
    size = len(data)
    key = int.from_bytes((mask * (size // len(mask) + 1))[:size], "little")
    return (int.from_bytes(data, "little") ^ key).to_bytes(size, "little")
