"""Prepares an extension in a staging directory and moves it into place atomically.

    extensions/.installing/<staging>/new     written and checked
    extensions.json names <staging>          from here on it counts as installed
    extensions/<name> -> <staging>/old       if one existed before
    <staging>/new -> extensions/<name>
    <staging> removed

If the process is killed before the second step, nothing has changed; after it, `recover` finishes the move. Names that
begin with a dot are never extensions, so nothing in a staging directory is ever started. A staging directory is locked as
long as its process lives.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from zotd.exthost import installed
from zotd.exthost.installed import InstallError
from zotd.paths import make_private_dir

PLACE = ".installing"
"""Directory below `extensions`, because a rename must not cross file systems."""


class InstallDirectory:
    """A directory for one installation. Call `discard` at the end."""

    def __init__(self, home: Path) -> None:
        """Create the directory. Call it within `installed.locked`, so that no other process removes it as a leftover.

        Raises:
            OSError: the directory cannot be created.
        """
        place = installed.extensions(home) / PLACE
        make_private_dir(str(place))
        self.path = Path(tempfile.mkdtemp(prefix="", dir=place))
        self.new = self.path / "new"
        self.old = self.path / "old"
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # The kernel releases the lock when the process dies, so a lock that can be taken marks a leftover.
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @property
    def name(self) -> str:
        """Its name, stored as `Record.staging`."""
        return self.path.name

    def discard(self) -> None:
        """Remove the directory with its contents and release the lock."""
        # Removed while it is still locked; otherwise another process could begin to recover it.
        remove_tree(self.path)
        os.close(self._lock)


def open_staging(home: Path) -> InstallDirectory:
    """Create a staging directory after finishing installations that were interrupted. Blocks.

    Raises:
        InstallError: the home cannot be written.
    """
    try:
        with installed.locked(home):
            recover_locked(home)
            return InstallDirectory(home)
    except OSError as error:
        raise InstallError(f"{installed.extensions(home)} cannot be written: {error.strerror}") from error


def swap(directory: Path, staging: Path) -> None:
    """Move `staging`/new to `directory` and the previous directory to `staging`/old; both or neither.

    Raises:
        OSError: a rename failed.
    """
    old = staging / "old"
    with suppress(FileNotFoundError):
        directory.rename(old)
    try:
        (staging / "new").rename(directory)
    except OSError:
        if os.path.lexists(old):
            old.rename(directory)
        raise


def recover(home: Path) -> None:
    """Finish or remove installations whose processes were killed. Blocks; called when the daemon starts.

    Raises:
        InstallError: `extensions.json` or the home cannot be used.
    """
    if not (installed.extensions(home) / PLACE).is_dir():
        return
    try:
        with installed.locked(home):
            recover_locked(home)
    except OSError as error:
        raise InstallError(f"{installed.extensions(home)} cannot be written: {error.strerror}") from error


def recover_locked(home: Path) -> None:
    """Like `recover`, for callers that hold `installed.locked`.

    Raises:
        InstallError: `extensions.json` cannot be used.
        OSError: something could not be moved.
    """
    place = installed.extensions(home) / PLACE
    left = [entry for entry in place.iterdir() if entry.is_dir() and not entry.is_symlink()] if place.is_dir() else []
    names = {record.staging: name for name, record in installed.load(home).extensions.items()} if left else {}
    for staging in left:
        try:
            lock = os.open(staging, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # its process has just finished
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The record was written, so the installation counts: finish it. Without a record, it is removed.
            if staging.name in names and (staging / "new").is_dir():
                swap(installed.extensions(home) / names[staging.name], staging)
            remove_tree(staging)
        except BlockingIOError:
            pass  # its process is still running
        finally:
            os.close(lock)


def remove_tree(path: Path) -> None:
    """Remove a directory or a link, without following links. Files that cannot be removed stay."""
    if path.is_symlink():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)
