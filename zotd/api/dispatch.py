"""Decodes a line, runs its command and sends the response. The only place where exceptions become error codes.

Handlers are looked up in a table (`zotd.api.methods`). The command table determines the Struct of the
parameters and the required role. Whatever fails, the client gets exactly one response and stays connected.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Protocol

from zotd.api.confinement import Confinement
from zotd.api.repeats import First, Repeats
from zotd.core.ports import StorageError
from zotd.ledger.ledger import LetGoError
from zotd.sessions.manager import Manager
from zotd.store.errors import UnreadableSessionError
from zotd.wire.api import BY_NAME, MAX_ID, CommandSpec, Envelope, Response, Role
from zotd.wire.base import BadFrameError, Frozen, decode, encode
from zotd.wire.errors import Code, CommandError
from zotd.wire.framing import TooLong

log = logging.getLogger(__name__)

MAX_ECHOED = 4096
"""Longest type or id: both are repeated in the response, which has to fit into a frame."""


HEAVY = frozenset(
    [
        "complete",
        "get_messages",
        "get_models",
        "model.show",
        "prompt.history",
        "session.export",
        "session.history",
        "session.image",
        "session.search",
        "session.tree",
        "usage.report",
    ]
)
"""Commands that read and take milliseconds on the event loop. Each connection runs one of them at a time: two thousand
of them from one client delay another client's command no longer than a single one."""


class Forwarder(Protocol):
    """Carries out commands here, or has the daemon that has their session carry them out."""

    async def carry_out(self, call: "Invocation", params: Frozen, handler: "Handler") -> None:
        """Respond to the command; raises what the handler raises."""
        ...


class CommandSource(Protocol):
    """The connection that a command came through, as seen by handlers."""

    role: Role
    """Current role."""
    ceiling: Role
    """Highest role that it can request in `hello`."""

    @property
    def confinement(self) -> Confinement | None:
        """Further restrictions: of a descendant of the daemon, or of a token for some sessions."""
        ...

    @property
    def heavy(self) -> asyncio.Lock | None:
        """Held while one of `HEAVY` runs; None if there is only one client, so that no other has to wait."""
        ...

    @property
    def shared(self) -> AbstractAsyncContextManager[object]:
        """Held in addition to `heavy`: one lock for all clients on other machines, so that many cost what one does."""
        ...

    @property
    def stdio(self) -> bool:
        """Whether it is `zot rpc`, which has one session that commands do not name."""
        ...

    @property
    def sender(self) -> str:
        """Name of the client, for the queue and the log."""
        ...

    @property
    def user(self) -> str:
        """The user of its token; empty: none."""
        ...

    @property
    def forwarding(self) -> "Forwarder | None":
        """Has other daemons respond to commands for their sessions; None: these are refused."""
        ...

    def write(self, data: bytes) -> None:
        """Send a line that ends with a newline; does nothing if the client has disconnected."""
        ...


class Invocation:
    """A command that is being executed."""

    def __init__(
        self, door: CommandSource, manager: Manager, command: CommandSpec, request_id: str | int | None
    ) -> None:
        self.door = door
        self.manager = manager
        self._command = command
        self._id = request_id
        self._responded = False
        self._answer: asyncio.Future[Frozen | None] | None = None

    @property
    def name(self) -> str:
        """Name of the command, as in its `type` field."""
        return self._command.name

    @property
    def user(self) -> str:
        """The user whose sessions it begins; empty: none."""
        bounds = self.door.confinement
        return self.door.user or ("" if bounds is None else bounds.user)

    @property
    def request_id(self) -> str | int | None:
        """The client's id of the request."""
        return self._id

    def remember(self, answer: asyncio.Future[Frozen | None] | None) -> None:
        """Set the result of `answer` to the response of this command, for requests that repeat it."""
        self._answer = answer

    def respond(self, data: Frozen | None = None) -> None:
        """Send the response now, before the events that the command causes, and not when the handler returns."""
        if not self._responded:
            self._responded = True
            response = Response(self._command.name, success=True, id=self._id, data=data)
            self.door.write(encode(response) + b"\n")
            if self._answer is not None:
                self._answer.set_result(data)

    def forwarded(self) -> None:
        """Send no response, because another daemon has responded; it recognises repetitions, too."""
        self._responded = True
        if self._answer is not None:
            self._answer.cancel()

    def fail(self, code: Code, sentence: str) -> None:
        """Send a failed response; does nothing if the command was already answered."""
        if not self._responded:
            self._responded = True
            self.door.write(failure(self._command.name, code, sentence, self._id))
            if self._answer is not None:
                self._answer.cancel()


Handler = Callable[[Invocation, Frozen], Awaitable[Frozen | None]]


def failure(command: str, code: Code, sentence: str, request_id: str | int | None = None) -> bytes:
    """Return the line of a failed response."""
    return encode(Response(command, success=False, id=request_id, error=sentence, code=code)) + b"\n"


