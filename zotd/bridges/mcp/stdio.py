"""Starts a server by its command, as a transport of the package `mcp`.

`mcp.client.stdio` is not used: it notices the end of the server only after the last process that holds its stdout has
ended, and nothing ends the server if the bridge is killed. Here the kernel does.

    end:  stdin is closed ── 1 s ──> SIGTERM ── 0.3 s ──> SIGKILL       to its group, of which the rest is killed at its exit
"""

import asyncio
import logging
import os
import signal
import subprocess
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import IO, Self

from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from zotd.bridges.mcp.server_place import ServerGroup, ServerPlace
from zotd.process import descriptors
from zotd.process.census import MARK
from zotd.process.exit import watch_exit
from zotd.process.parent_death import ending_with_parent
from zotd.wire.framing import Lines, TooLong
from zotd.wire.mcp import McpServer, ServerError

log = logging.getLogger(__name__)

INHERITED = (
    MARK,
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
)
"""Variables that every server inherits: directories, locale, and the mark by which its processes are found. All others have to be named in its `env`."""

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

INPUT_BYTES = 16 * 1024 * 1024
"""Longest queue of messages to a server that does not read."""


class _Process(asyncio.Protocol):
    """One process, and what its stdout brings. It leads a process group, which ends with it."""

    def __init__(self, pid: int, group: ServerGroup, lost: Callable[[str], None]) -> None:
        """Watch the child `pid`; call `lost` with the reason if it ends by itself."""
        self.exited = asyncio.Event()
        self.is_closed = False
        """stdout has ended: no further messages."""
        self._is_leaving = False
        """The bridge is ending it, so its end is not a loss."""
        self._lost = lost
        self._code: int | None = None
        self._framing = Lines(LINE_BYTES)
        self._lines: deque[bytes | TooLong] = deque()
        """Read, and not yet received. While there are any, stdout is not read."""
        self._arrived = asyncio.Event()
        self._source: asyncio.ReadTransport | None = None
        self._group = group
        self._watch = watch_exit(pid, self._on_exit)
        group.begin(self._watch)

    # --- asyncio.Protocol, for its stdout -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.ReadTransport)
        self._source = transport

    def data_received(self, data: bytes) -> None:
        self._add(self._framing.feed(data))

    def connection_lost(self, _: Exception | None) -> None:
        self._source = None
        self._add(self._framing.end())
        self._close()

    # --- for the bridge -----------------------------------------------------------------------------------------------

    async def receive(self) -> bytes:
        """Return the next line; empty at the end.

        Raises:
            ValueError: the line has more than `LINE_BYTES`.
        """
        while not self._lines:
            if self.is_closed:
                return b""
            self._arrived.clear()
            if self._source is not None:
                self._source.resume_reading()
            await self._arrived.wait()
        line = self._lines.popleft()
        if isinstance(line, TooLong):
            raise ValueError(f"a message of more than {LINE_BYTES // (1024 * 1024)} MiB")  # noqa: TRY004
        return line

    def lose(self, reason: str) -> None:
        """Report that it is of no further use."""
        self._lost(reason)

    def begin_leaving(self) -> bool:
        """Expect its end from now on; return whether it was lost before."""
        was_lost, self._is_leaving = self.is_closed, True
        return was_lost

    def signal(self, number: int) -> None:
        """Send a signal to its group."""
        self._group.signal(number)

    def tell(self) -> None:
        """Report how it ended, as far as known."""
        self._lost(_how_it_ended(self._code))

    def close(self) -> None:
        """Read no more; a process that could not even be killed is not watched any longer."""
        if self._source is not None:
            self._source.close()
        if not self.exited.is_set():
            self._watch.close()
            self._group.end()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _add(self, lines: list[bytes | TooLong]) -> None:
        # A grandchild may still write after the exit of the server.
        if lines and not self.is_closed:
            self._lines.extend(lines)
            self._arrived.set()
            if self._source is not None:
                self._source.pause_reading()

    def _on_exit(self) -> None:
        self._group.signal(signal.SIGKILL)  # before `reap`: until then the number of the group is not reused
        self._group.end()
        self._code = self._watch.reap()
        self.exited.set()
        # Delayed, so that its last output is read. Not until the end of stdout, which a grandchild may hold open for ever.
        asyncio.get_running_loop().call_later(EXIT_S, self._close)

    def _close(self) -> None:
        """End the stream, which fails pending calls; report the reason once it is known."""
        if not self.is_closed:
            self.is_closed = True
            self._arrived.set()
            if not self._is_leaving:
                asyncio.get_running_loop().call_later(0 if self.exited.is_set() else EXIT_S, self.tell)


