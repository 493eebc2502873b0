"""`$ZOT_HOME/logins.json`: what vendors have granted to this program when its user logged in.

    {"copilot": {"account": "octocat", "place": "file", "tokens": {"access_token": "…", "refresh_token": "…"}}}

With a keyring the tokens are there, and the file only says so (`"place": "keyring"`). Tokens are masked in the log. All
functions block. One process changes the file at a time; one process renews the tokens of a vendor at a time.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from zotd import logs, private_file
from zotd.core.ports import StorageError
from zotd.oauth.protocol import TokenSet
from zotd.store import credentials

FILE = "logins.json"

RENEWING_S = 75.0
"""Longest wait for another process that renews the same tokens: its lock, two requests and a keyring."""

LOCK_POLL_S = 0.02
"""Pause between two attempts to get a lock; a thread that waits in the kernel could not give up."""

RESERVED_BYTES = 64 * 1024
"""Space that is taken before tokens are renewed, so that the new ones find room on a full disk."""

FILE_PLACE = "file"
KEYRING_PLACE = "keyring"


class VendorLogin(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A login to one vendor."""

    account: str = ""
    """The user's name there, for display; empty: unknown."""
    account_id: str = ""
    """What requests name it with, if the vendor wants that."""
    place: str = FILE_PLACE
    """Where the tokens are."""
    logged_in_at: float = 0.0
    tokens: TokenSet = TokenSet("")
    """What the authorization server has granted."""
    key: TokenSet | None = None
    """The token for requests, if the vendor has it exchanged for the granted one."""
    key_url: str = ""
    """Base URL that came with `key`."""
    ended: str = ""
    """Why the vendor no longer accepts this login; empty: it does."""

    @property
    def current(self) -> TokenSet:
        """The token for requests."""
        return self.key or self.tokens

    @property
    def secrets(self) -> list[str]:
        """All that must not appear in a log."""
        found = [self.tokens.access_token, self.tokens.refresh_token, self.tokens.id_token]
        return [one for one in (*found, self.key.access_token if self.key else "") if one]


class Vault(Protocol):
    """A place for secrets outside of files, such as the system's keyring. Blocks; raises StorageError."""

    def read(self, name: str) -> str | None:
        """Return the secret; None if there is none."""
        ...

    def write(self, name: str, secret: str) -> None:
        """Store the secret."""
        ...

    def remove(self, name: str) -> None:
        """Remove the secret, if there is one."""
        ...


_FILE = msgspec.json.Decoder(dict[str, VendorLogin])


