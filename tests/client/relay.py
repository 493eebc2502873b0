"""Simulates another machine: a WebSocket server that relays frames to and from a Unix socket."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import trustme
from aiohttp import WSMsgType, web

TOKEN = "zot_" + "t" * 43


class Relay:
    """Records requests, and determines the responses."""

    def __init__(self, path):
        """`path` is the socket of the daemon behind it."""
        self.path = path
        self.port = 0
        self.requests = []
        """Headers of all requests, newest last."""
        self.frames = []
        """Frames received from clients."""
        self.codes = []
        """Close codes received from clients."""
        self.answer = None
        """Response to send instead of the upgrade."""
        self.first = None
        """Bytes to send instead of a response to the first frame."""
        self.close = None
        """Close code and reason to send instead of a response to the first frame."""
        self.gone = asyncio.Event()
        """Set when a client has disconnected."""

    async def handle(self, request):
        self.requests.append(dict(request.headers))
        if self.answer is not None:
            return self.answer
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        hello = await socket.receive()
        if hello.type is WSMsgType.TEXT:
            self.frames.append(json.loads(hello.data))
            if self.first is not None:
                await socket.send_bytes(self.first)
                await socket.receive()
            elif self.close is not None or self.frames[-1].get("token") != TOKEN:
                code, reason = self.close or (4401, "")
                await socket.close(code=code, message=reason.encode())
            else:
                await self._relay(socket, hello.data)
        self.codes.append(socket.close_code)
        self.gone.set()
        return socket

    async def _relay(self, socket, first):
        reader, writer = await asyncio.open_unix_connection(self.path, limit=2**24)
        async with asyncio.TaskGroup() as tasks:
            back = tasks.create_task(self._back(reader, socket))
            writer.write(first.encode() + b"\n")
            async for message in socket:
                self.frames.append(json.loads(message.data))
                writer.write(message.data.encode() + b"\n")
            back.cancel()
        writer.close()

    async def _back(self, reader, socket):
        with suppress(ConnectionError):
            while line := await reader.readline():
                await socket.send_str(line.decode().removesuffix("\n"))
        await socket.close(code=1001)


@asynccontextmanager
async def serving(path, context=None):
    """Serve a relay to the daemon at `path`, with TLS if there is a `context`."""
    relay = Relay(path)
    application = web.Application()
    application.router.add_get("/{path:.*}", relay.handle)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        relay.port = runner.addresses[0][1]
        yield relay
    finally:
        await runner.cleanup()


def authority(folder, *names):
    """Create a CA; return its certificate, and a certificate (chain and key in one file) for `names`."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    certificate = ca.issue_cert(*names)
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    return str(folder / "ca.pem"), str(folder / "server.pem")
