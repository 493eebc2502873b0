"""Delivers answers to each sender in order, and repeats failed deliveries within limits.

waiting for the channel -> sent -> channel_sent -> forgotten
         ^                   |
         +---- after a while +-- channel_sent{error}, the process ended, or there was no answer
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from msgspec import Struct, field, structs

from zotd import ids
from zotd.channels.pairing import Address
from zotd.channels.state import Delivery, PeerStore
from zotd.core.ports import StorageError
from zotd.sessions.manager import Spawn
from zotd.wire import ext

log = logging.getLogger(__name__)

SENT_S = 600.0
"""Time limit for one message. Platforms may delay a program for minutes after too many messages, and a repetition that
comes too early would send the message twice."""

FIRST_DELAY_S, MAX_DELAY_S = 30.0, 3600.0
"""Pauses between tries, doubling. A channel's process has tried several times before it reports an error."""

TRIES = 12
"""Number of tries, over about six hours. After that the answer is only in the session."""

MAX_CHARS = 200_000
"""Longest answer. Even with six bytes for each character in JSON it fits into a frame."""

CUT = "\n… (cut: the whole answer is in the session)"

Send = Callable[[str, ext.ToExtension], bool]
"""Sends a frame to an extension; returns False if it does not serve."""


class ChannelLink(Struct):
    """The connection to one channel's process."""

    extension: str
    shows_busy: bool = False
    is_up: asyncio.Event = field(default_factory=asyncio.Event)


class _Sent(Struct):
    channel: str
    answer: asyncio.Future[str]
    """Set to the error; empty if the message was sent."""


class ReplyQueue:
    """Queues of undelivered answers, one for each sender."""

    def __init__(self, store: PeerStore, *, send: Send, spawn: Spawn, delay_s: float = FIRST_DELAY_S) -> None:
        """Create an empty outbox; `delay_s` is the pause before the second try."""
        self._store = store
        self._send = send
        self._spawn = spawn
        self._delay_s = delay_s
        self._lines: dict[str, ChannelLink] = {}
        self._lanes: dict[Address, deque[Delivery]] = {}
        self._sent: dict[str, _Sent] = {}

    # --- channels -------------------------------------------------------------------------------------------------

    def up(self, channel: str, extension: str, *, shows_busy: bool = False) -> None:
        """Start sending to a channel through this extension."""
        line = self._line(channel)
        line.extension, line.shows_busy = extension, shows_busy
        line.is_up.set()

    def down(self, channel: str) -> None:
        """Stop sending to a channel. Messages that were sent may still be confirmed."""
        self._line(channel).is_up.clear()

    def lost(self, channel: str) -> None:
        """Fail the unconfirmed messages of a channel whose process has ended."""
        for sent in self._sent.values():
            if sent.channel == channel and not sent.answer.done():
                sent.answer.set_result("the channel's process has ended")

    def answered(self, frame: ext.ChannelSent) -> None:
        """Handle a channel's confirmation; late and repeated ones are dropped."""
        sent = self._sent.get(frame.id)
        if sent is not None and not sent.answer.done():
            sent.answer.set_result(frame.error)

    # --- answers --------------------------------------------------------------------------------------------------

    def put(self, delivery: Delivery) -> None:
        """Deliver an answer after the earlier ones to the same sender. It must have a text and be in the store."""
        lane = self._lanes.get(delivery.address)
        if lane is not None:
            lane.append(delivery)
            return
        self._lanes[delivery.address] = deque([delivery])
        self._spawn(f"answers to {delivery.sender} on {delivery.channel}", self._work(delivery.address))

    def tell(
        self,
        address: Address,
        text: str,
        metadata: dict[str, object] | None,
        choices: tuple[ext.ChannelChoice, ...] = (),
    ) -> bool:
        """Send a text once, without confirmation; return False if the channel is not connected."""
        name, _, room = address.channel.partition("/")
        line = self._line(name)
        frame = ext.ChannelSend(ids.new("d"), room or name, address.sender, text, metadata, choices)
        return line.is_up.is_set() and self._send(line.extension, frame)

    def busy(self, address: Address, metadata: dict[str, object] | None, *, is_busy: bool, text: str = "") -> None:
        """Show or hide the "busy" sign for a message, if the channel is connected and supports it."""
        name, _, room = address.channel.partition("/")
        line = self._line(name)
        if line.is_up.is_set() and line.shows_busy:
            self._send(line.extension, ext.ChannelBusy(room or name, address.sender, is_busy, metadata, text))

    async def _work(self, address: Address) -> None:
        lane = self._lanes[address]
        try:
            while lane:
                await self._deliver(lane[0])
                lane.popleft()
        finally:
            del self._lanes[address]

    async def _deliver(self, delivery: Delivery) -> None:
        delay_s = self._delay_s
        while delivery.key in self._store.deliveries:  # missing if its sender was unpaired
            error = await self._try(delivery)
            if not error:
                await self._forget(delivery)
                return
            tries = self._store.deliveries.get(delivery.key, delivery).tries + 1
            log.warning("an answer to %s on %s was not delivered: %s", delivery.sender, delivery.channel, error)
            if tries >= TRIES:
                log.error("it is given up after %d tries; the session %s has it", tries, delivery.session)
                await self._forget(delivery)
                return
            await self._count(structs.replace(delivery, tries=tries))
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, MAX_DELAY_S)

    async def _try(self, delivery: Delivery) -> str:
        """Send an answer once the channel is connected; return the error, empty if it was sent."""
        # The process serves the whole channel; the room is part of the frame.
        name, _, room = delivery.channel.partition("/")
        line = self._line(name)
        await line.is_up.wait()  # may wait until the end of the daemon; the answer is on disk
        key = ids.new("d")
        # A new id for each try, so that a late confirmation of an earlier try is not taken for this one.
        sent = _Sent(name, asyncio.get_running_loop().create_future())
        frame = ext.ChannelSend(key, room or name, delivery.sender, _cut(delivery.text or ""), delivery.metadata)
        self._sent[key] = sent
        try:
            if not self._send(line.extension, frame):
                return "the channel's process is not connected"
            async with asyncio.timeout(SENT_S):
                return await sent.answer
        except TimeoutError:
            return f"the channel did not confirm it within {SENT_S:g} s"
        finally:
            del self._sent[key]

    async def _count(self, delivery: Delivery) -> None:
        if delivery.key in self._store.deliveries:
            self._store.deliveries[delivery.key] = delivery
            await self._save()

    async def _forget(self, delivery: Delivery) -> None:
        self._store.deliveries.pop(delivery.key, None)
        await self._save()

    async def _save(self) -> None:
        try:
            await self._store.save()
        except (
            StorageError
        ) as error:  # after a restart the answer is delivered a second time, which is better than never
            log.warning("%s", error)

    def _line(self, channel: str) -> ChannelLink:
        return self._lines.setdefault(channel, ChannelLink(""))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - len(CUT)] + CUT
