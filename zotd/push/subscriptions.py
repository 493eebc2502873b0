"""`$ZOT_HOME/push.json`: the browsers that push messages are sent to, and the key that signs the requests.

A browser subscribes with the daemon's public key, so a new key would make all subscriptions useless: the key is made
once and kept. The file is read when the daemon starts and written by it alone.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from zotd import private_file
from zotd.core.ports import StorageError
from zotd.decodable import decodable

FILE = "push.json"

MAX_SUBSCRIPTIONS = 32
"""Maximum number of browsers: each gets every message."""


class Subscription(msgspec.Struct, frozen=True, omit_defaults=True):
    """A browser."""

    id: str
    endpoint: str
    """URL at its push service; whoever knows it can send messages only with the key below."""
    public: str
    """Its public key, base64url."""
    auth: str
    """Its secret, base64url."""
    name: str
    """How it describes itself, for people."""
    created: int
    """Seconds since 1970."""
    token: str = ""
    """Name of the access token with which it has subscribed; empty: none was needed."""
    digest: str = ""
    """Digest of that token: another one may get the same name."""


class _File(msgspec.Struct, frozen=True):
    key: str = ""
    subscriptions: tuple[Subscription, ...] = ()


class TooManyError(Exception):
    """There are `MAX_SUBSCRIPTIONS` already; the message is one sentence."""


class SubscriptionStore:
    """The subscriptions of one home. Changes block for writing a small file."""

    def __init__(self, path: Path) -> None:
        """Read the file, which may be missing.

        Raises:
            StorageError: it cannot be read or decoded.
        """
        self._path = path
        self._content = _read(path)

    @property
    def all(self) -> Sequence[Subscription]:
        """All subscriptions, oldest first."""
        return self._content.subscriptions

    @property
    def key(self) -> str:
        """The private key in its stored form; empty if none was made."""
        return self._content.key

    def keep_key(self, key: str) -> None:
        """Store the key. Raises StorageError."""
        self._write(msgspec.structs.replace(self._content, key=key))

    def add(self, added: Subscription) -> Subscription:
        """Add a subscription, or replace the one with the same endpoint, whose id it gets; return the stored one.

        Raises:
            TooManyError: there is no room.
            StorageError: the file cannot be written.
        """
        known = next((one for one in self.all if one.endpoint == added.endpoint), None)
        kept = tuple(one for one in self.all if one is not known)
        if len(kept) >= MAX_SUBSCRIPTIONS:
            raise TooManyError(f"{MAX_SUBSCRIPTIONS} browsers have subscribed, which is the limit; remove some")
        stored = added if known is None else msgspec.structs.replace(added, id=known.id)
        self._write(msgspec.structs.replace(self._content, subscriptions=(*kept, stored)))
        return stored

    def remove(self, removed: str) -> bool:
        """Remove the subscription with this id or endpoint; return False if there is none. Raises StorageError."""
        kept = tuple(one for one in self.all if removed not in {one.id, one.endpoint})
        if len(kept) == len(self.all):
            return False
        self._write(msgspec.structs.replace(self._content, subscriptions=kept))
        return True

    def _write(self, content: _File) -> None:
        try:
            private_file.write(self._path, msgspec.json.format(msgspec.json.encode(content)) + b"\n")
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror}") from error
        self._content = content


def _read(path: Path) -> _File:
    try:
        content = private_file.read(path)
    except OSError as error:
        raise StorageError(f"no push messages are sent: {path} cannot be read: {error.strerror}") from error
    if content is None:
        return _File()
    try:
        return msgspec.json.decode(content, type=decodable(_File))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StorageError(f"no push messages are sent: {path} is damaged; move it away and subscribe again") from error
