"""Starts a server by its command, as a transport of the package `mcp`.

`mcp.client.stdio` is not used: it starts the server in a new session, where the host's signals to the bridge's process
group do not reach it, and notices its end only after the last process that holds its stdout has ended.

    end:  stdin is closed ── 1 s ──> SIGTERM ── 0.3 s ──> SIGKILL       the host kills the rest of the group
"""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Self

from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from zotd.wire.mcp import McpServer, ServerError

log = logging.getLogger(__name__)

INHERITED = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
)
"""Variables that every server inherits: directories and locale. All others have to be named in its `env`."""

LINE_BYTES = 32 * 1024 * 1024
"""Longest message of a server. The host accepts 4 MiB; a longer message fails the call, one over this limit the connection."""

EXIT_S = 0.1
"""How long to wait for the exit after the end of stdout, or the reverse, so that the better reason is known."""

LEAVE_S = 1.0
"""Time from the end of its stdin to SIGTERM. Together with the following steps it stays under the host's 2 s."""

TERM_S = 0.3
"""Time from SIGTERM to SIGKILL."""

REAP_S = 0.1
"""Time to wait after SIGKILL; only a process that hangs in the kernel takes longer."""

STDIN, STDOUT = 0, 1


class _Process(asyncio.SubprocessProtocol):
    """Watches one process. Not `asyncio.subprocess`: its `wait` also waits for grandchildren that hold a pipe."""

    def __init__(self, lost: Callable[[str], None]) -> None:
        self.output = asyncio.StreamReader(limit=LINE_BYTES)
        self.exited = asyncio.Event()
        self.is_closed = False
        """stdout has ended: no further messages."""
        self.is_leaving = False
        """The bridge is ending it, so its end is not a loss."""
        self._lost = lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport
        output = transport.get_pipe_transport(STDOUT)
        assert output is not None
        # Enables flow control: reading pauses while the buffer is full.
        self.output.set_transport(output)

    def pipe_data_received(self, _fd: int, data: bytes) -> None:
        # A grandchild may still write after the exit of the server.
        if not self.is_closed:
            self.output.feed_data(data)

    def pipe_connection_lost(self, fd: int, _: Exception | None) -> None:
        if fd == STDOUT:
            self._close()

    def process_exited(self) -> None:
        self.exited.set()
        # Delayed, so that its last output is read. Not until the end of stdout, which a grandchild may hold open for ever.
        asyncio.get_running_loop().call_later(EXIT_S, self._close)

    def tell(self) -> None:
        """Report how it ended, as far as known."""
        self._lost(_how_it_ended(self.transport.get_returncode()))

    def _close(self) -> None:
        """End the stream, which fails pending calls; report the reason once it is known."""
        if not self.is_closed:
            self.is_closed = True
            self.output.feed_eof()
            if not self.is_leaving:
                asyncio.get_running_loop().call_later(0 if self.exited.is_set() else EXIT_S, self.tell)


class _FromServer:
    """Reads messages of the server; satisfies the package's `ReadStream`."""

    def __init__(self, output: asyncio.StreamReader) -> None:
        self._output = output

    async def receive(self) -> SessionMessage | Exception:
        while line := await self._output.readline():
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError:
                # Probably a forgotten print; the server itself works.
                log.warning("skipped a line of the server's stdout that is not an MCP message: %r", line[:200])
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """The process's end closes it."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self.receive()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()


class _ToServer:
    """Writes messages to the server; satisfies the package's `WriteStream`.

    Does not wait until they are read: the amount is limited by the calls that the host has open.
    """

    def __init__(self, stdin: asyncio.WriteTransport) -> None:
        self._stdin = stdin

    async def send(self, item: SessionMessage, /) -> None:
        # Dropped if the server is gone; the end of its stdout is reported separately.
        self._stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def aclose(self) -> None:
        """The process's end closes it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()


@asynccontextmanager
async def over_stdio(server: McpServer, lost: Callable[[str], None]) -> AsyncIterator[tuple[_FromServer, _ToServer]]:
    """Start the server, and end it on leaving; call `lost` with the reason if it ends by itself.

    Raises:
        ServerError: the server could not be started.
    """
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    try:
        transport, process = await asyncio.get_running_loop().subprocess_exec(
            lambda: _Process(lost),
            server.command,
            *server.args,
            cwd=server.cwd or None,
            env=inherited | server.env,
            stderr=None,  # inherited: the bridge's stderr is the log
        )
    except OSError as error:
        where = error.filename or server.command
        raise ServerError(f"could not be started: {where}: {(error.strerror or str(error)).lower()}") from error
    except ValueError as error:
        raise ServerError("could not be started: there is a NUL in its arguments or its environment") from error
    try:
        stdin = transport.get_pipe_transport(STDIN)
        assert isinstance(stdin, asyncio.WriteTransport)
        yield _FromServer(process.output), _ToServer(stdin)
    finally:
        # Read before it is set: from here on the end of the server is expected.
        is_lost, process.is_leaving = process.is_closed, True
        try:
            await _end(transport, process)
        finally:
            transport.close()
            if is_lost:
                process.tell()


async def _end(transport: asyncio.SubprocessTransport, process: _Process) -> None:
    stdin = transport.get_pipe_transport(STDIN)
    assert stdin is not None
    stdin.close()
    for patience_s, then in ((LEAVE_S, transport.terminate), (TERM_S, transport.kill)):
        if await _has_exited(process, patience_s):
            return
        then()
    await _has_exited(process, REAP_S)


async def _has_exited(process: _Process, within_s: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await process.exited.wait()
    return process.exited.is_set()


def _how_it_ended(code: int | None) -> str:
    """Describe the end of the process; continues "the MCP server NAME"."""
    if code is None:
        return "has closed its stdout"
    if code >= 0:
        return f"has exited with code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"
