"""`$ZOT_HOME/auth.json`: the vendors' keys, in a file that only its user can read.

    {"anthropic": {"api_key": "sk-…"}, "openai": {"api_key": "sk-…"}}

Other fields are ignored, and not kept by `save`. Whatever is loaded or saved is hidden from the log.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec

from zotd import logs, private_file
from zotd.core.ports import StorageError

OTHERS = 0o077
"""Permissions that nobody but the user may have."""


class Credential(msgspec.Struct, frozen=True):
    """What is stored for one vendor."""

    api_key: str


_FILE = msgspec.json.Decoder(dict[str, Credential])


def load(path: Path) -> Mapping[str, str]:
    """Vendor to key; empty when there is no such file.

    Raises:
        StorageError: it cannot be read, others may read it, or it is not of that form; no key is in the message.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode  # of what was opened, not of what the name means a moment later
            content = file.read()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}") from error
    if mode & OTHERS:
        raise StorageError(f"{path} holds keys and is open to other users ({stat.filemode(mode)}): chmod 600 {path}")
    try:
        stored = _FILE.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StorageError(f'{path} must look like {{"anthropic": {{"api_key": "…"}}}}: {error}') from error
    return _hidden({vendor: credential.api_key for vendor, credential in stored.items()})


def save(path: Path, keys: Mapping[str, str]) -> None:
    """Replace the file: afterwards it holds these keys, or after a crash either these or those before.

    The directory must exist.

    Raises:
        StorageError: it could not be written; the file is as it was.
    """
    content = msgspec.json.format(msgspec.json.encode({vendor: Credential(key) for vendor, key in keys.items()}))
    _hidden(keys)
    try:
        private_file.write(path, content + b"\n")
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error


def _hidden(keys: Mapping[str, str]) -> Mapping[str, str]:
    for key in keys.values():
        logs.hide(key)
    return keys
