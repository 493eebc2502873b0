"""The third way: text messages through the WebSocket door, and those who never get as far as hello."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.faults.carriers import ANSWER_S, Answers, Daemon, Wire
from zotd.api.websocket.frames import Op

OPEN = (
    "GET /v1 HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)

CLOSED = (b"\x88", b"")
"""How a connection ends that is refused: with a close frame, or cut off because of what came behind it."""

NAME = "what-no-damaged-frame-says"
"""Of our token, which must not be revoked."""

PONG = b"\x8a"

PER_ADDRESS = 8
"""Of one source, of which ten are heard in a minute; then comes another one of 127.0.0.0/8."""


class Web(Daemon):
    """A daemon with a WebSocket door; what looks after it uses the Unix socket."""

    _token = ""

    @classmethod
    @asynccontextmanager
    async def opened(cls, folder: Path, model_url: str) -> AsyncIterator["Web"]:
        """It lives until the end of the block."""
        async with cls.started(folder, model_url, {"ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0"}) as daemon:
            assert isinstance(daemon, Web)
            yield daemon

    async def connected(self, answers: Answers) -> asyncio.Transport:
        """An upgraded connection that has said hello with a token."""
        host, port = await self._door()
        wire = _Messages(answers)
        transport, _ = await asyncio.get_running_loop().create_connection(lambda: wire, host, port)
        transport.write(OPEN.format(host=f"{host}:{port}").encode())
        async with asyncio.timeout(ANSWER_S):
            await wire.upgraded.wait()
        self._token = self._token or str((await self.ask("token.create", name=NAME, role="admin"))["token"])
        transport.write(message(f'{{"type":"hello","role":"admin","token":"{self._token}"}}'.encode()))
        await answers.until(1)
        return transport

    def framed(self, lines: Sequence[bytes]) -> tuple[bytes, int]:
        """A message for each, and how many answers they get: a message is one line, whatever is in it."""
        return b"".join(map(message, lines)), sum(line not in {b"", b"\r", b"\n"} for line in lines)

    async def refuse(self, frames: Sequence[bytes], number: int, chance: random.Random) -> int:
        """Send each of these as the first frame of a connection of its own; how many were not refused.

        A fifth of them is damaged as WebSocket frames, too. `number`: of the first of them, for the source.
        """
        host, port = await self._door()
        admitted = 0
        for index, line in enumerate(frames, number):
            source = index // PER_ADDRESS
            local = f"127.{1 + source // 62_500 % 250}.{source // 250 % 250}.{1 + source % 250}"
            reader, writer = await asyncio.open_connection(host, port, local_addr=(local, 0))
            try:
                writer.write(OPEN.format(host=f"{host}:{port}").encode())
                async with asyncio.timeout(ANSWER_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(_damaged(message(line), chance) if index % 5 == 0 else message(line))
                    writer.write_eof()
                    admitted += not head.startswith(b"HTTP/1.1 101 ") or await _first(reader) not in CLOSED
            finally:
                writer.transport.abort()
        return admitted

    async def _door(self) -> tuple[str, int]:
        host, _, port = str((await self.ask("daemon.status"))["websocket"]).split("/")[2].rpartition(":")
        return host, int(port)


def message(payload: bytes) -> bytes:
    """A text message of a client, whole."""
    size = len(payload)
    head = bytes([0x80 | Op.TEXT])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 1 << 16:
        head += bytes([0x80 | 126]) + size.to_bytes(2, "big")
    else:
        head += bytes([0x80 | 127]) + size.to_bytes(8, "big")
    key = bytes([0x5A, 0x00, 0xFF, 0x81])
    long_key = int.from_bytes((key * (size // 4 + 1))[:size], "little")
    return head + key + (int.from_bytes(payload, "little") ^ long_key).to_bytes(size, "little")


def _damaged(frame: bytes, chance: random.Random) -> bytes:
    data = bytearray(frame)
    for _ in range(chance.randint(1, 3)):
        data[chance.randrange(min(len(data), 8))] ^= 1 << chance.randrange(8)
    return bytes(data)


async def _first(reader: asyncio.StreamReader) -> bytes:
    """The first byte of the first frame that is no pong: a damaged text may be a ping. Empty: the connection was cut."""
    try:
        while (first := await reader.read(1)) == PONG:
            await reader.readexactly((await reader.readexactly(1))[0])
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return b""
    return first


class _Messages(Wire):
    """Hands the payloads of the daemon's messages on, a line for each."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(answers)
        self.upgraded = asyncio.Event()
        self._held = bytearray()

    def data_received(self, data: bytes) -> None:
        self._held += data
        if not self.upgraded.is_set():
            _, end, rest = bytes(self._held).partition(b"\r\n\r\n")
            if not end:
                return
            self._held = bytearray(rest)
            self.upgraded.set()
        super().data_received(b"".join(self._payloads()))

    def _payloads(self) -> list[bytes]:
        at, found = 0, []
        while (frame := self._frame(at)) is not None:
            op, start, end = frame
            if op == Op.TEXT:
                found.append(bytes(self._held[start:end]) + b"\n")
            at = end
        del self._held[:at]
        return found

    def _frame(self, at: int) -> tuple[int, int, int] | None:
        """What stands here, and where its payload begins and ends; None when it is not all there."""
        if len(self._held) < at + 2:
            return None
        size = self._held[at + 1]
        start = at + 2 + {126: 2, 127: 8}.get(size, 0)
        if size >= 126:
            size = int.from_bytes(self._held[at + 2 : start], "big")
        return (self._held[at] & 0x0F, start, start + size) if len(self._held) >= start + size else None
