"""A backend of the package `keyring` for tests: a JSON file that `ZOT_TEST_KEYRING` names.

Chosen by `PYTHON_KEYRING_BACKEND=zotd.testing.file_keyring.FileKeyring`.
"""

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError

VARIABLE = "ZOT_TEST_KEYRING"


class FileKeyring(KeyringBackend):
    """Secrets in a file; locked if the file's name ends in `.locked`."""

    priority = 1.0

    def get_password(self, service: str, username: str) -> str | None:
        """Return a secret."""
        return self._read().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        """Store a secret."""
        self._write({**self._read(), f"{service}/{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        """Remove a secret."""
        found = self._read()
        if found.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError("there is none")
        self._write(found)

    def _read(self) -> dict[str, str]:
        path = Path(os.environ[VARIABLE])
        if path.suffix == ".locked":
            raise KeyringLocked("the keyring is locked")
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def _write(self, found: dict[str, str]) -> None:
        Path(os.environ[VARIABLE]).write_text(json.dumps(found), encoding="utf-8")
