"""The system's keyring, through the package `keyring` (the extra `[keyring]`): macOS Keychain, Secret Service, KWallet."""

import importlib
import logging
from pathlib import Path
from typing import Protocol, cast

from zotd.core.ports import StorageError

log = logging.getLogger(__name__)

MODULE = "keyring"


class Backend(Protocol):
    """What is used of a backend of `keyring`."""

    priority: float

    def get_password(self, service: str, username: str) -> str | None:
        """Return a secret."""
        ...

    def set_password(self, service: str, username: str, password: str) -> None:
        """Store a secret."""
        ...

    def delete_password(self, service: str, username: str) -> None:
        """Remove a secret; raises if there is none."""
        ...


class KeyringVault:
    """Secrets of one home in the keyring (`logins.Vault`). Blocks, for as long as the keyring asks its user to unlock it."""

    def __init__(self, backend: Backend, home: Path) -> None:
        """Each home has secrets of its own."""
        self._backend = backend
        self._service = f"zot {home}"

    def read(self, name: str) -> str | None:
        """See `logins.Vault.read`."""
        try:
            return self._backend.get_password(self._service, name)
        except Exception as error:  # each backend has errors of its own
            raise _failure("read", error) from error

    def write(self, name: str, secret: str) -> None:
        """See `logins.Vault.write`."""
        try:
            self._backend.set_password(self._service, name, secret)
        except Exception as error:
            raise _failure("written", error) from error

    def remove(self, name: str) -> None:
        """See `logins.Vault.remove`."""
        try:
            if self._backend.get_password(self._service, name) is not None:
                self._backend.delete_password(self._service, name)
        except Exception as error:
            raise _failure("changed", error) from error


def find(home: Path) -> KeyringVault | None:
    """Return the keyring of this user; None if the package is not installed or no backend works. Blocks."""
    try:
        module = importlib.import_module(MODULE)
        backend = cast("Backend", module.get_keyring())
        works = backend.priority > 0 and not type(backend).__module__.endswith((".fail", ".null"))
    except ImportError:
        return None
    except Exception as error:  # noqa: BLE001  (a backend that cannot even be asked is none)
        log.warning("the keyring is not used: %s", error)
        return None
    return KeyringVault(backend, home) if works else None


def _failure(what: str, error: Exception) -> StorageError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return StorageError(f"the system's keyring cannot be {what}: {reason}; unlock it and try again")
