"""Forwards the commands of one client to another daemon, and what comes back to the client."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from zotd.store.members import FleetMember
from zotd.wire import api
from zotd.wire.base import Frozen, encode
from zotd.wire.errors import Code
from zotd.wire.events import Evicted
from zotd.wire.version import PROTOCOL

HELLO_ID = 0
"""Id of the first request, a hello; those of a relay count from 1."""

EARLY = frozenset(["attach"])
"""Commands that are sent before the other daemon has answered the hello: if they are not answered, they can be sent again
elsewhere, because a client that attaches twice changes nothing."""

_RESPONSE, _HEARTBEAT, _EVICTED = '{"type":"response"', '{"type":"heartbeat"', '{"type":"evicted"'
"""How frames begin: the type is their first field."""


class RelayError(Exception):
    """Another daemon cannot be used, and nothing was sent to it; the message says why."""

    def __init__(self, sentence: str, *, is_lasting: bool = False) -> None:
        """`is_lasting`: a person has to change something; waiting is no use."""
        super().__init__(sentence)
        self.is_lasting = is_lasting


class RelayClient(Protocol):
    """A client of this daemon whose commands are forwarded."""

    id: str
    client: api.Client
    role: api.Role
    can_decide: bool
    account: str
    """Whose it is, for the audit trail of the other daemon."""

    @property
    def user(self) -> str:
        """The user of its token; empty: none."""
        ...

    def write(self, data: bytes) -> None:
        """Send lines to the client."""
        ...

    async def room(self) -> None:
        """Wait until the client has read what was sent."""
        ...

    def end(self) -> None:
        """Disconnect the client after its output is sent."""
        ...


class RelayedResponse(Frozen, tag_field="type", tag="response", frozen=True):
    """A response of the other daemon (`wire.api.Response`); `data` is forwarded as it is."""

    command: str
    success: bool
    id: str | int | None = None
    data: Raw | UnsetType = UNSET
    error: str | UnsetType = UNSET
    code: str | UnsetType = UNSET


DECODER = msgspec.json.Decoder(RelayedResponse)


class MessageSocket(Protocol):
    """A connection that transports lines as messages."""

    certificate: str
    """Digest of the certificate that the other side has shown; empty without TLS."""

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be sent."""
        ...

    async def send(self, line: bytes) -> None:
        """Send a line without its newline; raises ConnectionError."""
        ...

    async def receive(self) -> str | None:
        """Return the next line; None at the end."""
        ...

    async def close(self) -> None:
        """Close it; idempotent."""
        ...


class _Asked(Struct):
    """A command that is not answered yet."""

    answer: asyncio.Future[RelayedResponse | None]
    """See `Relay.ask`."""
    show: Callable[[RelayedResponse], None]
    """Takes a response that is no refusal because of a conflict."""
    is_early: bool
    """It is one of `EARLY`."""


