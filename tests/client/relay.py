"""The other machine, in this loop: a WebSocket whose frames go to a Unix socket and come from there."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import trustme
from aiohttp import WSMsgType, web

TOKEN = "zot_" + "t" * 43


class Relay:
    """What it was asked, and how it answers."""

    def __init__(self, path):
        """`path`: of the daemon behind it."""
        self.path = path
        self.port = 0
        self.requests = []
        """Headers of all, newest last."""
        self.frames = []
        """What clients have sent."""
        self.codes = []
        """With which codes they have left."""
        self.answer = None
        """Instead of the upgrade."""
        self.first = None
        """Bytes instead of an answer to the first frame."""
        self.close = None
        """Code and reason instead of an answer to the first frame."""
        self.gone = asyncio.Event()
        """A client has left."""

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
    """A relay to the daemon at `path`; with a TLS `context`, behind that."""
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
    """A CA of our own: the file that vouches for it, and a certificate (chain and key in one file) for `names`."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    certificate = ca.issue_cert(*names)
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    return str(folder / "ca.pem"), str(folder / "server.pem")
