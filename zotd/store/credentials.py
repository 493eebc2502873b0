"""`$ZOT_HOME/auth.json`: API keys of vendors, in a file that only its owner can read.

    {"anthropic": {"api_key": "sk-…"}, "openai": {"api_key": "sk-…"}}

Other fields are ignored; `change` keeps them, `save` does not. Loaded and saved keys are masked in the log.
"""

import errno
import os
import resource
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec

from zotd import logs, private_file
from zotd.core.ports import StorageError

OTHERS = 0o077
"""Permission bits that must not be set: group and others."""


class Credential(msgspec.Struct, frozen=True):
    """The entry of one vendor."""

    api_key: str


_FILE = msgspec.json.Decoder(dict[str, Credential])

_WHOLE = msgspec.json.Decoder(dict[str, dict[str, msgspec.Raw]])
"""Decodes unknown fields as well, unchanged, so that `change` can write them back."""


def load(path: Path) -> Mapping[str, str]:
    """Return a mapping of vendor to key; empty if the file does not exist.

    Raises:
        StorageError: the file cannot be read, is readable by others, or is malformed. The message contains no key.
    """
    return _keys(path, secret_content(path))


def save(path: Path, keys: Mapping[str, str]) -> None:
    """Replace the file atomically: after a crash it contains the old or the new keys. The directory must exist.

    Raises:
        StorageError: the file could not be written and is unchanged.
    """
    _hidden(keys)
    _write(path, {vendor: Credential(key) for vendor, key in keys.items()})


def change(path: Path, vendor: str, key: str | None) -> bool:
    """Store the vendor's key, or remove it if `key` is None; keep everything else. Blocks for file operations.

    Returns False if there was no key to remove; the file is then unchanged. The directory must exist.

    Raises:
        StorageError: the file cannot be read (see `load`) or written, and is unchanged.
    """
    try:
        with private_file.locked(path):
            content = secret_content(path)
            if vendor not in _keys(path, content) and key is None:
                return False
            stored = _WHOLE.decode(content)
            if key is None:
                del stored[vendor]
            else:
                _hidden({vendor: key})
                stored[vendor] = {**stored.get(vendor, {}), "api_key": msgspec.Raw(msgspec.json.encode(key))}
            _write(path, stored)
    except OSError as error:
        raise StorageError(f"{path} cannot be locked: {error.strerror}") from error
    return True


def secret_content(path: Path) -> bytes:
    """Return the content of a file with secrets, or that of an empty one (`{}`) if it does not exist.

    Raises:
        StorageError: it cannot be read, is no regular file, or is open to other users.
    """
    try:
        with open(path, "rb", opener=_opened) as file:
            mode = os.fstat(file.fileno()).st_mode  # of the open file: the name may refer to another one by now
            if not stat.S_ISREG(mode):
                raise StorageError(f"{path} is not a regular file; put the keys into one")
            content = file.read()
    except FileNotFoundError:
        return b"{}"
    except OSError as error:
        if error.errno == errno.EMFILE:
            # The file is fine, so the message must not send the user to look at it.
            limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            raise StorageError(
                f"zotd has reached its limit of {limit} open files, so the keys cannot be read: close clients, or raise the "
                f"limit (`ulimit -n`, LimitNOFILE= of the service) and `zotctl restart`"
            ) from error
        raise StorageError(f"{path} cannot be read: {error.strerror}") from error
    if mode & OTHERS:
        raise StorageError(f"{path} holds keys and is open to other users ({stat.filemode(mode)}): chmod 600 {path}")
    return content


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # opening a named pipe would block the event loop until it has a writer


def _keys(path: Path, content: bytes) -> Mapping[str, str]:
    try:
        stored = _FILE.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StorageError(f'{path} must look like {{"anthropic": {{"api_key": "…"}}}}: {error}') from error
    return _hidden({vendor: credential.api_key for vendor, credential in stored.items()})


def _write(path: Path, stored: Mapping[str, object]) -> None:
    content = msgspec.json.format(msgspec.json.encode(stored)) + b"\n"
    try:
        private_file.write(Path(os.path.realpath(path)), content)  # `realpath` keeps a symbolic link in place
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error


def _hidden(keys: Mapping[str, str]) -> Mapping[str, str]:
    for key in keys.values():
        logs.hide(key)
    return keys
