"""Turns messages of paired senders into prompts of their session, and answers into deliveries.

    message -> the delivery is on disk -> the prompt is in the journal -> accepted -> run -> outbox

A message runs exactly once, whichever process is killed in between: the platform's program repeats messages that were not
accepted, and the session recognises the prompt's `request_id`. After a restart, `recover` looks up what became of them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, structs

from zotd import ids
from zotd.channels import commands
from zotd.channels.answers import ChannelReply
from zotd.channels.follower import ChannelSubscriber
from zotd.channels.outbox import ReplyQueue
from zotd.channels.pairing import Address
from zotd.channels.questions import OpenQuestions, sender_of, user_of
from zotd.channels.state import Correspondent, Delivery, PeerStore
from zotd.core.ports import StorageError
from zotd.paths import make_private_dir
from zotd.runs.queue import SubmitRequest
from zotd.sessions.creation import create_session
from zotd.sessions.manager import Manager, Spawn
from zotd.sessions.session import Session
from zotd.wire.api import PromptImage, SessionCreate, Started
from zotd.wire.base import BadFrameError, convert
from zotd.wire.errors import Code, CommandError

log = logging.getLogger(__name__)

MAX_WAITING = 64
"""Limit of waiting messages of one sender. Programs that wait for `channel_accepted` never have more than one."""

FIRST_DELAY_S, MAX_DELAY_S = 1.0, 60.0
"""Pauses between tries to store a message on a full disk, doubling."""

BROKEN = "An internal error occurred in zot; its log has the details."
UNREADABLE = "Only text and pictures can be read here."
HELD = "zot was restarted before it handled your last message; write again, and it continues with that one."


class Incoming(Struct, frozen=True):
    """A message from a channel."""

    address: Address
    key: str
    """Identifies the message; the same for a repetition."""
    text: str
    images: tuple[object, ...]
    metadata: dict[str, object] | None
    accepted: Callable[[], None]
    """Tells the channel that the message is stored, so that the platform may forget it."""


class Conversations:
    """The conversations of all paired senders."""

    def __init__(
        self,
        *,
        store: PeerStore,
        manager: Manager,
        outbox: ReplyQueue,
        spawn: Spawn,
        cwd: Path,
        questions: OpenQuestions,
    ) -> None:
        """Create the conversations; new sessions work in `cwd`, which is created if missing."""
        self._store, self._manager, self._outbox = store, manager, outbox
        self._spawn = spawn
        self._cwd = cwd
        self._questions = questions
        self._lanes: dict[Address, deque[Incoming]] = {}
        self._followers: dict[str, ChannelSubscriber] = {}
        """By session id."""
        self._recovered = asyncio.Event()

    def take(self, message: Incoming) -> None:
        """Handle a message of a paired sender after its earlier ones."""
        lane = self._lanes.get(message.address)
        if lane is None:
            self._lanes[message.address] = deque([message])
            self._spawn(f"messages of {message.address.sender}", self._work(message.address))
        elif len(lane) < MAX_WAITING:
            lane.append(message)
        else:
            # Not accepted, so a program that waits for that sends it again.
            log.warning("a message on %s was dropped: its sender has %d waiting", message.address.channel, MAX_WAITING)

    async def recover(self) -> None:
        """Look up the outcome of the messages that were not answered before the start. New messages wait for this."""
        try:
            owed: dict[str, list[Delivery]] = {}
            for delivery in list(self._store.deliveries.values()):
                if delivery.text is not None:
                    self._outbox.put(delivery)
                else:
                    owed.setdefault(delivery.session or "", []).append(delivery)
            for session, deliveries in owed.items():
                try:
                    await self._look_up(session, deliveries)
                except StorageError:  # tried again after the next start
                    log.exception("the answers of %s cannot be looked up", session)
        finally:
            self._recovered.set()

    def channel_up(self) -> None:
        """Send the open questions to the senders of a channel that has connected."""
        self._questions.channel_up()

    async def forget(self, address: Address) -> None:
        """Remove a sender and its undelivered answers; its session stays.

        Raises:
            StorageError: the change was not saved, so the sender is back after a restart.
        """
        self._store.peers.pop(address, None)
        for delivery in [one for one in self._store.deliveries.values() if one.address == address]:
            del self._store.deliveries[delivery.key]
        for follower in list(self._followers.values()):
            self._settle(follower.session)
        await self._store.save()

    # --- one message ----------------------------------------------------------------------------------------------

    async def _work(self, address: Address) -> None:
        lane = self._lanes[address]
        try:
            # A repeated message may belong to a delivery that is still being looked up.
            await self._recovered.wait()
            while lane:
                await self._take_patiently(lane[0])
                lane.popleft()
        finally:
            del self._lanes[address]

    async def _take_patiently(self, message: Incoming) -> None:
        """Handle a message, and try again while nothing can be stored. The platform keeps the message in the meantime."""
        delay_s = FIRST_DELAY_S
        while True:
            try:
                await self._take(message)
                return
            except StorageError as error:
                log.warning("a message on %s waits: %s", message.address.channel, error)
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, MAX_DELAY_S)

    async def _take(self, message: Incoming) -> None:
        peer = self._store.peers.get(message.address)
        # A program repeats a message if it did not receive the acceptance.
        if peer is not None and message.key not in peer.seen:
            try:
                reply = await self._carry_out(peer, message)
            except CommandError as error:
                if error.code is Code.SHUTTING_DOWN:
                    return  # not accepted, so the program sends it to the next daemon
                # Temporary, so the message is tried again like one that could not be stored.
                if error.code is Code.STORAGE_BLOCKED:
                    raise StorageError(error.sentence) from error
                reply = error.sentence
            except StorageError:
                raise
            except Exception:  # one message must not block the following ones
                log.exception("a message on %s could not be taken", message.address.channel)
                reply = BROKEN
            if reply is not None:
                await self._reply(message.address, message.key, reply, message.metadata)
        # Also for repetitions and for senders that were unpaired in the meantime: nothing is left to do.
        message.accepted()

    async def _carry_out(self, peer: Correspondent, message: Incoming) -> str | None:
        """Carry out a message; return an immediate reply, or None if the answer comes later."""
        command = commands.read(message.text) if not message.images else None
        if command is not None:
            return await self._command(peer, message, command)
        if not message.images and not message.text.strip():
            return UNREADABLE
        await self._prompt(peer, message)
        return None

    async def _prompt(self, peer: Correspondent, message: Incoming) -> None:
        images = _images(message.images)
        session = await self._session(peer)
        delivery = Delivery(
            message.key,
            message.address.channel,
            message.address.sender,
            message.metadata,
            session.id,
            after=session.ledger.row.seq,
        )
        # Saved before the prompt: after a crash in between, the journal tells whether the prompt was accepted.
        self._store.deliveries[delivery.key] = delivery
        self._see(delivery.address, delivery.key, session=session.id)
        await self._store.save()
        self._follow(session)

        def accepted(started: Started) -> None:
            self._change(delivery.key, input=started.input)
            self._outbox.busy(delivery.address, delivery.metadata, is_busy=True)

        try:
            await session.prompt(
                message.text,
                images,
                sender=sender_of(message.address),
                when_busy="queue",
                accepted=accepted,
                # The key is also the request id, so that a repeated message finds its run. If the sender may not
                # approve, no person can answer, so calls are denied at once.
                request=SubmitRequest(delivery.key, delivery.key, "park" if peer.may_approve else "deny"),
            )
        except Exception:
            self._take_back(delivery)
            self._settle(session)
            raise
        await self._store.save()

    async def _session(self, peer: Correspondent) -> Session:
        """Return the sender's session, loaded. Creates one if there is none or it was deleted."""
        session = await self._existing(peer)
        if session is None:
            await asyncio.to_thread(make_private_dir, str(self._cwd))
            about = SessionCreate(cwd=str(self._cwd.resolve()), name=sender_of(peer.address))
            session = await create_session(self._manager, about, user_of(peer.address))
        await session.load()
        return session

    async def _existing(self, peer: Correspondent) -> Session | None:
        if peer.session is None:
            return None
        try:
            return await self._manager.get(peer.session)
        except CommandError as error:
            # A session may have been deleted by a person or by the retention rules.
            if error.code is not Code.NOT_FOUND:
                raise
            return None

    # --- commands -------------------------------------------------------------------------------------------------

    async def _command(self, peer: Correspondent, message: Incoming, command: commands.ChatCommand) -> str | None:
        if command.name == "new":
            self._see(peer.address, message.key, session=None)
            return commands.NEW
        session = await self._existing(peer)
        match command.name:
            case "info":
                return commands.info(session)
            case "stop":
                return commands.stop(session)
            case "allow" | "deny" | "change" if session is not None:
                await session.load()
                return await self._questions.decide(session, peer, command)
            case "compact" if session is not None:
                # Remembered before it starts, so that a repetition does not compact twice.
                self._see(peer.address, message.key)
                await self._store.save()
                self._spawn(f"compaction of {session.id}", self._compact(session, message, command.argument))
                return None
            case "compact" | "allow" | "deny" | "change":
                return commands.NOTHING_YET
            case _:
                return commands.HELP

    async def _compact(self, session: Session, message: Incoming, instructions: str) -> None:
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        run: str | None = None

        def told(_: Session, answer: ChannelReply) -> None:
            if answer.run == run and not done.done():
                done.set_result(answer.text)

        def accepted(started: Started) -> None:
            nonlocal run
            run = started.run

        follower = ChannelSubscriber(session, told)
        try:
            await session.load()
            follower.start()
            await session.compact(instructions, accepted=accepted)
            reply = await done  # every compaction ends with a `done`, even an aborted one
        except CommandError as error:
            reply = error.sentence
        finally:
            follower.stop()
            self._manager.settle(session)
        await self._reply(message.address, ids.new("m"), reply, message.metadata)

    # --- answers --------------------------------------------------------------------------------------------------

    async def _reply(self, address: Address, key: str, text: str, metadata: dict[str, object] | None) -> None:
        """Store a text for a sender, and begin to deliver it."""
        if address not in self._store.peers:
            return
        delivery = Delivery(key, address.channel, address.sender, metadata, text=text)
        self._store.deliveries[key] = delivery
        self._see(address, key)
        await self._store.save()
        self._outbox.put(delivery)

    def _told(self, session: Session, answer: ChannelReply) -> None:
        for delivery in list(self._store.deliveries.values()):
            is_meant = delivery.session == session.id and delivery.input == answer.input
            if is_meant and delivery.input is not None and delivery.text is None:
                self._owe(delivery, answer.text)
        self._settle(session)

    def _owe(self, delivery: Delivery, text: str) -> None:
        """Deliver an answer. It is not saved first, because after a crash it is found in the journal again."""
        changed = structs.replace(delivery, text=text)
        self._store.deliveries[delivery.key] = changed
        self._outbox.busy(delivery.address, delivery.metadata, is_busy=False)
        self._outbox.put(changed)

    def _does(self, session: Session, key: str, text: str) -> None:
        for delivery in self._store.deliveries.values():
            if delivery.session == session.id and delivery.input == key and delivery.text is None:
                self._outbox.busy(delivery.address, delivery.metadata, is_busy=True, text=text)

    def _follow(self, session: Session) -> None:
        if session.id not in self._followers:
            follower = self._followers[session.id] = ChannelSubscriber(
                session, self._told, self._questions.take, self._does
            )
            follower.start()

    def _settle(self, session: Session) -> None:
        """Stop following a session if no delivery waits for it, so that it can be unloaded."""
        if not any(one.session == session.id and one.text is None for one in self._store.deliveries.values()):
            follower = self._followers.pop(session.id, None)
            if follower is not None:
                follower.stop()
                self._manager.settle(session)

    # --- after a restart ------------------------------------------------------------------------------------------

    async def _look_up(self, session_id: str, owed: list[Delivery]) -> None:
        try:
            session = await self._manager.get(session_id)
            await session.load()
        except CommandError as error:
            for delivery in owed:
                self._owe(delivery, f"There is no answer: {error.sentence}")
            return
        for delivery in owed:
            self._identify(session, delivery)
        follower = ChannelSubscriber(session, self._told, self._questions.take, self._does)
        await follower.catch_up(min(delivery.after for delivery in owed))
        self._followers[session.id] = follower  # only now, so that an earlier answer cannot end it before it has begun
        self._settle(session)
        waiting = [one for one in owed if (now := self._store.deliveries.get(one.key)) is not None and now.text is None]
        for address in {one.address: one for one in waiting}:
            await self._reply(address, ids.new("m"), HELD, waiting[-1].metadata)

    def _identify(self, session: Session, delivery: Delivery) -> None:
        """Find the prompt of a message whose acceptance was interrupted; forget the message if it was not accepted."""
        if delivery.input is not None:
            return
        first = session.ledger.transcript.requests.get(delivery.key)
        if first is None:
            self._take_back(delivery)  # the platform still has it and sends it again
        else:
            self._change(delivery.key, input=first.input)

    # --- the store ------------------------------------------------------------------------------------------------

    def _change(self, key: str, *, input: str | None) -> None:  # noqa: A002  (the field's name)
        delivery = self._store.deliveries.get(key)
        if delivery is not None:
            self._store.deliveries[key] = structs.replace(delivery, input=input)

    def _see(self, address: Address, key: str, **changes: str | None) -> None:
        """Remember the key of a message, and change fields of its sender."""
        peer = self._store.peers.get(address)
        if peer is not None:
            self._store.peers[address] = structs.replace(peer.having_seen(key), **changes)

    def _take_back(self, delivery: Delivery) -> None:
        """Forget a message, so that its repetition is handled as new."""
        self._store.deliveries.pop(delivery.key, None)
        peer = self._store.peers.get(delivery.address)
        if peer is not None:
            seen = tuple(key for key in peer.seen if key != delivery.key)
            self._store.peers[delivery.address] = structs.replace(peer, seen=seen)


def _images(found: tuple[object, ...]) -> list[PromptImage]:
    try:
        return convert(found, list[PromptImage])
    except BadFrameError as error:
        raise CommandError(Code.BAD_REQUEST, "A picture could not be read; please send it again.") from error
