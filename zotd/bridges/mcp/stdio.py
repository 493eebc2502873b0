"""A server that is started by its command, as a transport of the package `mcp`.

Not `mcp.client.stdio`: that gives the server a session of its own, out of reach of the host's signals to the bridge's
group, and notices its end only when the last process that holds its stdout has ended too.

    end:  stdin is closed ── 1 s ──> SIGTERM ── 0.3 s ──> SIGKILL       what is left of the group: the host's business
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
"""Variables that every server gets: where things are and how to write them. Any other, it has to name in its `env`."""

LINE_BYTES = 32 * 1024 * 1024
"""Longest message of a server. The host takes 4 MiB of it; up to here the call fails, beyond it the connection."""

EXIT_S = 0.1
"""Between the end of a server's stdout and its exit, in either order: the second one is waited for so long."""

LEAVE_S = 1.0
"""From the end of its stdin to SIGTERM; with what follows, and our own exit, under the host's 2 s."""

TERM_S = 0.3
"""From SIGTERM to SIGKILL."""

REAP_S = 0.1
"""From SIGKILL to giving up: only a process that hangs in the kernel is still there."""

STDIN, STDOUT = 0, 1


class _Process(asyncio.SubprocessProtocol):
    """Watches one process. Not `asyncio.subprocess`: its `wait` also waits for grandchildren that hold a pipe."""

    def __init__(self, lost: Callable[[str], None]) -> None:
        self.output = asyncio.StreamReader(limit=LINE_BYTES)
        self.exited = asyncio.Event()
        self.is_closed = False
        """No message comes any more."""
        self.is_leaving = False
        """It should end, so its end is no loss."""
        self._lost = lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport
        output = transport.get_pipe_transport(STDOUT)
        assert output is not None
        self.output.set_transport(output)

    def pipe_data_received(self, _fd: int, data: bytes) -> None:
        if not self.is_closed:
            self.output.feed_data(data)

    def pipe_connection_lost(self, fd: int, _: Exception | None) -> None:
        if fd == STDOUT:
            self._close()

    def process_exited(self) -> None:
        self.exited.set()
        # Now, or when what it had still written is read: a grandchild may hold the pipe for ever.
        asyncio.get_running_loop().call_later(EXIT_S, self._close)

    def tell(self) -> None:
        """Tell how it ended, as far as that is known by now."""
        self._lost(_how_it_ended(self.transport.get_returncode()))

    def _close(self) -> None:
        """Calls in flight fail now; the reason may take a moment."""
        if not self.is_closed:
            self.is_closed = True
            self.output.feed_eof()
            if not self.is_leaving:
                asyncio.get_running_loop().call_later(0 if self.exited.is_set() else EXIT_S, self.tell)


class _FromServer:
    """Messages of the server; satisfies the package's `ReadStream`."""

    def __init__(self, output: asyncio.StreamReader) -> None:
        self._output = output

    async def receive(self) -> SessionMessage | Exception:
        while line := await self._output.readline():
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError:
                # A forgotten print; the server may well go on.
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
    """Messages for the server; satisfies the package's `WriteStream`.

    Written without waiting until they are read: what is open at a time is as much as the host has asked for.
    """

    def __init__(self, stdin: asyncio.WriteTransport) -> None:
        self._stdin = stdin

    async def send(self, item: SessionMessage, /) -> None:
        # To a server that is gone: dropped. The end of its stdout tells about it.
        self._stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def aclose(self) -> None:
        """The process's end closes it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()


@asynccontextmanager
async def over_stdio(server: McpServer, lost: Callable[[str], None]) -> AsyncIterator[tuple[_FromServer, _ToServer]]:
    """Start the server and end it; `lost` is told how, if it ends before it should.

    Raises:
        ServerError: it could not be started.
    """
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    try:
        transport, process = await asyncio.get_running_loop().subprocess_exec(
            lambda: _Process(lost),
            server.command,
            *server.args,
            cwd=server.cwd or None,
            env=inherited | server.env,
            stderr=None,  # ours, which is the log
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
    """Goes on from "the MCP server NAME"."""
    if code is None:
        return "has closed its stdout"
    if code >= 0:
        return f"has exited with code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"
