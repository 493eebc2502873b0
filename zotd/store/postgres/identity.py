"""Which daemon this is, among those that share a database."""

import hashlib
import secrets
import socket
from pathlib import Path

from msgspec import Struct

from zotd import private_file
from zotd.core.ports import StorageError
from zotd.store.postgres.schema import APPLICATION

FILE = "daemon-id"
"""Name of the file in the home: a random word, made when the daemon first uses a database."""

ID_BYTES = 16

ID_DIGITS = 32


class DaemonIdentity(Struct, frozen=True):
    """A home on a machine. Only one daemon uses a home at a time, so a new one with the same identity replaces the old one."""

    home: str
    """Is that of no other daemon: the machine and the content of `FILE`, because homes are copied with machines."""
    name: str
    """For people: the machine, and the directory of the home."""
    application: str
    """Names its connections for the server, and for other daemons that end them when its lease has expired."""


def identity_of(home: Path) -> DaemonIdentity:
    """Return the identity of the daemon with this home; raises StorageError if it cannot be read or stored."""
    machine, file = socket.gethostname(), home / FILE
    try:
        content = private_file.read(file)
        if not content:
            content = secrets.token_hex(ID_BYTES).encode() + b"\n"
            private_file.write(file, content)
        word = content.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise StorageError(f"the journal cannot be opened: {file} cannot be used: {reason}") from error
    identity = f"{machine}/{word}"
    # Not the word alone: a home that was copied to another machine has the same. The server keeps 63 bytes of a name.
    digest = hashlib.sha256(identity.encode()).hexdigest()[:ID_DIGITS]
    return DaemonIdentity(identity, f"{machine}:{home}", f"{APPLICATION} {digest}")
