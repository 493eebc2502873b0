"""The JSON-RPC connection to an editor over standard input and output, with requests in both directions.

Up to `MAX_REQUESTS` requests are carried out in parallel; beyond that, input is not read. Output goes to a buffer of the
size of a pipe. Code with many updates waits for `room` before each, and an answered request counts as active until there
is room. An editor that sends requests but does not read can therefore not fill our memory.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from zotd.stdio import StdoutWriter
from zotd.wire import jsonrpc
from zotd.wire.acp import CancelRequest, SessionUpdate, Update
from zotd.wire.base import BadFrameError, Frozen, decode
from zotd.wire.framing import CLIENT_LIMIT, Lines
from zotd.wire.jsonrpc import MalformedMessage, Notification, RpcError, RpcErrorCode, RpcRequest, RpcResponse

MAX_REQUESTS = 256
"""Limit of active requests and notifications, including prompts that wait for their run. Editors rarely have ten."""

T = TypeVar("T", bound=Frozen)

Spawn = Callable[[str, Coroutine[object, object, None]], Callable[[], object]]
"""Starts a named task, which ends with the program at the latest; returns a function that cancels it."""


class Editor:
    """One JSON-RPC connection. `serve` and `hear` carry out the editor's requests and notifications."""

    def __init__(self, output: StdoutWriter, spawn: Spawn) -> None:
        """Use `output`, which the caller closes, and start tasks with `spawn`."""
        self._serve: Callable[[RpcRequest, Callable[[Frozen], None]], Coroutine[object, object, None]] | None = None
        self._hear: Callable[[Notification], Coroutine[object, object, None]] | None = None
        self.may_read = threading.Event()
        """Cleared while too many requests are active."""
        self.may_read.set()
        self.has_ended = asyncio.Event()
        """No further requests will arrive."""
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
        output.control(self)

    def start(
        self,
        *,
        serve: Callable[[RpcRequest, Callable[[Frozen], None]], Coroutine[object, object, None]],
        hear: Callable[[Notification], Coroutine[object, object, None]],
    ) -> None:
        """Pass on what the editor sends from now on.

        `serve` carries out a request and calls its second argument with the result, or raises; `hear` carries out a
        notification.
        """
        self._serve, self._hear = serve, hear

    # --- what comes in ----------------------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Handle a chunk of standard input."""
        for line in self._lines.feed(data):
            self._take(jsonrpc.parsed(line))

    def ended(self) -> None:
        """Handle the end of standard input; a last line without a newline counts."""
        for line in self._lines.end():
            self._take(jsonrpc.parsed(line))
        self.has_ended.set()

    # --- what goes out ----------------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """True while the editor reads fast enough."""
        return self._room.is_set()

    async def room(self) -> None:
        """Wait without a time limit until the editor has read the buffered output."""
        await self._room.wait()

    def update(self, session: str, update: Update) -> None:
        """Send an update about a session."""
        self._write(jsonrpc.notification_message("session/update", SessionUpdate(session, update)))

    async def ask(self, method: str, params: Frozen, result: type[T]) -> T:
        """Send a request and wait without a time limit, because a person answers. If cancelled, the editor is notified.

        Raises:
            BadFrameError: the answer is an error or not a valid `result`.
        """
        self._last_id += 1
        request = self._last_id
        answer: asyncio.Future[RpcResponse] = asyncio.get_running_loop().create_future()
        self._asked[request] = answer
        self._write(jsonrpc.request_message(request, method, params))
        try:
            given = await answer
        except asyncio.CancelledError:
            self._write(jsonrpc.notification_message("$/cancel_request", CancelRequest(request)))
            raise
        finally:
            del self._asked[request]
        if given.result is None:
            raise BadFrameError(given.error)
        # Some libraries send null for a result without fields.
        return decode(b"{}" if given.result == b"null" else given.result, result)

    def paused(self) -> None:
        """Note that the output pipe is full."""
        self._room.clear()

    def resumed(self) -> None:
        """Note that the output pipe has room again."""
        self._room.set()

    # --- requests under way -----------------------------------------------------------------------------------------

    @asynccontextmanager
    async def unhurried(self) -> AsyncIterator[None]:
        """Mark work that may take hours, so that `settled` does not wait for it."""
        self._owe(-1)
        try:
            yield
        finally:
            self._owe(1)

    async def settled(self) -> None:
        """Wait until every request is answered or has become a run of the daemon."""
        await self._settled.wait()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _take(self, message: RpcRequest | Notification | RpcResponse | MalformedMessage) -> None:
        match message:
            case RpcRequest():
                self._begin(message.method, self._carry_out(message))
            case Notification():
                assert self._hear is not None, "no handler for notifications"
                self._begin(message.method, self._hear(message))
            case RpcResponse(id=request):
                # Our ids are integers; any other id cannot belong to one of our requests.
                waiting = self._asked.get(request) if isinstance(request, int) else None
                if waiting is not None and not waiting.done():  # an answer to a cancelled request is dropped
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
            # Counts as active until its answer is read; see the module.
            await self.room()
        finally:
            self._count(-1)

    async def _refuse(self, fault: MalformedMessage) -> None:
        self._write(jsonrpc.failure_message(fault.id, fault.code, fault.sentence))

    async def _carry_out(self, request: RpcRequest) -> None:
        def respond(result: Frozen) -> None:
            self._write(jsonrpc.result_message(request.id, result))

        assert self._serve is not None, "no handler for requests"
        try:
            await self._serve(request, respond)
        except RpcError as error:
            self._write(jsonrpc.failure_message(request.id, error.code, error.sentence))
        except Exception:
            self._write(
                jsonrpc.failure_message(request.id, RpcErrorCode.INTERNAL, "zot acp has failed; see its standard error")
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

    def _write(self, message: bytes) -> None:
        with suppress(
            OSError
        ):  # a terminal or file that accepts no more; the end of a pipe is noticed by `StdoutWriter`
            self._output.transport.write(message + b"\n")