class _FromServer:
    """Reads messages of the server; satisfies the package's `ReadStream`."""

    def __init__(self, process: _Process) -> None:
        self._process = process

    async def receive(self) -> SessionMessage | Exception:
        while line := await self._process.receive():
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError:
                # Probably a forgotten print; the server itself works.
                log.warning("skipped a line of the server's stdout that is not an MCP message: %r", line[:200])
                await asyncio.sleep(0)  # thousands of such lines must not stop the other bridges
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

    Does not wait until they are read; a server that leaves `INPUT_BYTES` unread is lost.
    """

    def __init__(self, stdin: asyncio.WriteTransport, process: _Process) -> None:
        self._stdin = stdin
        self._process = process

    async def send(self, item: SessionMessage, /) -> None:
        if self._stdin.get_write_buffer_size() > INPUT_BYTES:
            self._process.lose(f"did not read its input: more than {INPUT_BYTES // (1024 * 1024)} MiB were waiting")
            return
        # Dropped if the server is gone; the end of its stdout is reported separately.
        self._stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def aclose(self) -> None:
        """The process's end closes it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()


@asynccontextmanager
async def over_stdio(
    server: McpServer, place: ServerPlace, lost: Callable[[str], None]
) -> AsyncIterator[tuple[_FromServer, _ToServer]]:
    """Start the server, and end it on leaving; call `lost` with the reason if it ends by itself.

    Raises:
        ServerError: the server could not be started.
    """
    try:
        pid, stdin, stdout = _start(server, place)
    except OSError as error:
        where = error.filename or server.command
        raise ServerError(f"could not be started: {where}: {(error.strerror or str(error)).lower()}") from error
    except ValueError as error:
        raise ServerError("could not be started: there is a NUL in its arguments or its environment") from error
    process = _Process(pid, place.group, lost)
    loop = asyncio.get_running_loop()
    writer: asyncio.WriteTransport | None = None
    try:
        writer, _ = await loop.connect_write_pipe(asyncio.Protocol, stdin)
        await loop.connect_read_pipe(lambda: process, stdout)
        yield _FromServer(process), _ToServer(writer, process)
    finally:
        # Read before it is set: from here on the end of the server is expected.
        is_lost = process.begin_leaving()
        try:
            await _end(stdin if writer is None else writer, process)
        finally:
            if writer is not None and writer.get_write_buffer_size():  # it did not read; else it is closed
                writer.abort()
            stdin.close()
            process.close()
            if is_lost:
                process.tell()


def _start(server: McpServer, place: ServerPlace) -> tuple[int, IO[bytes], IO[bytes]]:
    """Return the pid, and our ends of stdin and stdout."""
    inherited = {name: place.env[name] for name in INHERITED if name in place.env}
    env = inherited | server.env
    process = subprocess.Popen(  # noqa: S603  (running what the user configured is the purpose)
        ending_with_parent([*place.words, server.command, *server.args], env),
        cwd=os.path.join(place.cwd, server.cwd) or None,  # noqa: PTH118  (as it is named in error messages)
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=place.stderr,  # None: inherited, for the bridge's stderr is the log
        bufsize=0,
        process_group=0,
    )
    descriptors.give_back(process.pid)
    process.returncode = 0  # disowned: Popen would warn about, and later reap, a child that `_Process` waits for
    assert process.stdin is not None
    assert process.stdout is not None
    return process.pid, process.stdin, process.stdout


async def _end(stdin: asyncio.WriteTransport | IO[bytes], process: _Process) -> None:
    stdin.close()
    for patience_s, number in ((LEAVE_S, signal.SIGTERM), (TERM_S, signal.SIGKILL)):
        if await _has_exited(process, patience_s):
            return
        process.signal(number)
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
