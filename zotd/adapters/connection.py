"""The connection to an adapter: JSON-RPC over the pipes of its process, with bounds for everything that it does not do."""

import asyncio
import logging
from typing import Protocol, TypeVar

from zotd.exthost.log import ExtensionLog
from zotd.exthost.process import Begin, ExtensionProcess
from zotd.sanitize import one_line
from zotd.wire import jsonrpc
from zotd.wire.base import BadFrameError, Frozen, decode
from zotd.wire.jsonrpc import MalformedMessage, Notification, RpcErrorCode, RpcRequest, RpcResponse

MALFORMED = 100
"""After so many lines that are no messages a program is taken for one that does not speak ACP. A few programs print a greeting."""

END_S = 1.0
"""How long a process has to end by itself, when its input ends and again after SIGTERM."""

T = TypeVar("T", bound=Frozen)

log = logging.getLogger(__name__)


class AdapterError(Exception):
    """The adapter is gone, or has not answered in time; the message is a sentence for people."""


class RpcRefusedError(Exception):
    """The adapter has answered a request with an error; the message is its own."""

    def __init__(self, code: int, sentence: str) -> None:
        """Keep the `code` of JSON-RPC."""
        super().__init__(one_line(sentence)[:500])
        self.code = code


class AdapterListener(Protocol):
    """Hears what an adapter says of its own accord, on the event loop."""

    def notified(self, method: str, params: bytes) -> None:
        """Take a notification."""
        ...

    def asked(self, request: RpcRequest) -> None:
        """Take a request, which is to be answered."""
        ...

    def gone(self, sentence: str) -> None:
        """The process has ended; called once and last."""
        ...


class AdapterConnection:
    """A running adapter; is the listener of its process."""

    def __init__(self, title: str, begin: Begin, adapter_log: ExtensionLog, listener: AdapterListener) -> None:
        """Start the process. OSError and ValueError mean that nothing was started. `title` names the agent in sentences."""
        self._title = title
        self._listener = listener
        self._log = adapter_log
        self._number = 0
        self._calls: dict[int, asyncio.Future[bytes]] = {}
        self._malformed = 0
        self._cause = ""
        """Why we end it, or how it has ended."""
        self._deaf: asyncio.TimerHandle | None = None
        """Ends a process that has closed a pipe."""
        self._over = asyncio.Event()
        self._process = ExtensionProcess(begin, listener=self, log=adapter_log)

    @property
    def is_over(self) -> bool:
        """The process has ended."""
        return self._over.is_set()

    async def call(self, method: str, params: Frozen, kind: type[T], *, within_s: float | None = None) -> T:
        """Send a request and return its result; `within_s`: None, wait as long as the process lives.

        Raises:
            AdapterError: the process has ended, did not answer in time, or the result makes no sense.
            RpcRefusedError: the answer is an error.
        """
        if self.is_over:
            raise AdapterError(self._cause)
        self._number += 1
        number = self._number
        future = self._calls[number] = asyncio.get_running_loop().create_future()
        self._process.write(jsonrpc.request_message(number, method, params))
        try:
            async with asyncio.timeout(within_s):
                return decode(await future, kind)
        except TimeoutError as error:
            raise AdapterError(f"{self._title} did not answer {method} within {within_s:g} s") from error
        except BadFrameError as error:
            raise AdapterError(f"{self._title} answered {method} with something else than ACP has: {error}") from error
        finally:
            self._calls.pop(number, None)

    def notify(self, method: str, params: Frozen) -> None:
        """Send a notification."""
        self._write(jsonrpc.notification_message(method, params))

    def answer(self, request: RpcRequest, result: Frozen) -> None:
        """Answer a request of the adapter."""
        self._write(jsonrpc.result_message(request.id, result))

    def refuse(self, request: RpcRequest, code: RpcErrorCode, sentence: str) -> None:
        """Answer a request of the adapter with an error."""
        self._write(jsonrpc.failure_message(request.id, code, sentence))

    def kill(self, sentence: str) -> None:
        """End it at once, because of what the sentence says."""
        self._cause = self._cause or sentence
        self._log.say(sentence)
        self._process.end(kill=True)

    async def stop(self) -> None:
        """End it in order: its input ends, then SIGTERM, then SIGKILL. Takes at most twice `END_S` and a moment."""
        self._process.end_input()
        for end in (None, False, True):
            if end is not None and not self.is_over:
                self._process.end(kill=end)
            try:
                async with asyncio.timeout(END_S):
                    await self._over.wait()
                    return
            except TimeoutError:
                continue

    # --- exthost.process.ProcessListener ------------------------------------------------------------------------------

    def line(self, line: bytes) -> bool:
        """Take a line of stdout; True if it was an answer to one of our requests."""
        if self._cause:  # it was ended, and is not heard any more
            return False
        match jsonrpc.parsed(line):
            case RpcResponse() as response:
                return self._answered(response)
            case Notification(method, params):
                self._listener.notified(method, params)
            case RpcRequest() as request:
                self._listener.asked(request)
            case MalformedMessage(_, sentence):
                self._misunderstood(sentence, line)
        return False

    def too_long(self, head: bytes) -> None:  # noqa: ARG002
        """End a process whose line is longer than any message may be: what it meant cannot be known any more."""
        self.kill(f"{self._title} sent a line of more than 4 MiB; it was ended")

    def closed(self, pipe: str) -> None:
        """End a process that can no longer be talked to, unless it is about to exit, with a reason of its own."""
        sentence = f"{self._title} has closed its {pipe}; it was ended"
        self._deaf = self._deaf or asyncio.get_running_loop().call_later(END_S, self.kill, sentence)

    def stalled(self, reason: str) -> None:
        """End a process that does not read."""
        self.kill(f"{self._title} {reason}; it was ended")

    def exited(self, reason: str) -> None:
        """Tell everybody who waits."""
        sentence = self._cause = self._cause or f"{self._title} {reason}"
        if self._deaf is not None:
            self._deaf.cancel()
        self._over.set()
        self._log.say(sentence)
        self._log.close()
        for future in self._calls.values():
            if not future.done():
                future.set_exception(AdapterError(sentence))
        self._listener.gone(sentence)

    def _answered(self, response: RpcResponse) -> bool:
        future = self._calls.get(response.id) if isinstance(response.id, int) else None
        if future is None or future.done():  # a second answer, or one that came too late
            self._log.say(f"an answer to no open request ({response.id!r}) is skipped")
            return False
        if response.result is None:
            future.set_exception(RpcRefusedError(response.code, response.error))
        else:
            future.set_result(response.result)
        return True

    def _misunderstood(self, sentence: str, line: bytes) -> None:
        self._malformed += 1
        self._log.say(f"a line is skipped: {sentence}: {line[:200].decode(errors='replace')}")
        if self._malformed >= MALFORMED:
            self.kill(f"{self._title} does not speak ACP: it has printed {MALFORMED} lines that are no messages")

    def _write(self, line: bytes) -> None:
        if not self.is_over:
            self._process.write(line)
