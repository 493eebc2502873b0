"""The editor at the other end of standard input and output: its requests, and ours to it.

What it asks for is carried out side by side, `MAX_REQUESTS` at a time; beyond that its input is not read. What goes out
waits in a buffer that is as long as a pipe: whoever has many updates waits for `room` before each, and a request that is
answered counts until there is room. So an editor that asks and does not read is not answered into memory without end.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from zotd.bridges.acp import jsonrpc
from zotd.bridges.acp.frames import CancelRequest, SessionUpdate, Update
from zotd.bridges.acp.jsonrpc import MalformedMessage, Notification, RpcError, RpcErrorCode, RpcRequest, RpcResponse
from zotd.stdio import StdoutWriter
from zotd.wire.base import BadFrameError, Frozen, decode
from zotd.wire.framing import CLIENT_LIMIT, Lines

MAX_REQUESTS = 256
"""Requests and notifications that are carried out at once, prompts that wait for their run included; no editor has ten."""

T = TypeVar("T", bound=Frozen)

Spawn = Callable[[str, Coroutine[object, object, None]], Callable[[], object]]
"""Starts a named task that lives as long as the program, at most; what it returns cancels the task."""


class Editor:
    """One JSON-RPC connection. What it asks for is carried out by `serve` and `hear`."""

    def __init__(self, output: StdoutWriter, spawn: Spawn) -> None:
        """`output` stays the caller's to close."""
        self.serve: Callable[[RpcRequest, Callable[[Frozen], None]], Coroutine[object, object, None]] | None = None
        """Carries out a request and calls its second argument with the result, or raises."""
        self.hear: Callable[[Notification], Coroutine[object, object, None]] | None = None
        """Carries out a notification."""
        self.may_read = threading.Event()
        """Cleared while too many requests are under way."""
        self.may_read.set()
        self.has_ended = asyncio.Event()
        """It will ask for nothing more."""
        self._output = output
        self._spawn = spawn
        self._lines = Lines(CLIENT_LIMIT)
        self._room = asyncio.Event()
        self._room.set()
        self._under_way = 0
        self._owed = 0
        self._settled = asyncio.Event()
        self._settled.set()
        self._asked: dict[int, asyncio.Future[RpcResponse]] = {}
        self._last_id = 0
        output.flow = self

    # --- what comes in ----------------------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Bytes of standard input, cut anywhere."""
        for line in self._lines.feed(data):
            self._take(jsonrpc.parsed(line))

    def ended(self) -> None:
        """Standard input is closed; a last line without a newline counts."""
        for line in self._lines.end():
            self._take(jsonrpc.parsed(line))
        self.has_ended.set()

    # --- what goes out ----------------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """It reads fast enough."""
        return self._room.is_set()

    async def room(self) -> None:
        """Wait until it has read enough; as long as it takes, or until the program ends."""
        await self._room.wait()

    def update(self, session: str, update: Update) -> None:
        """Tell it something of a session."""
        self._write(jsonrpc.notification_line("session/update", SessionUpdate(session, update)))

    async def ask(self, method: str, params: Frozen, result: type[T]) -> T:
        """A request to it, without a limit of time: a person answers. Cancelled, it is told so.

        Raises:
            BadFrameError: the answer is an error, or something else than a `result`.
        """
        self._last_id += 1
        request = self._last_id
        answer: asyncio.Future[RpcResponse] = asyncio.get_running_loop().create_future()
        self._asked[request] = answer
        self._write(jsonrpc.request_line(request, method, params))
        try:
            given = await answer
        except asyncio.CancelledError:
            self._write(jsonrpc.notification_line("$/cancel_request", CancelRequest(request)))
            raise
        finally:
            del self._asked[request]
        if given.result is None:
            raise BadFrameError(given.error)
        return decode(given.result, result)

    def paused(self) -> None:
        """The pipe is full."""
        self._room.clear()

    def resumed(self) -> None:
        """The pipe has room."""
        self._room.set()

    # --- requests under way -----------------------------------------------------------------------------------------

    @asynccontextmanager
    async def unhurried(self) -> AsyncIterator[None]:
        """What is awaited inside may take hours: the end of the program does not wait for it."""
        self._owe(-1)
        try:
            yield
        finally:
            self._owe(1)

    async def settled(self) -> None:
        """Wait until everything that was asked for is answered, or is a run of the daemon."""
        await self._settled.wait()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _take(self, message: RpcRequest | Notification | RpcResponse | MalformedMessage) -> None:
        match message:
            case RpcRequest():
                self._begin(message.method, self._carry_out(message))
            case Notification():
                assert self.hear is not None, "nobody hears notifications"
                self._begin(message.method, self.hear(message))
            case RpcResponse(id=request):
                waiting = self._asked.get(request) if isinstance(request, int) else None
                if waiting is not None and not waiting.done():  # else nobody waits for it any more
                    waiting.set_result(message)
            case MalformedMessage():
                self._begin("a fault", self._refuse(message))

    def _begin(self, name: str, work: Coroutine[object, object, None]) -> None:
        self._count(1)
        self._owe(1)
        self._spawn(name, self._counted(work))

    async def _counted(self, work: Coroutine[object, object, None]) -> None:
        try:
            try:
                await work
            finally:
                self._owe(-1)
            await self.room()
        finally:
            self._count(-1)

    async def _refuse(self, fault: MalformedMessage) -> None:
        self._write(jsonrpc.failure_line(fault.id, fault.code, fault.sentence))

    async def _carry_out(self, request: RpcRequest) -> None:
        def respond(result: Frozen) -> None:
            self._write(jsonrpc.result_line(request.id, result))

        assert self.serve is not None, "nobody serves requests"
        try:
            await self.serve(request, respond)
        except RpcError as error:
            self._write(jsonrpc.failure_line(request.id, error.code, error.sentence))
        except Exception:
            self._write(
                jsonrpc.failure_line(request.id, RpcErrorCode.INTERNAL, "zot acp has failed; see its standard error")
            )
            raise

    def _count(self, step: int) -> None:
        self._under_way += step
        if self._under_way < MAX_REQUESTS:
            self.may_read.set()
        else:
            self.may_read.clear()

    def _owe(self, step: int) -> None:
        self._owed += step
        if self._owed == 0:
            self._settled.set()
        else:
            self._settled.clear()

    def _write(self, line: bytes) -> None:
        with suppress(OSError):  # a terminal or a file that takes no more; the end of a pipe is noticed elsewhere
            self._output.transport.write(line)
