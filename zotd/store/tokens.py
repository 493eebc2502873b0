"""`$ZOT_HOME/tokens.json`: access tokens for the WebSocket door (`docs/protocol.md`, The WebSocket door).

    {"tokens": {"phone": {"digest": "…", "role": "submit", "created": 1795300000, "expires": 1797892000}}}

A token is 32 random bytes, known only to its owner. The file contains its SHA-256, so that a copy of the file grants no
access. The file is read for every new connection, so a revocation takes effect at once, whichever process made it. A
file that other users may read or write, or that cannot be decoded, admits no client.
"""

import base64
import hashlib
import hmac
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from zotd import private_file
from zotd.core.ports import StorageError
from zotd.decodable import decodable
from zotd.wire.api import Role

FILE = "tokens.json"

PREFIX = "zot_"
"""Prefix of every token, by which people and secret scanners recognise it."""

SECRET_BYTES = 32

MAX_TOKENS = 256
"""Limit, because each connection is compared with all of them, which takes 0.1 ms."""

USED_EVERY_S = 60
"""Resolution of the time of last use: each update rewrites the file."""

_MAX_FILE_BYTES = 1024 * 1024
"""Far more than `MAX_TOKENS` take; a larger file was not written by zotd."""

_OTHERS = 0o077

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")

RoleName = Literal["read", "submit", "approve", "admin"]


class TakenError(Exception):
    """The name is in use, or `MAX_TOKENS` is reached; the message is one sentence."""


class Token(msgspec.Struct, frozen=True, omit_defaults=True):
    """The stored form of a token; times are seconds since 1970."""

    digest: str
    """SHA-256, in hexadecimal digits, of the token as its owner sends it."""
    role: RoleName
    created: int
    sessions: tuple[str, ...] = ()
    """Ids of the sessions it is limited to; empty: all sessions."""
    expires: int | None = None
    used: int | None = None
    user: str = ""
    """The user that sessions begun with this token belong to; empty: none."""

    @property
    def ceiling(self) -> Role:
        """The highest role that it grants."""
        return Role[self.role.upper()]


class _File(msgspec.Struct, frozen=True):
    tokens: dict[str, Token] = {}


def is_name(name: str) -> bool:
    """Whether this is a valid name for a token."""
    return _NAME.fullmatch(name) is not None