class LoginStore:
    """The logins of one home."""

    def __init__(self, home: Path, vault: Callable[[], Vault | None], *, prefers_vault: Callable[[], bool]) -> None:
        """`vault` finds the place for secrets that there is; `prefers_vault`: whether to store new tokens there."""
        self._path = home / FILE
        self._vault = vault
        self._prefers_vault = prefers_vault

    @property
    def stamp(self) -> tuple[int, int] | None:
        """What changes when the file does; None: there is none. Takes microseconds."""
        return private_file.stamp(self._path)

    def listed(self) -> Mapping[str, VendorLogin]:
        """Return the logins by vendor; those in a keyring without their tokens.

        Raises:
            StorageError: the file cannot be read, is readable by others, or is malformed.
        """
        found = self._read()
        for login in found.values():
            for secret in login.secrets:
                logs.hide(secret)
        return found

    def read(self, vendor: str) -> VendorLogin | None:
        """Return a login with its tokens; None if there is none. Raises StorageError."""
        login = self.listed().get(vendor)
        if login is None or login.place == FILE_PLACE:
            return login
        vault = self._vault()
        if vault is None:
            raise StorageError(
                f"the tokens for {vendor} are in the system's keyring, which cannot be used here: "
                f"unlock it, install zotd[keyring], or run: zotctl login {vendor}"
            )
        secret = vault.read(vendor)
        if secret is None:
            return None
        try:
            login = msgspec.json.decode(secret, type=VendorLogin)
        except msgspec.MsgspecError as error:
            raise StorageError(f"what the keyring has for {vendor} is no login; run: zotctl login {vendor}") from error
        for one in login.secrets:
            logs.hide(one)
        return login

    def write(self, vendor: str, login: VendorLogin) -> None:
        """Store a login, durably. Raises StorageError: the former one is unchanged."""
        with self.reserved() as draft:
            draft.write(vendor, login)

    def remove(self, vendor: str) -> bool:
        """Remove a login; False if there was none. Raises StorageError."""
        with self.locked():
            found = dict(self._read())
            login = found.pop(vendor, None)
            if login is None:
                return False
            with _named_errors(self._path):
                private_file.write(self._path, _encoded(found))
        vault = self._vault() if login.place == KEYRING_PLACE else None
        if vault is not None:
            vault.remove(vendor)
        return True

    @contextmanager
    def renewing(self, vendor: str) -> Iterator[None]:
        """Be the only one of all processes and threads that renews this vendor's tokens.

        Raises:
            StorageError: the lock cannot be had, or not within `RENEWING_S`.
        """
        path = self._path.with_name(f"{self._path.name}.{vendor}.lock")
        with _named_errors(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, private_file.MODE)
        try:
            _wait_for(descriptor, vendor)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def reserved(self) -> Iterator["LoginDraft"]:
        """Make sure that a login can be stored, before tokens are renewed that would be lost otherwise.

        Raises:
            StorageError: it cannot.
        """
        draft: LoginDraft | None = None
        try:
            with _named_errors(self._path):
                draft = LoginDraft(self, self._path)
            yield draft
        finally:
            if draft is not None:
                draft.close()

    def merged(self, vendor: str, login: VendorLogin) -> bytes:
        """Return the file with this login in it; its tokens are put into the vault if there is one. Call it locked."""
        vault = self._vault() if self._prefers_vault() else None
        if vault is not None:
            # The keyring first: after a crash in between, the file leads to tokens that are newer than it says.
            vault.write(vendor, msgspec.json.encode(login).decode())
            login = msgspec.structs.replace(
                login,
                place=KEYRING_PLACE,
                tokens=TokenSet("", obtained_at=login.tokens.obtained_at, expires_at=login.current.expires_at),
                key=None,
            )
        return _encoded({**self._read(), vendor: login})

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only one that changes the file. Raises StorageError."""
        with _named_errors(self._path), private_file.locked(self._path):
            yield

    def _read(self) -> Mapping[str, VendorLogin]:
        content = credentials.secret_content(self._path)
        try:
            return _FILE.decode(content)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise StorageError(f"{self._path} is damaged ({error}); delete it and log in again") from error


class LoginDraft:
    """A file that will replace the logins, with space reserved on the disk."""

    def __init__(self, store: LoginStore, path: Path) -> None:
        """Raises OSError: there is no space, or the directory cannot be written."""
        self._store = store
        self._path = path
        self._descriptor, self._name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
        try:
            os.write(self._descriptor, bytes(RESERVED_BYTES))
            os.fsync(self._descriptor)
        except OSError:
            self.close()
            raise

    def write(self, vendor: str, login: VendorLogin) -> None:
        """Replace the file: afterwards, and after a crash, it has this login or what it had before.

        Raises:
            StorageError: it could not be written.
        """
        for secret in login.secrets:
            logs.hide(secret)
        with self._store.locked(), _named_errors(self._path):
            content = self._store.merged(vendor, login)
            os.pwrite(self._descriptor, content, 0)
            os.ftruncate(self._descriptor, len(content))
            os.fsync(self._descriptor)
            Path(self._name).replace(self._path)
            _sync_directory(self._path.parent)

    def close(self) -> None:
        """Give up the space if the file was not written."""
        os.close(self._descriptor)
        with suppress(FileNotFoundError):
            Path(self._name).unlink()


def _sync_directory(path: Path) -> None:
    """Make a rename durable: without it, the file of before could be back after a power cut, with tokens that were used."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _encoded(found: Mapping[str, VendorLogin]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(found)) + b"\n"


def _wait_for(descriptor: int, vendor: str) -> None:
    ends_at = time.monotonic() + RENEWING_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > ends_at:
                sentence = f"another process has been renewing the tokens for {vendor} for {RENEWING_S:.0f} s; end it"
                raise StorageError(sentence) from None
            time.sleep(LOCK_POLL_S)
        else:
            return


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error
