"""The channels of a daemon: handles the frames of their processes, pairs senders, and lists the state.

It is the `exthost.host.HostListener` of the host that runs the channels' processes, and carries out the `channel.*` commands.
"""

import hashlib
import logging
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from zotd import ids
from zotd.channels.conversations import Conversations, Incoming
from zotd.channels.outbox import ReplyQueue, Send
from zotd.channels.pairing import CODE_BYTES, LIFE_S, Address, Pairing, TooManyGuessesError
from zotd.channels.questions import OpenQuestions
from zotd.channels.state import Correspondent, PeerStore
from zotd.clock import rfc3339
from zotd.core.life import ExtensionState
from zotd.core.ports import StorageError, ToolOutcome
from zotd.exthost.host import Wish
from zotd.exthost.requests import ToolRequest
from zotd.sessions.manager import Manager, Spawn
from zotd.store.audit import AuditTrail
from zotd.wire import ext
from zotd.wire.base import encode
from zotd.wire.channels import ChannelInfo, ChannelList, PairedSender, WaitingSender
from zotd.wire.errors import Code, CommandError

log = logging.getLogger(__name__)

FEATURES = ("channel_accepted",)
"""Features announced to channels' processes in `hello_ack`."""

MESSAGE_ID = "message_id"
"""Field of a message's metadata that identifies a repetition. Without it, repetitions are not recognised."""

MAX_METADATA_BYTES = 64 * 1024
"""Limit of metadata, which is stored with every undelivered answer. Message id and thread take a few hundred bytes."""

MAX_ADDRESS_CHARS = 200
"""Longest name of a channel or a sender."""

GONE = frozenset({ExtensionState.RESTARTING, ExtensionState.PARKED, ExtensionState.STOPPED})
"""States of an extension in which its process has ended."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

STRANGER = """\
Hello. This is a private coding agent, and you are not paired with it.
If it is yours, run this on its machine within {minutes:g} minutes, then write again:

