"""A way to a server of PostgreSQL on which answers can be withheld, and which can be closed."""

import asyncio
from contextlib import asynccontextmanager, suppress

NAME = ".s.PGSQL.5432"
CHUNK_BYTES = 65536


class Detour:
    """Passes on what connections to a socket say; made by `detour`."""

    def __init__(self, folder, target):
        """`folder` is the `host` of URLs that lead here; `target` is that of the server."""
        self._socket, self._target = folder / NAME, target / NAME
        self._passes_answers = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

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
        self._server.close()
        self._socket.unlink(missing_ok=True)
        for writer in self._writers:
            writer.transport.abort()

    async def _connected(self, reader, writer):
        with suppress(OSError, asyncio.CancelledError):
            there, back = await asyncio.open_unix_connection(self._target)
            self._writers |= {writer, back}
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pass_on(reader, back, None))
                tasks.create_task(self._pass_on(there, writer, self._passes_answers))

    async def _pass_on(self, reader, writer, gate):
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                if gate is not None:
                    await gate.wait()
                writer.write(data)
        writer.close()


@asynccontextmanager
async def detour(folder, target):
    """An open one, until the end of the block."""
    way = Detour(folder, target)
    await way.open()
    try:
        yield way
    finally:
        way.close()
        way.withhold()
