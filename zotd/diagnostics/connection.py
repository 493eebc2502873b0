"""JSON-RPC with a language server: requests of both sides, over the pipes of its process.

The server is no friend: what it sends is bounded in size and rate, and a stream that is not the protocol ends it.
"""

import asyncio
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from zotd.process import Service
from zotd.wire.base import BadFrameError, Frozen, decode
from zotd.wire.framing import TooLong
from zotd.wire.header_framing import BadHeaderError, HeaderFrames, framed
from zotd.wire.jsonrpc import (
    MalformedMessage,
    Notification,
    RpcErrorCode,
    RpcRequest,
    RpcResponse,
    failure_message,
    notification_message,
    parsed,
    request_message,
    result_message,
)

MESSAGE_BYTES = 4 * 1024 * 1024
"""Longest message that is read; decoding it takes 20 ms. A longer one is skipped."""

FLOOD_BYTES = 64 * 1024 * 1024
"""Bytes in `FLOOD_S` above which a server is ended."""

FLOOD_S = 10.0

MALFORMED = 20
"""Messages that are no JSON-RPC, above which a server is ended."""

LAST_WORDS_BYTES = 2048
"""How much of its stderr is kept to explain an exit."""

LAST_WORDS_CHARS = 200

LEAVE_S = 1.0
"""Time from `exit` and the end of its input to SIGTERM."""

TERM_S = 0.5
"""Time from SIGTERM to SIGKILL."""

KILL_S = 0.5
"""Wait after SIGKILL; only a process that hangs in the kernel takes longer."""

R = TypeVar("R", bound=Frozen)


class CancelledRequest(Frozen, frozen=True):
    """Takes a request back."""

    id: int


class ServerGoneError(Exception):
    """The server has ended or was ended; the message continues its name."""


