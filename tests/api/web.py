"""A WebSocket client that can send malformed data, and sees every frame as it was received."""

import asyncio
import json
import os
from contextlib import asynccontextmanager, suppress

WAIT_S = 30.0

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def masked(op, payload=b"", *, fin=True, rsv=0, mask=b"\x00\x00\x00\x00", size=None):
    """Encode a frame of a client; `size` overrides the length in its header."""
    length = len(payload) if size is None else size
    head = bytes([fin << 7 | rsv << 4 | op])
    if length < 126:
        head += bytes([0x80 | length])
    elif length < 1 << 16:
        head += bytes([0x80 | 126]) + length.to_bytes(2, "big")
    else:
        head += bytes([0x80 | 127]) + length.to_bytes(8, "big")
    key = (mask * (len(payload) // 4 + 1))[: len(payload)]
    return head + mask + bytes(a ^ b for a, b in zip(payload, key, strict=True))


class ClosedError(Exception):
    """The daemon has closed the connection; `args[0]` is the code, None if it closed only the socket."""

    @property
    def code(self):
        return self.args[0]


class Web:
    """A WebSocket connection, or the HTTP connection before the upgrade."""

    def __init__(self, reader, writer, host):
        self.reader = reader
        self.writer = writer
        self.host = host
        self.last_id = 0
        self.events = []

    async def request(self, path="/v1", *, method="GET", version="HTTP/1.1", host=(), body=b"", **headers):
        """Send a request with these values of Host and other headers, with `_` for `-`."""
        lines = [f"{method} {path} {version}"]
        lines += [f"Host: {value}" for value in (host if host != () else [self.host])]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        async with asyncio.timeout(WAIT_S):
            try:
                head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            except (asyncio.IncompleteReadError, ConnectionResetError):
                return 0, {}, ""
            status = int(head.split()[1])
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            fields = {name.lower(): value for name, value in fields.items()}
            said = b"" if status == 101 else await self.reader.read(-1)
        return status, fields, said.decode()

    async def upgrade(self, **options):
        """Return the status of the response to an upgrade: 101 if it succeeded."""
        fields = {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Sec_WebSocket_Version": "13",
            "Sec_WebSocket_Extensions": "permessage-deflate; client_max_window_bits",
        }
        return (await self.request(**{**fields, **options}))[0]

    def write(self, data):
        self.writer.write(data)

    def send(self, command, /, **fields):
        self.last_id += 1
        self.text(json.dumps({"id": self.last_id, "type": command, **fields}).encode())
        return self.last_id

    def text(self, payload):
        self.write(masked(TEXT, payload, mask=os.urandom(4)))

    async def raw(self):
        """Return the opcode and the payload of the next frame."""
        async with asyncio.timeout(WAIT_S):
            try:
                first, second = await self.reader.readexactly(2)
                assert first & 0xF0 == 0x80, "a server's frame is whole, without extensions"
                assert second < 0x80, "and not masked"
                size = second
                if size >= 126:
                    size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8), "big")
                return first & 0x0F, await self.reader.readexactly(size)
            except (asyncio.IncompleteReadError, ConnectionResetError) as error:
                raise ClosedError(None) from error

    async def frame(self):
        """Return the next text message; pings are skipped. Raises ClosedError."""
        while True:
            op, payload = await self.raw()
            if op == CLOSE:
                raise ClosedError(int.from_bytes(payload[:2], "big"))
            if op == TEXT:
                return json.loads(payload)

    async def answer_to(self, request):
        while True:
            frame = await self.frame()
            if frame["type"] != "response":
                self.events.append(frame)
            elif frame.get("id") == request:
                return frame

    async def answer(self, command, /, **fields):
        return await self.answer_to(self.send(command, **fields))

    async def ask(self, command, /, **fields):
        response = await self.answer(command, **fields)
        assert response["success"], response
        return response.get("data", {})

    async def refused(self, command, /, **fields):
        response = await self.answer(command, **fields)
        assert not response["success"], response
        return response["code"]

    async def event(self):
        while not self.events:
            frame = await self.frame()
            if frame["type"] != "response":
                self.events.append(frame)
        return self.events.pop(0)

    async def until(self, kind):
        events = [await self.event()]
        while events[-1]["type"] != kind:
            events.append(await self.event())
        return events

    async def end(self):
        """Read until the daemon closes the connection; return the code."""
        try:
            while True:
                await self.frame()
        except ClosedError as closed:
            return closed.code

    async def hello(self, token, **fields):
        return await self.ask("hello", token=token, **fields)

    def cut(self):
        self.writer.transport.abort()


@asynccontextmanager
async def visitor(url, *, tls=None, local=None):
    """Open a connection to the host and port of a WebSocket URL without sending anything."""
    address = url.split("/")[2]
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=tls, local_addr=local)
    web = Web(reader, writer, address)
    try:
        yield web
    finally:
        web.cut()
        with suppress(OSError):
            await writer.wait_closed()


@asynccontextmanager
async def stranger(url, **options):
    """Open a WebSocket that has not sent a hello."""
    async with visitor(url, **options) as web:
        assert await web.upgrade() == 101
        yield web
