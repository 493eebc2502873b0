"""One client of the daemon: receives lines, runs commands, sends responses and events.

Commands run in tasks of the server, so they continue when the connection is lost. Carriers (`zotd.api.unix`) deliver
the bytes.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from weakref import WeakSet

from msgspec import Struct

from zotd import ids
from zotd.api.account import local_account
from zotd.api.confinement import Confinement
from zotd.api.context import DaemonContext
from zotd.api.dispatch import Dispatcher
from zotd.api.follower import OutboxSubscriber
from zotd.api.forwarding import Forwarding
from zotd.api.outbox import FAREWELL_S, Outbox
from zotd.api.scope import TokenScope
from zotd.clock import rfc3339
from zotd.sessions.session import Session
from zotd.wire import events
from zotd.wire.api import Client, Role
from zotd.wire.base import encode
from zotd.wire.framing import CLIENT_LIMIT, Lines, TooLong

log = logging.getLogger(__name__)

MAX_IN_FLIGHT = 64
"""Maximum number of concurrent commands of one connection; at the limit, reading pauses until some are answered."""

HALF_LINE_BEATS = 4
"""Heartbeats, of 15 s each, that a line may take to arrive completely. Clients write a command at once, and an
incomplete line can occupy 16 MiB of memory for as long as the client likes."""

TOPICS = {
    "sessions": (events.SessionAdded, events.SessionUpdated, events.SessionRemoved),
    "extensions": (events.ExtState,),
    "trust": (events.TrustRequired,),
    "timers": (events.TimersChanged,),
}
"""Topics of `subscribe`, and the types of their events."""


class UsedToken(Struct, frozen=True):
    """The access token with which a client was admitted."""

    name: str
    digest: str
    user: str
    """The user of the token; empty: none."""


class ForwardedClient(Struct, frozen=True):
    """A client of another daemon of the database, which forwards its commands (`zotd.api.fleet`)."""

    id: str
    """Of its connection there: it knows itself by that in lists of clients."""
    proof: str
    account: str
    """Whose it is there; empty: that daemon does not say."""
    user: str
    """Its user there; empty: none."""


class ServerConnection:
    """The daemon's end of a connection, independent of its carrier."""

    stdio = False
    """Not `zot rpc`: commands name their session."""

    def __init__(
        self,
        transport: asyncio.Transport,
        *,
        context: DaemonContext,
        dispatcher: Dispatcher,
        peer: str,
        ceiling: Role = Role.ADMIN,
        confinement: Confinement | None = None,
        admitted: UsedToken | ForwardedClient | None = None,
    ) -> None:
        """Create the connection.

        Args:
            transport: where the output goes.
            context: the daemon's shared state.
            dispatcher: decodes and runs the commands.
            peer: name of the peer for the log, as reported by the carrier.
            ceiling: the highest role that `hello` may request.
            confinement: further restrictions; None if there are none.
            admitted: its token, or what another daemon says of it; None if it needs neither, because it is on this machine.
        """
        self.admitted = admitted
        self.id = admitted.id if isinstance(admitted, ForwardedClient) else ids.new("k")
        self.account, self.user = _account(admitted)  # for the audit trail, and for sessions that it begins
        self.client, self.since = Client(), rfc3339()
        self.confinement = confinement
        self.ceiling = ceiling
        self.heavy: asyncio.Lock | None = asyncio.Lock()
        """See `zotd.api.dispatch.CommandSource`."""
        self.shared: AbstractAsyncContextManager[object] = nullcontext() if admitted is None else context.remote_heavy
        """See `zotd.api.dispatch.CommandSource`."""
        # A client has to request ADMIN in `hello`, even if its carrier permits it.
        self.role = min(ceiling, Role.APPROVE)
        self.forwarding = self._forwarding(context)
        """See `zotd.api.dispatch.CommandSource`."""
        self.can_decide = False
        """Whether it can answer approval requests of the sessions that it follows."""
        self.has_spoken = False
        """Whether it has sent a complete line; clients that have not are disconnected first (`UnixServer`)."""
        self._context = context
        self.peer = peer
        context.tally.count(connections=1)
        self._transport = transport
        self._dispatcher = dispatcher
        self._lines = Lines(CLIENT_LIMIT)
        self._outbox = Outbox(transport, cut=self._evict)
        self._followers: dict[str, OutboxSubscriber] = {}
        self._made: WeakSet[Session] = WeakSet()  # weak: sessions may be closed before the connection ends
        self._topics: tuple[type[events.Event], ...] = ()
        self._unlisten = context.listen(self._topic_event)
        self._taken: deque[bytes | TooLong] = deque()
        """Received lines that wait for a free command slot; at most those of one read, 256 KiB."""
        self._half_line_beats = 0
        self._in_flight = 0
        self._lost = False
        self._farewells: list[Callable[[], object]] = []

    @property
    def sender(self) -> str:
        """Name of the client for the queue and the log: as given in `hello`, else as reported by the carrier."""
        return self.client.name or self.client.kind or self.peer

    # --- what the carrier calls -------------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Take bytes from the client; chunks may end within a line."""
        lines = self._lines.feed(data)
        if lines:
            self.has_spoken = True
            self._half_line_beats = 0
            self._taken.extend(lines)
            self._work()

    def paused(self) -> None:
        """Queue output: the transport's buffer is full."""
        self._outbox.pause()

    def resumed(self) -> None:
        """Send queued output: the transport's buffer has room."""
        self._outbox.resume()

    def lost(self) -> None:
        """Release everything that the connection holds; called once, when the transport has ended."""
        self._lost = True
        self._outbox.close()
        self._unlisten()
        for farewell in self._farewells:
            farewell()
        if self.forwarding is not None:
            self.forwarding.close()
        for session_id in list(self._followers):
            self.unfollow(session_id)
        for session in list(self._made):
            session.holders.discard(self)
            self._context.manager.settle(session)

    def heartbeat(self) -> None:
        """Send a heartbeat to an attached client; disconnect one that does not finish its line."""
        self._half_line_beats = self._half_line_beats + 1 if self._lines.held else 0
        if self._half_line_beats > HALF_LINE_BEATS:
            self._evict("an incomplete line was not continued")
        elif self._followers or (self.forwarding is not None and self.forwarding.is_following):
            beat = [events.Heartbeat()]
            self._outbox.write_live(beat, encode(beat[0]) + b"\n")

    def end(self, reason: str | None = None) -> None:
        """Close the connection after its output is sent. May be called twice.

        If `reason` is given, the client is told, and its commands that have not started are dropped.
        """
        if reason is None:
            self._outbox.flush()
            self._transport.close()
            return
        self._taken.clear()
        if not self._outbox.closed:
            self._evict(reason)

    # --- what commands call -----------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send a line; does nothing if the client has disconnected."""
        if not self._lost:
            self._outbox.write(data)

    def at_end(self, farewell: Callable[[], object]) -> None:
        """Call `farewell` when the client disconnects, or at once if it already has."""
        if self._lost:
            farewell()
        else:
            self._farewells.append(farewell)

    async def room(self) -> None:
        """Wait until the client has read what was sent, so that several long responses do not exceed its queue."""
        await self._outbox.room()

    def made(self, session: Session) -> None:
        """Record an ephemeral session of this client, which ends with the client even if it never attaches."""
        if self._lost:  # the client disconnected while its command was running
            self._context.manager.settle(session)
            return
        session.holders.add(self)
        self._made.add(session)
        if self.confinement is None:
            self._context.opened_by_people.add(session)
        else:
            self.confinement.opened(session.id)

    def follow(self, session: Session) -> OutboxSubscriber:
        """Attach to the session, again if it is attached. The caller has to call `catch_up` of the result."""
        self.unfollow(session.id)
        follower = OutboxSubscriber(session, self._outbox, self._context.tally, evicted=self.end)
        if self._lost:  # the client disconnected while its command was running
            follower.stop()
            return follower
        self._followers[session.id] = follower
        session.approvals.followers.add(self)
        client = events.ClientInfo(self.id, self.client.name, self.client.kind, self.since)
        self._context.presences.enter(session, client, self._show)
        return follower

    def unfollow(self, session_id: str) -> None:
        """Detach; does nothing if the client is not attached."""
        follower = self._followers.pop(session_id, None)
        if follower is not None:
            follower.stop()
            follower.session.approvals.followers.discard(self)
            self._context.presences.leave(follower.session, self.id)
            self._context.manager.settle(follower.session)

    def subscribe(self, names: Sequence[str], *, now: Sequence[events.Event] = ()) -> None:
        """Send events of these topics only, from now on; and those of `now` that belong to them immediately."""
        self._topics = tuple(kind for name in names for kind in TOPICS[name])
        for event in now:
            self._topic_event(event)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _forwarding(self, context: DaemonContext) -> Forwarding | None:
        # The programs that this daemon has started have no rights at another one.
        has_rights = self.confinement is None or isinstance(self.confinement, TokenScope)
        if context.fleet is None or not has_rights or isinstance(self.admitted, ForwardedClient):
            return None
        return Forwarding(context.fleet, self)

    def _show(self, event: events.Event) -> None:
        """Send an event to this client only; slow clients may get it merged with or after others."""
        self._outbox.write_live([event], encode(event) + b"\n")

    def _work(self) -> None:
        """Start as many commands as may run, including those that a client sent before it disconnected."""
        while self._taken and self._in_flight < MAX_IN_FLIGHT:
            work = self._dispatcher.take(self, self._taken.popleft())
            if work is not None:
                self._in_flight += 1
                self._context.tally.count(commands=1)
                self._context.spawn(f"command of {self.id}", self._finish(work))
        # A client that sends commands faster than they are answered is slowed down by the kernel's buffers.
        if self._in_flight >= MAX_IN_FLIGHT:
            self._transport.pause_reading()
        elif not self._lost:
            self._transport.resume_reading()

    async def _finish(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        finally:
            self._in_flight -= 1
            self._work()

    def _topic_event(self, event: events.Event) -> None:
        if isinstance(event, self._topics) and (self.confinement is None or self.confinement.concerns(event)):
            self.write(encode(event) + b"\n")

    def _evict(self, reason: str) -> None:
        """Disconnect a client that is too slow; it can reconnect with its cursor."""
        log.warning("connection %s (%s) was cut: %s", self.id, self.sender, reason)
        self._context.tally.count(evictions=1)
        outbox = self._outbox
        farewell = [events.Evicted(reason, outbox.sent.get(key, 0), session=key) for key in self._followers]
        outbox.close()
        self._transport.write(b"".join(encode(event) + b"\n" for event in farewell))
        self._transport.close()
        # The farewell may not fit into the buffers of a client that does not read, and then `close` would never finish.
        asyncio.get_running_loop().call_later(FAREWELL_S, self._hang_up)

    def _hang_up(self) -> None:
        if not self._lost:  # a transport that has ended cannot be aborted
            self._transport.abort()


def _account(admitted: UsedToken | ForwardedClient | None) -> tuple[str, str]:
    """Return the account of the client, for the audit trail, and its user, which is empty if it has none."""
    if isinstance(admitted, UsedToken):
        return f"token:{admitted.name}", admitted.user
    if isinstance(admitted, ForwardedClient):
        return admitted.account or "fleet", admitted.user
    return f"local:{local_account()}", ""