class Relay:
    """The connection to another daemon for one client of this one; `run` reads until the end."""

    def __init__(
        self,
        member: FleetMember,
        socket: MessageSocket,
        client: RelayClient,
        check: Callable[[str], object] | None = None,
    ) -> None:
        """Take ownership of `socket`, at whose other end `client` was introduced.

        `check`: the hello is not answered yet; takes the answer and raises RelayError. `welcomed` has to be called.
        """
        self.member = member
        self.sessions: set[str] = set()
        """Those whose events the client gets from there."""
        self._socket = socket
        self._client = client
        self._asked: dict[int, _Asked] = {}
        self._last = HELLO_ID
        self._reading: asyncio.Task[object] | None = None
        self._is_over = False
        self._check = check
        self._welcome = asyncio.Event()
        if check is None:
            self._welcome.set()

    @property
    def is_over(self) -> bool:
        """Whether nothing can be forwarded any more."""
        return self._is_over or self._socket.is_closed

    async def ask(
        self, command: str, params: Frozen, request_id: str | int | None, succeeded: Callable[[], None]
    ) -> RelayedResponse | None:
        """Forward a command, and wait for the response.

        `succeeded` is called before the client gets a response that is no refusal.

        Returns None when the client has got the response, or was disconnected because the connection has ended before: it has
        to find out what became of its command. Otherwise a refusal that it has not got, because another daemon may have the
        session by now.

        Raises RelayError if the command was not sent, or is one of `EARLY` and was not answered.
        """

        def show(answer: RelayedResponse) -> None:
            if answer.success:
                succeeded()
            self._client.write(response_line(answer, request_id))

        return await self._ask(command, params, show)

    async def introduce(self) -> None:
        """Tell the other daemon what the client has said of itself meanwhile, and wait until it has heard that."""
        with suppress(RelayError):
            await self._ask("hello", hello_of(self._client, None), lambda _: None)

    def welcomed(self, line: str | None) -> None:
        """Take the answer to the hello, for which it was made; None: there is none."""
        problem = "it does not answer any more" if line is None else self._problem(line)
        if problem:
            self._is_over = True
            for asked in self._asked.values():
                if not asked.answer.done():
                    asked.answer.set_exception(RelayError(problem))
            self._asked.clear()
        self._welcome.set()

    def close(self) -> None:
        """End the connection; the client does not need it any more."""
        self._is_over = True
        if self._reading is not None:
            self._reading.cancel()

    async def run(self) -> None:
        """Forward to the client what comes, until the connection ends; then the client ends, if it depends on it."""
        self._reading = asyncio.current_task()
        try:
            if not self._is_over:
                await self._read()
        finally:
            is_wanted, self._is_over = not self._is_over, True
            asked = [one for one in self._asked.values() if not one.answer.done()]
            if is_wanted and not self.sessions and all(one.is_early for one in asked):
                for one in asked:
                    one.answer.set_exception(RelayError("the connection has ended"))
            else:
                if is_wanted:
                    self._evict_client()
                for one in asked:
                    one.answer.set_result(None)
            await self._socket.close()

    def _problem(self, line: str) -> str:
        """Return what is wrong with the answer to the hello; empty if nothing is."""
        assert self._check is not None
        try:
            self._check(line)
        except (RelayError, msgspec.MsgspecError) as error:
            return str(error)
        return ""

    async def _ask(
        self, command: str, params: Frozen, show: Callable[[RelayedResponse], None]
    ) -> RelayedResponse | None:
        if command not in EARLY:
            await self._welcome.wait()
        if self.is_over:
            raise RelayError("the connection has ended")
        self._last += 1
        asked = self._asked[self._last] = _Asked(asyncio.get_running_loop().create_future(), show, command in EARLY)
        with suppress(ConnectionError):  # `run` notices
            await self._socket.send(request(command, self._last, params))
        return await asked.answer

    def _evict_client(self) -> None:
        """Disconnect the client, which can attach again with its cursors wherever the sessions are now."""
        reason = f"the daemon {self.member.name}, which had the session, does not answer any more"
        for session in self.sessions:
            self._client.write(encode(Evicted(reason, 0, session=session)) + b"\n")
        self._client.end()

    async def _read(self) -> None:
        while (text := await self._socket.receive()) is not None:
            if text.startswith(_RESPONSE):
                self._answered(text)
            elif not text.startswith(_HEARTBEAT):
                self._client.write(text.encode() + b"\n")
            # A client that reads slowly is slow for the other daemon, too, which merges what is live, or disconnects it.
            await self._client.room()
            if text.startswith(_EVICTED):
                self._is_over = True
                self._client.end()
                return

    def _answered(self, text: str) -> None:
        answer = DECODER.decode(text)
        asked = self._asked.pop(answer.id, None) if isinstance(answer.id, int) else None
        if asked is None:
            return
        is_shown = answer.code != Code.CONFLICT
        if is_shown:
            asked.show(answer)
        if not asked.answer.done():  # the task that asked may have been cancelled
            asked.answer.set_result(None if is_shown else answer)


def hello_of(client: RelayClient, fleet: api.FleetProof | None) -> api.Hello:
    """Return what introduces the client to another daemon."""
    return api.Hello(
        client=client.client,
        protocol=(PROTOCOL, PROTOCOL),
        role=client.role.name.lower(),
        can_approve=client.can_decide,
        fleet=fleet,
    )


def response_line(answer: RelayedResponse, request_id: str | int | None) -> bytes:
    """Return the line of a response to the request of the client."""
    return encode(msgspec.structs.replace(answer, id=request_id)) + b"\n"


def request(command: str, request_id: int, params: Frozen) -> bytes:
    """Return the line of a request, without its newline."""
    return encode({"type": command, "id": request_id, **msgspec.to_builtins(params)})
