"""`$ZOT_HOME/tokens.json`: who may come in through the WebSocket door (`docs/protocol.md`, The WebSocket door).

    {"tokens": {"phone": {"digest": "…", "role": "submit", "created": 1795300000, "expires": 1797892000}}}

A token is 32 random bytes, which only its owner has; here is their SHA-256, so that nobody comes in with a copy of this
file. It is read each time that somebody comes: what was revoked is gone at once, whoever changed the file. A file that
others may read or write, or that cannot be understood, admits nobody.
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
from zotd.wire.api import Role

FILE = "tokens.json"

PREFIX = "zot_"
"""What a token begins with, so that people and secret scanners know what it is."""

SECRET_BYTES = 32

MAX_TOKENS = 256
"""All of them are compared with whoever comes: 0.1 ms."""

USED_EVERY_S = 60
"""How exactly it is known when a token was used last: each time costs a file."""

_MAX_FILE_BYTES = 1024 * 1024
"""Far more than `MAX_TOKENS` take; a larger file is none of ours."""

_OTHERS = 0o077

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")

RoleName = Literal["read", "submit", "approve", "admin"]


class TakenError(Exception):
    """There is a token of that name, or no room for another; the message is one sentence."""


class Token(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored of a token; times are seconds since 1970."""

    digest: str
    """SHA-256, in hexadecimal digits, of the token as its owner sends it."""
    role: RoleName
    created: int
    sessions: tuple[str, ...] = ()
    """Ids of the only sessions that it is for; empty: all."""
    expires: int | None = None
    used: int | None = None

    @property
    def ceiling(self) -> Role:
        """The most that it gives."""
        return Role[self.role.upper()]


class _File(msgspec.Struct, frozen=True):
    tokens: dict[str, Token] = {}


def is_name(name: str) -> bool:
    """Whether a token may be called so."""
    return _NAME.fullmatch(name) is not None


class TokenStore:
    """The tokens of one home. Everything here blocks, for one small file; what changes it waits for the disk."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        """`path` need not exist: then there are none."""
        self._path = path
        self._now = now

    def problem(self) -> str:
        """Why nobody is admitted, as one sentence; empty when the file is as it should be."""
        try:
            _load(self._path)
        except StorageError as error:
            return str(error)
        return ""

    def admitted(self, given: str) -> tuple[str, Token] | None:
        """The name and the token that somebody has shown; None when it is none, has expired, or the file is not safe.

        Each stored digest is compared, each in constant time: how long it takes tells nothing.
        """
        digest = _digest(given)
        found = None
        for name, token in self._standing().items():
            if hmac.compare_digest(token.digest, digest):
                found = name, token
        return found

    def stands(self, name: str, token: Token) -> bool:
        """Whether somebody who was admitted with it would still be."""
        now = self._standing().get(name)
        return now is not None and hmac.compare_digest(now.digest, token.digest)

    def list(self) -> Mapping[str, Token]:
        """All, by name, oldest first, expired ones too. Raises StorageError when the file cannot be used."""
        return _load(self._path)

    def create(
        self, name: str, role: Role, *, sessions: Sequence[str] = (), lifetime_s: float | None = None
    ) -> tuple[str, Token]:
        """A new token: what its owner keeps, which is stored nowhere, and what is stored.

        Raises:
            TakenError: the name is taken, or there are too many.
            StorageError: the file cannot be used or not be written; it is as it was.
        """
        secret = PREFIX + base64.urlsafe_b64encode(secrets.token_bytes(SECRET_BYTES)).decode().rstrip("=")
        now = int(self._now())
        expires = None if lifetime_s is None else now + max(1, round(lifetime_s))
        word = msgspec.convert(role.name.lower(), RoleName)
        token = Token(_digest(secret), word, now, tuple(sessions), expires)

        def add(tokens: dict[str, Token]) -> None:
            if name in tokens:
                raise TakenError(f'a token "{name}" exists already; revoke it, or choose another name')
            if len(tokens) >= MAX_TOKENS:
                raise TakenError(f"there are {MAX_TOKENS} tokens already, which is the limit; revoke some")
            tokens[name] = token

        self._change(add)
        return secret, token

    def revoke(self, name: str) -> bool:
        """Forget it; False when there is none of that name. Raises StorageError like `create`."""
        if name not in _load(self._path):
            return False
        self._change(lambda tokens: tokens.pop(name, None))
        return True

    def use(self, name: str) -> None:
        """Somebody has come in with it. Raises StorageError like `create`."""
        now = int(self._now())

        def mark(tokens: dict[str, Token]) -> None:
            if name in tokens:  # it may have been revoked meanwhile
                tokens[name] = msgspec.structs.replace(tokens[name], used=now)

        token = _load(self._path).get(name)
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
    return hashlib.sha256(given.encode(errors="surrogatepass")).hexdigest()


def _load(path: Path) -> Mapping[str, Token]:
    """Raises StorageError for a file that is not safe or not understood."""
    try:
        content = _read(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StorageError(f"no token is accepted: {path} {error.strerror}") from error
    try:
        return msgspec.json.decode(content, type=_File).tokens
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        sentence = "is damaged; move it away and create new tokens"
        raise StorageError(f"no token is accepted: {path} {sentence}") from error


def _read(path: Path) -> bytes:
    """The content; raises OSError, whose `strerror` goes on behind the path."""
    # Not through a link, whose target is somebody else's choice; and a named pipe must not wait for a writer.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        what = "is a symbolic link, which is not followed" if path.is_symlink() else f"cannot be read: {error.strerror}"
        raise OSError(error.errno, what) from error
    try:
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