class TokenStore:
    """The tokens of one home. All methods block for reading one small file; changes also wait for the disk."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        """`path` may be missing, which means that there are no tokens."""
        self._path = path
        self._now = now

    def problem(self) -> str:
        """Return why no token is accepted, as one sentence; empty if the file is in order."""
        try:
            _load(self._path)
        except StorageError as error:
            return str(error)
        return ""

    def admitted(self, given: str) -> tuple[str, Token] | None:
        """Return the name and data of a presented token; None if it is unknown or expired, or the file is unsafe.

        All stored digests are compared, each in constant time, so that the duration reveals nothing.
        """
        digest = _digest(given)
        found = None
        # No early exit, so that the duration does not depend on which token matches.
        for name, token in self._standing().items():
            if hmac.compare_digest(token.digest, digest):
                found = name, token
        return found

    def stands(self, name: str, token: Token) -> bool:
        """Whether a client that was admitted with this token would still be admitted."""
        now = self._standing().get(name)
        return now is not None and hmac.compare_digest(now.digest, token.digest)

    def list(self) -> Mapping[str, Token]:
        """Return all tokens by name, oldest first, also expired ones. Raises StorageError if the file is unusable."""
        return _load(self._path)

    def create(
        self, name: str, role: Role, *, sessions: Sequence[str] = (), lifetime_s: float | None = None, user: str = ""
    ) -> tuple[str, Token]:
        """Create a token; return the secret, which is not stored, and the stored form.

        Raises:
            TakenError: the name is in use, or there are too many tokens.
            StorageError: the file cannot be read or written, and is unchanged.
        """
        secret = PREFIX + base64.urlsafe_b64encode(secrets.token_bytes(SECRET_BYTES)).decode().rstrip("=")
        now = int(self._now())
        # At least a second: times are stored as whole seconds, and a shorter lifetime would expire at once.
        expires = None if lifetime_s is None else now + max(1, round(lifetime_s))
        word = msgspec.convert(role.name.lower(), RoleName)
        token = Token(_digest(secret), word, now, tuple(sessions), expires, user=user)

        def add(tokens: dict[str, Token]) -> None:
            if name in tokens:
                raise TakenError(f'a token "{name}" exists already; revoke it, or choose another name')
            if len(tokens) >= MAX_TOKENS:
                raise TakenError(f"there are {MAX_TOKENS} tokens already, which is the limit; revoke some")
            tokens[name] = token

        self._change(add)
        return secret, token

    def revoke(self, name: str) -> bool:
        """Remove a token; return False if there is none of that name. Raises StorageError like `create`."""
        if name not in _load(self._path):
            return False
        self._change(lambda tokens: tokens.pop(name, None))
        return True

    def use(self, name: str) -> None:
        """Record that a client was admitted with this token. Raises StorageError like `create`."""
        now = int(self._now())

        def mark(tokens: dict[str, Token]) -> None:
            if name in tokens:  # it may have been revoked meanwhile
                tokens[name] = msgspec.structs.replace(tokens[name], used=now)

        token = _load(self._path).get(name)
        # Checked before the lock is taken: nearly all connections then only read the file.
        if token is not None and now - (token.used or 0) >= USED_EVERY_S:
            self._change(mark)

    def _standing(self) -> Mapping[str, Token]:
        try:
            tokens = _load(self._path)
        except StorageError:
            return {}
        now = self._now()
        return {name: token for name, token in tokens.items() if token.expires is None or now < token.expires}

    def _change(self, change: Callable[[dict[str, Token]], object]) -> None:
        try:
            with private_file.locked(self._path):
                tokens = dict(_load(self._path))
                change(tokens)
                content = msgspec.json.format(msgspec.json.encode(_File(tokens))) + b"\n"
                private_file.write(self._path, content)
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror}") from error


def _digest(given: str) -> str:
    # A plain hash is enough: unlike a password, 32 random bytes cannot be guessed. Clients may send lone surrogates.
    return hashlib.sha256(given.encode(errors="surrogatepass")).hexdigest()


def _load(path: Path) -> Mapping[str, Token]:
    """Read the file; raises StorageError if it is unsafe or cannot be decoded."""
    try:
        content = _read(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StorageError(f"no token is accepted: {path} {error.strerror}") from error
    try:
        return msgspec.json.decode(content, type=decodable(_File)).tokens
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        sentence = "is damaged; move it away and create new tokens"
        raise StorageError(f"no token is accepted: {path} {sentence}") from error


def _read(path: Path) -> bytes:
    """Return the content; raises OSError with a `strerror` that continues a sentence after the path."""
    # Links are not followed: another user may have chosen the target. NONBLOCK: a named pipe must not block the open.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        what = "is a symbolic link, which is not followed" if path.is_symlink() else f"cannot be read: {error.strerror}"
        raise OSError(error.errno, what) from error
    try:
        # Check the open descriptor and not the path, which may point to another file by then.
        if reason := _why_not(os.fstat(descriptor)):
            raise PermissionError(0, reason)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(_MAX_FILE_BYTES)
    finally:
        os.close(descriptor)


def _why_not(found: os.stat_result) -> str:
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    if found.st_uid != os.geteuid():
        return f"belongs to another user (uid {found.st_uid}), who could add tokens; move it away"
    if found.st_mode & _OTHERS:
        return f"is open to other users ({stat.filemode(found.st_mode)}): revoke its tokens and chmod 600 it"
    return "is larger than any token file of zotd" if found.st_size > _MAX_FILE_BYTES else ""
