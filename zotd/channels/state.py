"""`$ZOT_HOME/channels.json`: paired senders, their sessions, and undelivered answers."""

import asyncio
from pathlib import Path

from msgspec import structs

from zotd import private_file
from zotd.channels.pairing import Address
from zotd.core.ports import StorageError
from zotd.wire.base import BadFrameError, Frozen, decode, encode

VERSION = 1

SEEN = 32
"""Number of remembered message ids of each sender. A platform's program hands over one message at a time and repeats only
the last one; other programs may repeat a few more."""


class Correspondent(Frozen, frozen=True):
    """A paired sender."""

    channel: str
    sender: str
    since: str
    session: str | None = None
    """The current session; None: the next message begins one."""
    seen: tuple[str, ...] = ()
    """Keys of the newest messages, to recognise repetitions."""
    may_approve: bool = False
    """May decide about calls in its conversation that need an approval."""

    @property
    def address(self) -> Address:
        """The address of the sender."""
        return Address(self.channel, self.sender)

    def having_seen(self, key: str) -> "Correspondent":
        """Return a copy that remembers another message."""
        others = tuple(one for one in self.seen if one != key)
        return structs.replace(self, seen=(*others, key)[-SEEN:])


class Delivery(Frozen, frozen=True):
    """An unanswered message. Saved before its prompt is sent to the session, removed when the answer is delivered."""

    key: str
    """Key of the message, also the `request_id` of its prompt."""
    channel: str
    sender: str
    metadata: dict[str, object] | None = None
    """Returned unchanged with the answer."""
    session: str | None = None
    after: int = 0
    """The session's `seq` before the prompt, where the search for the answer begins after a restart."""
    input: str | None = None
    """Id of the input, once the prompt is accepted."""
    text: str | None = None
    """The answer; None while there is none."""
    tries: int = 0
    """Number of failed deliveries."""

    @property
    def address(self) -> Address:
        """The address of the recipient."""
        return Address(self.channel, self.sender)


class _File(Frozen, frozen=True):
    v: int = VERSION
    peers: tuple[Correspondent, ...] = ()
    deliveries: tuple[Delivery, ...] = ()


class PeerStore:
    """The contents of the file in memory: change the mappings, then `save`. Use one instance for each file."""

    def __init__(self, path: Path) -> None:
        """Read the file, which need not exist. Blocks.

        Raises:
            StorageError: the file is unreadable, damaged, or of a newer version.
        """
        stored = _read(path)
        self.peers: dict[Address, Correspondent] = {one.address: one for one in stored.peers}
        self.deliveries: dict[str, Delivery] = {one.key: one for one in stored.deliveries}
        """Deliveries by key, in the order of the messages."""
        self._path = path
        self._changes = 0
        self._saved = 0
        self._writing = asyncio.Lock()

    async def save(self) -> None:
        """Return when all changes made before this call are on disk. Concurrent calls share a write.

        Raises:
            StorageError: the file could not be written and is unchanged; the state in memory stays.
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
    # A newer file may have fields that the next save would drop.
    if stored.v > VERSION:
        raise StorageError(f"{path} was written by a newer zotd; use that one")
    return stored