zotctl channel pair {code}"""

WELCOME = "You are paired. Write something, or /help."
DECIDES = "You will be asked here about calls that need an approval."


class Registered(Struct, frozen=True):
    """A channel that a process has announced."""

    extension: str
    description: str
    state: str = "connecting"
    error: str = ""


class Channels:
    """The channels of one daemon and their senders."""

    def __init__(
        self,
        *,
        store: PeerStore,
        manager: Manager,
        send: Send,
        spawn: Spawn,
        cwd: Path,
        audit: AuditTrail,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`send`: `exthost.host.Host.send` of the channels' host. `cwd`: where new sessions work.

        `audit` records decisions of senders. `now`: seconds since the epoch.
        """
        self._store = store
        self._send = send
        self._now = now
        self._outbox = ReplyQueue(store, send=send, spawn=spawn)
        self._conversations = Conversations(
            store=store,
            manager=manager,
            outbox=self._outbox,
            spawn=spawn,
            cwd=cwd,
            questions=OpenQuestions(store, self._outbox, audit),
        )
        self._pairing = Pairing()
        self._registered: dict[str, Registered] = {}
        self._states: dict[str, tuple[ExtensionState, str]] = {}
        """State and reason of each extension."""
        self._broken: dict[str, tuple[str, str]] = {}
        """By extension: the module file that does not load, and the error."""

    async def recover(self) -> None:
        """Look up the outcome of messages from before the start. New messages wait for this. Call it once."""
        await self._conversations.recover()

    # --- zotd.api.channel_desk.ChannelDesk ------------------------------------------------------------------------

    def listing(self) -> ChannelList:
        """List channels, paired senders and senders with an open code."""
        found = [self._info(name, one) for name, one in self._registered.items()]
        known = {one.extension for one in self._registered.values()}
        for extension, (file, error) in self._broken.items():
            # A file that has never loaded has no registered channel, so it is listed separately.
            if extension not in known:
                found.append(ChannelInfo(Path(file).stem, extension, "broken", error=error))
        waiting = [
            WaitingSender(one.address.channel, one.address.sender, rfc3339(one.expires))
            for one in self._pairing.open(self._now())
        ]
        return ChannelList(found, [self._paired(peer) for peer in self._store.peers.values()], waiting)

    async def pair(self, code: str, *, may_approve: bool = False) -> PairedSender:
        """Pair the sender that got this code. With `may_approve`, it may also decide about calls in its conversation."""
        try:
            offer = self._pairing.redeem(code, now=self._now())
        except TooManyGuessesError as error:
            sentence = f"too many wrong codes; wait {LIFE_S / 60:g} minutes, and let the sender write again"
            raise CommandError(Code.FORBIDDEN, sentence) from error
        if offer is None:
            sentence = (
                f"no sender received this code in the last {LIFE_S / 60:g} minutes; write to the bot for a new one"
            )
            raise CommandError(Code.NOT_FOUND, sentence)
        peer = Correspondent(
            offer.address.channel, offer.address.sender, since=rfc3339(self._now()), may_approve=may_approve
        )
        self._store.peers[peer.address] = peer
        try:
            await self._store.save()
        except StorageError:
            # A pairing that was not saved would be gone after a restart, so it must not count before.
            self._store.peers.pop(peer.address, None)
            raise
        self._outbox.tell(peer.address, f"{WELCOME} {DECIDES}" if may_approve else WELCOME, offer.metadata)
        return self._paired(peer)

    async def unpair(self, channel: str, sender: str) -> None:
        """End the pairing of a sender."""
        address = Address(channel, sender)
        if address not in self._store.peers:
            raise CommandError(Code.NOT_FOUND, f'"{sender}" on "{channel}" is not paired; channel.list names who is')
        await self._conversations.forget(address)

    # --- exthost.host.HostListener ------------------------------------------------------------------------------------

    def other(self, extension: str, frame: ext.FromExtension) -> None:
        """Handle a frame about channels or a module file."""
        match frame:
            case ext.RegisterChannel():
                self._register(extension, frame)
            case ext.Unregister("channel", name) if self._owns(extension, name):
                del self._registered[name]
                self._outbox.down(name)
            case ext.ChannelMessage():
                self._message(extension, frame)
            case ext.ChannelState(channel) if self._owns(extension, channel):
                self._registered[channel] = replace(self._registered[channel], state=frame.state, error=frame.error)
            case ext.ChannelSent():
                self._outbox.answered(frame)
            case ext.ModuleError(file, error):
                self._broken.pop(extension, None)
                if error:
                    self._broken[extension] = (file, error)
            case _:
                pass  # other frames have no meaning for channels

    def state_changed(self, extension: str, state: ExtensionState, reason: str) -> None:
        """Follow the state of a process: stop sending while it is not ready, and forget its channels when it is stopped."""
        self._states[extension] = (state, reason)
        for name in [name for name, one in self._registered.items() if one.extension == extension]:
            if state is not ExtensionState.READY:
                self._outbox.down(name)
            # In other states a process may still confirm what it was given.
            if state in GONE:
                self._outbox.lost(name)
            if state is ExtensionState.STOPPED:
                del self._registered[name]

    def wish(self, extension: str, session: str | None, wish: Wish) -> None:
        """Ignore the wish: channels show nothing in sessions."""

    def activate(self, session: str, tools: Sequence[str]) -> None:
        """Do nothing: channels have no tools."""

    def call_tool(self, request: ToolRequest) -> None:
        """Refuse the request: there is no session in which a tool could run."""
        request.answer(ToolOutcome.error("a channel's process has no session in which a tool could run"))

    def contributions_changed(self) -> None:
        """Do nothing: channels have no commands."""

    def complained(self, extension: str, sentence: str) -> None:
        """Log a fault of a process, which is also in its own log."""
        log.warning("channel process %s: %s", extension, sentence)

    # --- inside ---------------------------------------------------------------------------------------------------

    def _register(self, extension: str, frame: ext.RegisterChannel) -> None:
        earlier = self._registered.get(frame.name)
        if not NAME.fullmatch(frame.name):
            self.complained(
                extension, f"the channel name {frame.name[:80]!r} is refused: use letters, digits, ., _ and -"
            )
        # The first process keeps the name: otherwise answers to its senders would go to another program.
        elif earlier is not None and earlier.extension != extension:
            self.complained(extension, f"the channel {frame.name} is served by {earlier.extension} already")
        else:
            self._registered[frame.name] = Registered(extension, frame.description)
            if self._states.get(extension, (ExtensionState.STARTING, ""))[0] is not ExtensionState.READY:
                self._outbox.lost(
                    frame.name
                )  # answers given to an earlier process; a new version of the file keeps its own
            self._outbox.up(frame.name, extension, shows_busy=frame.shows_busy)
            self._conversations.channel_up()

    def _owns(self, extension: str, channel: str) -> bool:
        one = self._registered.get(channel)
        return one is not None and one.extension == extension

    def _message(self, extension: str, frame: ext.ChannelMessage) -> None:
        def accepted() -> None:
            if frame.id is not None:
                self._send(extension, ext.ChannelAccepted(frame.id))

        address = self._address(extension, frame)
        if address is None or len(encode(frame.metadata)) > MAX_METADATA_BYTES:
            self.complained(extension, "a message was dropped: no channel of it, or a sender or metadata out of bounds")
            # Accepted nevertheless, because a message that can never be handled would be repeated for ever.
            accepted()
        elif address in self._store.peers:
            key = _key(address, frame.metadata)
            self._conversations.take(Incoming(address, key, frame.text, frame.images, frame.metadata, accepted))
        else:
            self._refuse(address, frame.metadata)
            accepted()

    def _address(self, extension: str, frame: ext.ChannelMessage) -> Address | None:
        """Return the sender of a message. A process may only use its own channels; other names are rooms of its only one."""
        mine = [name for name, one in self._registered.items() if one.extension == extension]
        if max(len(frame.channel), len(frame.sender)) > MAX_ADDRESS_CHARS:
            return None
        if frame.channel in mine:
            return Address(frame.channel, frame.sender)
        return Address(f"{mine[0]}/{frame.channel}", frame.sender) if len(mine) == 1 else None

    def _refuse(self, address: Address, metadata: dict[str, object] | None) -> None:
        offer = self._pairing.offer(address, metadata, now=self._now(), randomness=os.urandom(CODE_BYTES))
        # A stranger is told the code once; repeating it would let the platform be used to send messages.
        if offer is not None:
            log.info("a stranger wrote on %s: %s", address.channel, address.sender)
            # A code that could not be sent must not keep the sender from getting one later.
            if not self._outbox.tell(address, STRANGER.format(minutes=LIFE_S / 60, code=offer.code), metadata):
                self._pairing.withdraw(address)

    def _info(self, name: str, one: Registered) -> ChannelInfo:
        state, reason = self._states.get(one.extension, (ExtensionState.STARTING, ""))
        if state is not ExtensionState.READY:
            return ChannelInfo(name, one.extension, state, one.description, error=reason or None)
        _, fault = self._broken.get(one.extension, ("", ""))
        return ChannelInfo(name, one.extension, one.state, one.description, error=one.error or fault or None)

    def _paired(self, peer: Correspondent) -> PairedSender:
        undelivered = sum(one.address == peer.address for one in self._store.deliveries.values())
        return PairedSender(peer.channel, peer.sender, peer.since, peer.session, undelivered, peer.may_approve)


def _key(address: Address, metadata: dict[str, object] | None) -> str:
    """Return the key of a message, which is the same for a repetition if the platform numbers its messages."""
    number = (metadata or {}).get(MESSAGE_ID)
    if not isinstance(number, str | int):
        return ids.new("m")
    return "m_" + hashlib.sha256(encode([address.channel, address.sender, number])).hexdigest()
