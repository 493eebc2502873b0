"""Where an extension is put together before it is one, and how it takes its place.

    extensions/.installing/<staging>/new     written and judged
    extensions.json names <staging>          from here on it is installed, whatever happens
    extensions/<name> -> <staging>/old       when there was one before
    <staging>/new -> extensions/<name>
    <staging> removed

A process that is killed before the second step has changed nothing, later ones leave what `recover` finishes. Nothing
below a name with a dot is an extension, so none of this is ever started. A staging directory is locked as long as
its process lives.
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
"""Below `extensions`, for renaming must not cross file systems."""


class InstallDirectory:
    """A directory for one installation; `discard` it in the end."""

    def __init__(self, home: Path) -> None:
        """Made inside of `installed.locked`, or another process might take it for a leftover.

        Raises:
            OSError: it cannot be made.
        """
        place = installed.extensions(home) / PLACE
        make_private_dir(str(place))
        self.path = Path(tempfile.mkdtemp(prefix="", dir=place))
        self.new = self.path / "new"
        self.old = self.path / "old"
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @property
    def name(self) -> str:
        """What `Record.staging` says."""
        return self.path.name

    def discard(self) -> None:
        """Remove it, with everything that is still in it."""
        remove_tree(self.path)
        os.close(self._lock)


def open_staging(home: Path) -> InstallDirectory:
    """A new one, after everything has been finished that was left behind. Blocks.

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
    """Put what is new in `staging` at `directory`, and what was there into `staging`; both or neither.

    Raises:
        OSError: it could not be done.
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
    """Finish or remove what processes that were killed have left behind. Blocks; for the start of the daemon.

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
    """The same, inside of `installed.locked`.

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
            continue  # somebody was done in it just now
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if staging.name in names and (staging / "new").is_dir():
                swap(installed.extensions(home) / names[staging.name], staging)
            remove_tree(staging)
        except BlockingIOError:
            pass  # somebody is at work in it
        finally:
            os.close(lock)


def remove_tree(path: Path) -> None:
    """Remove a directory with everything in it, or a link; what cannot be removed stays. Follows no link."""
    if path.is_symlink():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)
