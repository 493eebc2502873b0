"""A way to a server on a Unix socket on which answers can be withheld, and which can be closed or lead to another server."""

import asyncio
from contextlib import asynccontextmanager, suppress

NAME = ".s.PGSQL.5432"
CHUNK_BYTES = 65536

ACCEPTING = 4
"""Iterations of the event loop from the moment at which asyncio accepts a connection until it is passed on."""


class Detour:
    """Passes on what connections to a socket say; made by `detour` for a server of PostgreSQL."""

    def __init__(self, socket, target):
        """`socket`: the path at which it listens; `target`: that of the server."""
        self._socket, self.target = socket, target
        self._passes_answers = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self):
        """Take connections, and pass on all that is said."""
        self._passes_answers.set()
        self._server = await asyncio.start_unix_server(self._connected, self._socket)

    def withhold(self):
        """Pass on requests, and no answers."""
        self._passes_answers.clear()

    def close(self):
        """End all connections, and take no more."""
        assert self._server is not None
        self._socket.unlink(missing_ok=True)
        for listener in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listener.fileno())
        _close_later(self._server, ACCEPTING)
        self._cut()

    async def end(self):
        """Close it for good, and wait until nothing of it is left."""
        self.close()
        for _ in range(ACCEPTING + 1):
            await asyncio.sleep(0)
        self._cut()  # what was accepted last
        self._passes_answers.set()
        if self._connections:
            await asyncio.wait(self._connections)

    def _cut(self):
        for writer in self._writers:
            writer.transport.abort()
        for connection in self._connections:
            connection.cancel()

    async def _connected(self, reader, writer):
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)
        self._writers.add(writer)
        try:
            with suppress(OSError, asyncio.CancelledError):
                there, back = await asyncio.open_unix_connection(self.target)
                self._writers.add(back)
                try:
                    async with asyncio.TaskGroup() as tasks:
                        tasks.create_task(self._pass_on(reader, back, None))
                        tasks.create_task(self._pass_on(there, writer, self._passes_answers))
                finally:
                    back.close()
        finally:
            writer.close()

    async def _pass_on(self, reader, writer, gate):
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                if gate is not None:
                    await gate.wait()
                writer.write(data)
        writer.close()


def _close_later(server, iterations):
    """Close the server when it has handed over what it has accepted: asyncio loses that of a server that is closed."""
    if iterations:
        asyncio.get_running_loop().call_soon(_close_later, server, iterations - 1)
    else:
        server.close()


@asynccontextmanager
async def detour(folder, target):
    """An open one to a server of PostgreSQL, until the end of the block; both are what `host` is in URLs."""
    way = Detour(folder / NAME, target / NAME)
    await way.open()
    try:
        yield way
    finally:
        await way.end()
