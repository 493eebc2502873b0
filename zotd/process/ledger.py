"""Which children run, on disk: whoever starts next ends those of a host that was killed.

    $ZOT_HOME/run/children/WORLD.PID.START/        one directory for each host
                               └── MARK            one file for each child; empty until its pid is known

Nothing is synced: the files survive the death of their writer, and after the machine's nobody is left to be found.
"""

import logging
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from zotd.paths import make_private_dir
from zotd.process.census import Identity, identify, is_alive, world

log = logging.getLogger(__name__)

FORGET_S = 30 * 24 * 3600.0
"""Age at which the directory of another boot, container or machine is removed: from here nobody can tell whether its
host lives. A host that does makes it again."""


class _Note(msgspec.Struct, frozen=True):
    """What a file holds."""

    pid: int
    started: int
    what: str
    is_kept: bool = False
    """The next daemon may go on with it."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A child whose host is dead; it may be dead itself."""

    path: Path
    leader: Identity | None
    """The child, which leads its group; None: the host died before it could note that."""
    is_kept: bool = False
    """The next daemon may go on with it."""

    @property
    def mark(self) -> str:
        """What the child's descendants carry, if it was told to pass it on."""
        return self.path.name


class Entry:
    """One child's place in the ledger."""

    def __init__(self, path: Path, fd: int) -> None:
        """Use `Ledger.open`."""
        self._path = path
        self._fd = fd

    @property
    def mark(self) -> str:
        """Nobody else's: 64 random bits in hexadecimal."""
        return self._path.name

    def started(self, pid: int, what: str, *, is_kept: bool = False) -> None:
        """Note the child, which leads a group of its own; `what` it is, for people who look.

        `is_kept`: for the next daemon, so that other hosts that start meanwhile leave it alone.
        """
        with suppress(OSError):  # a full disk: the mark, which is the file's name, has to do
            child = identify(pid)
            if child is not None and self._fd >= 0:
                note = _Note(child.pid, child.started, os.fsencode(what).decode(errors="replace"), is_kept)
                os.write(self._fd, msgspec.json.encode(note))
        self._let_go()

    def close(self) -> None:
        """Nothing of the child is left, or what is left has been let go."""
        self._let_go()
        with suppress(OSError):
            self._path.unlink()

    def _let_go(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Ledger:
    """The ledger of one home. A child costs 60 us in all; `abandoned` blocks for longer."""

    def __init__(self, directory: Path) -> None:
        """`directory` is made when it is needed; every host of a home uses the same."""
        self.directory = directory
        pid = os.getpid()
        me = identify(pid) or Identity(pid, 0)  # without /proc nothing is found again, and nothing fails
        self._own = directory / f"{world()}.{me.pid}.{me.started}"
        self._has_failed = False

    def open(self) -> Entry:
        """An entry for a child that is about to start; where the disk takes none, that is logged, once."""
        path = self._own / secrets.token_hex(8)
        try:
            return Entry(path, self._made(path))
        except OSError as error:
            if not self._has_failed:
                log.warning(
                    "children cannot be recorded in %s and will not be ended after a crash: %s", self._own, error
                )
            self._has_failed = True
            return Entry(path, -1)

    def close(self) -> None:
        """Remove the directory of this host, unless children are left."""
        with suppress(OSError):
            self._own.rmdir()

    def abandoned(self, *, spares_kept: bool = False) -> list[Abandoned]:
        """The children of dead hosts of this home, without those that are kept if so wanted.

        Blocks; run it in a thread.
        """
        found = []
        for host in _inside(self.directory):
            if not host.name.startswith(f"{world()}."):
                _forget_if_old(host)
            elif not _lives(host):
                children = [_read(path) for path in _inside(host)]
                found += [child for child in children if not (spares_kept and child.is_kept)]
                with suppress(OSError):  # it is empty only if its host was killed between two children
                    host.rmdir()
        return found

    def take_over(self, mark: str, child: Identity, what: str) -> None:
        """Note a dead host's child as one of ours, so that `abandoned` does not find it."""
        path = self.path(mark)
        with suppress(OSError):  # as in `Entry.started`
            make_private_dir(str(self._own))
            for host in _inside(self.directory):
                with suppress(OSError):  # it is in one of them at most
                    (host / mark).rename(path)
                    host.rmdir()
            if not path.exists():
                Entry(path, self._made(path)).started(child.pid, what, is_kept=True)

    def taken_over(self, mark: str) -> Entry:
        """The entry of such a child."""
        return Entry(self.path(mark), -1)

    def path(self, mark: str) -> Path:
        """Where a child of ours is noted."""
        return self._own / mark

    def forget(self, abandoned: Abandoned) -> None:
        """Nothing of this child is left."""
        with suppress(OSError):
            abandoned.path.unlink()
        with suppress(OSError):  # others are left
            abandoned.path.parent.rmdir()

    def _made(self, path: Path) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:
            make_private_dir(str(self._own))
            return os.open(path, flags, 0o600)


def _inside(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _lives(host: Path) -> bool:
    pid, _, started = host.name.removeprefix(f"{world()}.").partition(".")
    return not (pid.isdigit() and started.isdigit()) or is_alive(Identity(int(pid), int(started)))


def _read(path: Path) -> Abandoned:
    try:
        note = msgspec.json.decode(path.read_bytes(), type=_Note)
    except (OSError, msgspec.DecodeError):  # the host died between the two steps of starting a child
        return Abandoned(path, None)
    return Abandoned(path, Identity(note.pid, note.started), note.is_kept)


def _forget_if_old(host: Path) -> None:
    with suppress(OSError):
        if time.time() - host.stat().st_mtime > FORGET_S:
            for path in _inside(host):
                path.unlink()
            host.rmdir()