class ServerRefusedError(Exception):
    """The server has answered with an error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class ServerSilentError(Exception):
    """The server has said nothing: some do not if its list of errors is the same as before."""


Answer = Callable[[RpcRequest], object]
"""Returns the result for a request of the server; KeyError: there is no such method. BadFrameError: bad parameters."""


class RpcConnection:
    """The conversation with one process; satisfies `process.service.ServiceListener`. Used on one event loop."""

    def __init__(self, answer: Answer, hear: Callable[[Notification], None], lost: Callable[[str], None]) -> None:
        """`answer` gets requests and `hear` notifications; `lost` is called when it has ended. All return at once."""
        self.gone = asyncio.Event()
        """Set when nothing more is said."""
        self._answer, self._hear, self._lost = answer, hear, lost
        self._exited = asyncio.Event()
        self._service: Service | None = None
        self._frames = HeaderFrames(MESSAGE_BYTES)
        self._asked: dict[int, asyncio.Future[RpcResponse]] = {}
        self._last_id = 0
        self._reason = ""
        self._words = b""
        self._malformed = 0
        self._flood_ends, self._flooded = 0.0, 0

    @property
    def reason(self) -> str:
        """Why it has ended, as a clause that continues its name; empty: it has not."""
        return self._reason

    @property
    def pid(self) -> int | None:
        """The process, as long as it runs."""
        return self._service.pid if self._service is not None and self._service.is_alive else None

    def begin(self, service: Service) -> None:
        """Talk to this process from now on."""
        self._service = service

    # --- what goes out ------------------------------------------------------------------------------------------

    async def ask(self, method: str, params: Frozen, result: type[R], *, within_s: float) -> R:
        """Send a request and return its result.

        Raises:
            ServerGoneError: it has ended, or has not answered in time; then it is ended.
            ServerRefusedError: the answer is an error, or not a `result`.
        """
        if self.gone.is_set():
            raise ServerGoneError(self._reason)
        self._last_id += 1
        request, future = self._last_id, asyncio.get_running_loop().create_future()
        self._asked[request] = future
        try:
            self._write(request_message(request, method, params))
            async with asyncio.timeout(within_s):
                given: RpcResponse = await future
        except asyncio.CancelledError:
            self._write(notification_message("$/cancelRequest", CancelledRequest(request)))
            raise
        except TimeoutError:
            self.fail(f"has not answered `{method}` within {within_s:g} s")
            raise ServerGoneError(self._reason) from None
        finally:
            self._asked.pop(request, None)
        if given.result is None:
            raise ServerRefusedError(given.code, given.error)
        try:
            return decode(b"{}" if given.result == b"null" else given.result, result)
        except BadFrameError as error:
            raise ServerRefusedError(RpcErrorCode.PARSE, f"its answer to `{method}` is malformed: {error}") from error

    def tell(self, method: str, params: Frozen) -> None:
        """Send a notification; does nothing if the server has ended."""
        self._write(notification_message(method, params))

    def fail(self, reason: str) -> None:
        """End the server at once, because of what it did."""
        self._lose(reason)
        if self._service is not None:
            self._service.kill()

    async def leave(self) -> None:
        """End the server in an orderly way, within `LEAVE_S` + `TERM_S` + `KILL_S`."""
        if self._service is None:
            return
        self.tell("exit", Frozen())
        self._lose("was ended")
        self._service.end_input()
        for patience_s, number in ((LEAVE_S, signal.SIGTERM), (TERM_S, signal.SIGKILL), (KILL_S, None)):
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await self._exited.wait()
            if self._exited.is_set() or number is None:
                return
            if number == signal.SIGKILL:
                self._service.kill()
            else:
                self._service.terminate()

    # --- ServiceListener ----------------------------------------------------------------------------------------

    def output(self, data: bytes) -> None:
        """See `ServiceListener`."""
        if self.gone.is_set():
            return
        if self._is_flood(len(data)):
            self.fail(f"has sent more than {FLOOD_BYTES >> 20} MiB within {FLOOD_S:g} s")
            return
        try:
            messages = self._frames.feed(data)
        except BadHeaderError as error:
            self.fail(str(error))
            return
        for message in messages:
            if not isinstance(message, TooLong):  # what was in it is missing, so somebody waits in vain
                self._take(message)

    def errors(self, data: bytes) -> None:
        """See `ServiceListener`."""
        self._words = (self._words + data)[-LAST_WORDS_BYTES:]

    def closed(self, pipe: str) -> None:
        """See `ServiceListener`."""
        # It may be about to exit, which is a better reason.
        asyncio.get_running_loop().call_later(KILL_S, self.fail, f"has closed its {pipe}")

    def stalled(self, reason: str) -> None:
        """See `ServiceListener`."""
        self.fail(reason)

    def exited(self, code: int | None) -> None:
        """See `ServiceListener`."""
        words = _said_last(self._words.decode(errors="replace"))
        self._exited.set()
        self._lose(_how_it_ended(code) + (f": {words}" if words else ""))

    # --- inside -------------------------------------------------------------------------------------------------

    def _is_flood(self, size: int) -> bool:
        now = asyncio.get_running_loop().time()
        if now >= self._flood_ends:
            self._flood_ends, self._flooded = now + FLOOD_S, 0
        self._flooded += size
        return self._flooded > FLOOD_BYTES

    def _take(self, data: bytes) -> None:
        match message := parsed(data):
            case RpcRequest():
                self._carry_out(message)
            case Notification():
                with suppress(BadFrameError):  # what it says is not understood, so it has said nothing
                    self._hear(message)
            case RpcResponse(id=request):
                waiting = self._asked.get(request) if isinstance(request, int) else None
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
            case MalformedMessage():
                self._malformed += 1
                if self._malformed > MALFORMED:
                    self.fail(f"has sent more than {MALFORMED} messages that are no JSON-RPC")

    def _carry_out(self, request: RpcRequest) -> None:
        try:
            answer = result_message(request.id, self._answer(request))
        except KeyError:
            answer = failure_message(request.id, RpcErrorCode.METHOD, f"there is no method {request.method[:80]}")
        except BadFrameError as error:
            answer = failure_message(request.id, RpcErrorCode.PARAMS, str(error))
        self._write(answer)

    def _write(self, message: bytes) -> None:
        if self._service is not None and not self.gone.is_set():
            self._service.write(framed(message))

    def _lose(self, reason: str) -> None:
        if self.gone.is_set():
            return
        self._reason = reason
        self.gone.set()
        for future in self._asked.values():
            if not future.done():
                future.set_exception(ServerGoneError(reason))
        self._lost(reason)


def _said_last(words: str) -> str:
    """Return the line of what a program has printed that explains its end best: it may be followed by a stack trace."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    telling = (line for line in reversed(lines) if re.search(r"\berror\b", line, re.IGNORECASE))
    return next(telling, lines[-1] if lines else "")[:LAST_WORDS_CHARS]


def _how_it_ended(code: int | None) -> str:
    if code is None or code >= 0:
        return f"has exited with code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"
