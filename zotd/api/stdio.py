"""Carrier of `zot rpc`: commands on standard input, responses and events on standard output (`docs/protocol.md`).

Writing never blocks the event loop, so an abort works even if the parent process does not read. Nothing is dropped,
because the parent is the only client.
"""

import asyncio
import hmac
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from zotd.api.dispatch import Dispatcher, Forwarder, failure
from zotd.api.outbox import Outbox
from zotd.sessions.session import Session
from zotd.wire import events
from zotd.wire.api import Envelope, Hello, Role
from zotd.wire.base import BadFrameError, decode
from zotd.wire.errors import Code
from zotd.wire.framing import CLIENT_LIMIT, Lines, TooLong

UNORDERED = ("prompt", "compact", "abort")
"""Commands whose responses are sent out of order: `abort` at once, the others when the run starts. All other responses
are sent in the order of the commands, because clients may omit ids."""


class _Answer:
    """The door as seen by one command: collects its response until its turn comes."""

    stdio = True
    role = ceiling = Role.SUBMIT
    confinement = None
    heavy = None
    shared: AbstractAsyncContextManager[object] = nullcontext()
    sender = "stdio"
    user = ""
    forwarding: Forwarder | None = None

    def __init__(self, door: "StdioDoor") -> None:
        self.lines: list[bytes] = []
        self.is_complete = False
        """Whether the response is complete."""
        self._door = door

    def write(self, data: bytes) -> None:
        """Add a line to the command's answer, which is sent when its turn comes."""
        self.lines.append(data)
        self.is_complete = True
        self._door.answered(self)

    def complete(self) -> None:
        """Mark the response as complete, even if the command sent none."""
        self.is_complete = True
        self._door.answered(self)


class StdioDoor:
    """The parent process, which follows the single session from the start."""

    stdio = True
    role = ceiling = Role.SUBMIT
    confinement = None
    heavy = None
    shared: AbstractAsyncContextManager[object] = nullcontext()
    sender = "stdio"
    user = ""
    forwarding: Forwarder | None = None

    def __init__(
        self,
        session: Session,
        output: asyncio.WriteTransport,
        *,
        dispatcher: Dispatcher,
        spawn: Callable[[str, Coroutine[object, object, None]], None],
        token: str | None,
    ) -> None:
        """If `token` is given, the first command has to be a hello with it."""
        self._dispatcher = dispatcher
        self._spawn = spawn
        self._token = token
        self._lines = Lines(CLIENT_LIMIT)
        self._outbox = Outbox(output, cut=None)
        self._answers: deque[_Answer] = deque()
        """Responses that are sent in order, oldest first."""
        self._in_flight = 0
        self._ended = False
        self.finished = asyncio.Event()
        """Set when the input has ended and every command is answered, or when the parent was refused."""
        self.refused = False
        session.ledger.subscribe(self)

    # --- input --------------------------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Take bytes of standard input; chunks may end within a line."""
        for line in self._lines.feed(data):
            self._take(line)

    def ended(self) -> None:
        """Handle the end of standard input; a last line without a newline counts."""
        for line in self._lines.end():
            self._take(line)
        self._ended = True
        self._look()

    # --- output -------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send a line to the parent process."""
        self._outbox.write(data)

    def committed(self, shown: Sequence[events.Event], data: bytes, last_seq: int) -> None:
        """Send the session's committed events."""
        del shown, last_seq
        self._outbox.write(data)

    def early(self, shown: events.Event, data: bytes, seq: int) -> bool:
        """Return False: no event of this carrier has a `seq`."""
        del shown, data, seq
        return False

    def live(self, shown: Sequence[events.Event], data: bytes) -> None:
        """Send the session's live events."""
        self._outbox.write_live(shown, data)

    def paused(self) -> None:
        """Queue output: the pipe is full."""
        self._outbox.pause()

    def resumed(self) -> None:
        """Send queued output: the pipe has room."""
        self._outbox.resume()

    def flush(self) -> None:
        """Write collected output to the pipe; call it before the pipe is closed."""
        self._outbox.flush()

    async def drained(self) -> None:
        """Wait until the parent has read enough for the rest to fit into its pipe."""
        await self._outbox.room()

    # --- inside -------------------------------------------------------------------------------------------------

    def _take(self, line: bytes | TooLong) -> None:
        if self.refused or not self._may(line):
            return
        answer = _Answer(self)
        if _name(line) not in UNORDERED:
            self._answers.append(answer)
        work = self._dispatcher.take(answer, line)
        if work is not None:
            self._in_flight += 1
            self._spawn("a command of zot rpc", self._finish(work, answer))

    def _may(self, line: bytes | TooLong) -> bool:
        """Whether the parent has presented its token; until then every command except that hello is refused."""
        if self._token is None:
            return True
        envelope, given = _hello(line)
        if given is not None and hmac.compare_digest(given.encode(), self._token.encode()):
            self._token = None
            return True
        sentence = "the first command must be hello with the token of ZOTCORE_RPC_TOKEN"
        if given is not None:
            sentence = "the token is wrong"
        self.write(failure(envelope.type, Code.UNAUTHORIZED, sentence, envelope.id))
        self.refused = True
        self.finished.set()
        return False

    def answered(self, answer: "_Answer") -> None:
        """Send completed responses, as far as all responses before them are complete."""
        if answer not in self._answers:
            self._write_lines(answer)
        while self._answers and self._answers[0].is_complete:
            self._write_lines(self._answers.popleft())

    def _write_lines(self, answer: "_Answer") -> None:
        for line in answer.lines:
            self.write(line)
        answer.lines.clear()

    async def _finish(self, work: Coroutine[object, object, None], answer: "_Answer") -> None:
        try:
            await work
        finally:
            answer.complete()
            self._in_flight -= 1
            self._look()

    def _look(self) -> None:
        if self._ended and self._in_flight == 0:
            self.finished.set()


def _name(line: bytes | TooLong) -> str:
    try:
        return "" if isinstance(line, TooLong) else decode(line, Envelope).type
    except BadFrameError:
        return ""


def _hello(line: bytes | TooLong) -> tuple[Envelope, str | None]:
    """Return the command's type and id, and the token if it is a hello."""
    if isinstance(line, TooLong):
        return Envelope(), None
    try:
        envelope = decode(line, Envelope)
        if envelope.type == "hello":
            return envelope, decode(line, Hello).token or ""
    except BadFrameError:
        return Envelope(), None
    return envelope, None