class Dispatcher:
    """Turns lines of a connection into running commands."""

    def __init__(self, manager: Manager, handlers: Mapping[str, Handler]) -> None:
        self._manager = manager
        self._handlers = handlers
        self._repeats = Repeats()

    def take(self, door: CommandSource, line: bytes | TooLong) -> Coroutine[object, object, None] | None:
        """Decode a line; return the coroutine to run in a task, or None if it was answered at once."""
        if isinstance(line, TooLong):
            door.write(failure("", Code.TOO_LARGE, "the line is longer than 16 MiB and was skipped"))
            return None
        try:
            envelope = _envelope(line)
        except BadFrameError as error:
            door.write(failure("", Code.BAD_REQUEST, str(error)))
            return None
        try:
            call, params = self._call(door, line, envelope)
            first = self._repeats.seen(envelope.type, params)
        except CommandError as error:
            door.write(failure(envelope.type, error.code, error.sentence, envelope.id))
            return None
        if first is not None:
            return self._repeat(call, first)
        call.remember(self._repeats.begin(envelope.type, params))
        return self._run(call, params, self._handlers[envelope.type])

    def _call(self, door: CommandSource, line: bytes, envelope: Envelope) -> tuple[Invocation, Frozen]:
        command = BY_NAME.get(envelope.type)
        if command is None or (door.stdio and not command.stdio):
            raise CommandError(Code.BAD_REQUEST, "unknown command")
        if door.confinement is not None:
            door.confinement.check(command.role, command.name)
        if door.role < command.role:
            raise CommandError(Code.FORBIDDEN, _beyond(door, command))
        if command.name not in self._handlers:
            raise CommandError(Code.UNSUPPORTED, f"{command.name} is not implemented in this version of zotd")
        try:
            params = decode(line, command.params)
        except BadFrameError as error:
            raise CommandError(Code.BAD_REQUEST, f"{command.name}: {error}") from error
        if door.confinement is not None:
            params = door.confinement.admit(command, params)
        return Invocation(door, self._manager, command, envelope.id), params

    async def _repeat(self, call: Invocation, first: First) -> None:
        """Send the first response again as soon as there is one."""
        await asyncio.wait([first.answer])
        if first.answer.cancelled():
            call.fail(Code.CONFLICT, "the first request with this request_id failed; send it again")
        else:
            call.respond(first.answer.result())

    async def _run(self, call: Invocation, params: Frozen, handler: Handler) -> None:
        if call.name not in HEAVY or call.door.heavy is None:
            await self._carry_out(call, params, handler)
            return
        await self._carry_out(call, params, partial(_one_at_a_time, handler, call.door.heavy))

    async def _carry_out(self, call: Invocation, params: Frozen, handler: Handler) -> None:
        try:
            if call.door.forwarding is None:
                call.respond(await handler(call, params))
            else:
                await call.door.forwarding.carry_out(call, params, handler)
        except CommandError as error:
            call.fail(error.code, error.sentence)
        except UnreadableSessionError as error:
            call.fail(Code.BLOCKED, str(error))
        except LetGoError as error:
            call.fail(Code.CONFLICT, str(error))
        except StorageError as error:
            call.fail(Code.STORAGE_BLOCKED, f"the journal cannot be written: {error}")
        except Exception:  # a bug must fail this command only, not the connection
            log.exception("a command failed")
            call.fail(Code.INTERNAL, "internal error; see the log of zotd")


async def _one_at_a_time(handler: Handler, heavy: asyncio.Lock, call: Invocation, params: Frozen) -> Frozen | None:
    """Run a heavy command and respond; not while another daemon is waited for, which costs nothing here."""
    async with heavy, call.door.shared:
        # Yield, so that other commands queue for the lock: otherwise each would find it free, and all of them would run
        # within one iteration of the event loop.
        await asyncio.sleep(0)
        call.respond(await handler(call, params))  # within the lock: encoding a long response takes long, too
    return None


def _beyond(door: CommandSource, command: CommandSpec) -> str:
    """Return the error for a command that needs another role; it says how to get that role."""
    need, most = command.role.name.lower(), door.ceiling.name.lower()
    if command.role <= door.ceiling:
        return f"{command.name} needs the role {need}; ask for it in hello"
    return f"{command.name} needs the role {need}, and the token has {most}: zotctl token create NAME --role {need}"


def _envelope(line: bytes) -> Envelope:
    """Decode the type and id of a request.

    Raises:
        BadFrameError: it is not a JSON object, or its id cannot be repeated unchanged.
    """
    envelope = decode(line, Envelope)
    if isinstance(envelope.id, int) and abs(envelope.id) > MAX_ID:
        raise BadFrameError("a numeric id must lie within 2^53; send it as a string")
    if len(envelope.type) > MAX_ECHOED or len(str(envelope.id)) > MAX_ECHOED:
        raise BadFrameError(f"a type or an id is longer than {MAX_ECHOED} characters")
    return envelope
