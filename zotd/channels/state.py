"""`$ZOT_HOME/channels.json`: who may write, which conversation is whose, and what still has to be delivered."""

import asyncio
from pathlib import Path

from msgspec import structs

from zotd import private_file
from zotd.channels.pairing import Address
from zotd.core.ports import StorageError
from zotd.wire.base import BadFrameError, Frozen, decode, encode

VERSION = 1

SEEN = 32
"""Message ids that are remembered of each sender. A platform's program hands over one message at a time and repeats
only the last one; other programs may be behind by a few."""


class Correspondent(Frozen, frozen=True):
    """Somebody who may write."""

    channel: str
    sender: str
    since: str
    session: str | None = None
    """The conversation; None: the next message begins one."""
    seen: tuple[str, ...] = ()
    """Keys of the newest messages, to know one that comes again."""
    may_approve: bool = False
    """Decides about calls in its conversation that need an approval."""

    @property
    def address(self) -> Address:
        """Where it is."""
        return Address(self.channel, self.sender)

    def having_seen(self, key: str) -> "Correspondent":
        """The same, with another message behind it."""
        others = tuple(one for one in self.seen if one != key)
        return structs.replace(self, seen=(*others, key)[-SEEN:])


class Delivery(Frozen, frozen=True):
    """A message that an answer is owed for. Written before its prompt is given to the session, gone when delivered."""

    key: str
    """Of the message; also the `request_id` of its prompt."""
    channel: str
    sender: str
    metadata: dict[str, object] | None = None
    """Comes back with the answer, unchanged."""
    session: str | None = None
    after: int = 0
    """The session's `seq` before the prompt: where to look for the answer after a restart."""
    input: str | None = None
    """The session's name for the prompt, once it is accepted."""
    text: str | None = None
    """The answer; None: there is none yet."""
    tries: int = 0
    """How often its delivery failed."""

    @property
    def address(self) -> Address:
        """Whom it is for."""
        return Address(self.channel, self.sender)


class _File(Frozen, frozen=True):
    v: int = VERSION
    peers: tuple[Correspondent, ...] = ()
    deliveries: tuple[Delivery, ...] = ()


class PeerStore:
    """What is known, in memory; change the mappings, then `save`. There is one of it for each file."""

    def __init__(self, path: Path) -> None:
        """Read the file, which need not exist. Blocks.

        Raises:
            StorageError: it cannot be read, or is not what this program writes.
        """
        stored = _read(path)
        self.peers: dict[Address, Correspondent] = {one.address: one for one in stored.peers}
        self.deliveries: dict[str, Delivery] = {one.key: one for one in stored.deliveries}
        """In the order in which the messages came."""
        self._path = path
        self._changes = 0
        self._saved = 0
        self._writing = asyncio.Lock()

    async def save(self) -> None:
        """Return when everything that was changed before this call is on disk; several calls share a write.

        Raises:
            StorageError: the file could not be written and is as it was; what is in memory stays.
        """
        self._changes += 1
        wanted = self._changes
        async with self._writing:  # a later state must not be replaced by an earlier one
            if self._saved >= wanted:
                return
            changes = self._changes
            content = encode(_File(VERSION, tuple(self.peers.values()), tuple(self.deliveries.values())))
            try:
                await asyncio.to_thread(private_file.write, self._path, content)
            except OSError as error:
                raise StorageError(f"{self._path} cannot be written: {error.strerror}") from error
            self._saved = changes


def _read(path: Path) -> _File:
    try:
        content = private_file.read(path)
        stored = _File() if content is None else decode(content, _File)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}") from error
    except BadFrameError as error:
        raise StorageError(f"{path} is damaged ({error}); move it away, and pair again") from error
    if stored.v > VERSION:
        raise StorageError(f"{path} was written by a newer zotd; use that one")
    return stored
