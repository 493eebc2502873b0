"""Copies files that git ignores, such as `.env`, into a new worktree: those that match a pattern.

The patterns are lines of `.worktreeinclude` at the root of the main worktree, and the setting `worktree.include`. git
reads them as it reads `.gitignore`. Tracked files are in the worktree anyway, and untracked ones that git does not ignore
are work in progress, which stays where it is.
"""

import fcntl
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from tempfile import NamedTemporaryFile

from zotctl.worktree.git_command import GitError, git
from zotd.client.errors import ClientError

FILE = ".worktreeinclude"
"""File of patterns, at the root of the main worktree."""

FILE_BYTES = 64 * 1024
"""Most bytes of that file."""

MAX_FILES = 200_000
"""Most files that are copied: about ten times as many as a large `node_modules` has."""

TOLD_EVERY = 1000
"""Number of copied files after which the progress is told."""

CLONE = 0x40049409
"""`FICLONE` of Linux: the copy shares the blocks of the file until one of them is written."""


def include(main: str, path: str, patterns: Sequence[str], tell: Callable[[str], None]) -> int:
    """Copy the ignored files that match from `main` to the worktree at `path`; return their number.

    Existing files are kept, and nothing is written through a symbolic link that leads out of the worktree. `tell` gets
    a line of progress now and then.

    Raises:
        ClientError: a file cannot be read or written, or more than `MAX_FILES` match; what was copied stays.
    """
    lines = [*_lines(os.path.join(main, FILE)), *patterns]
    if not lines:
        return 0
    names = list(_matching(main, lines))
    if len(names) > MAX_FILES:
        raise ClientError(f"{len(names)} files match {FILE}, more than {MAX_FILES}; narrow its patterns")
    copied = 0
    for name in names:
        copied += _copied(os.path.join(main, name), os.path.join(path, name), path)
        if copied and copied % TOLD_EVERY == 0:
            tell(f"copied {copied} of {len(names)} ignored files")
    return copied


def _lines(path: str) -> list[str]:
    """Return the patterns of a file; none if it is missing."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            content = file.read(FILE_BYTES + 1)
    except (FileNotFoundError, IsADirectoryError):
        return []
    except OSError as error:
        raise ClientError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > FILE_BYTES:
        raise ClientError(f"{path} has more than {FILE_BYTES >> 10} KiB")
    return [line for line in content.splitlines() if line.strip() and not line.startswith("#")]


def _matching(main: str, patterns: Sequence[str]) -> Iterator[str]:
    """Yield the ignored files that match, relative to `main`."""
    with NamedTemporaryFile("w", encoding="utf-8", errors="surrogateescape") as file:
        file.write("".join(f"{pattern}\n" for pattern in patterns))
        file.flush()
        found = git(main, "ls-files", "-z", "--others", "--ignored", f"--exclude-from={file.name}")
    if not found:
        return
    try:
        ignored = git(main, "check-ignore", "-z", "--stdin", piped=found)
    except GitError:  # it exits with 1 if none is ignored
        return
    yield from ignored.split("\0")[:-1]


def _copied(source: str, target: str, root: str) -> bool:
    """Copy a file or a symbolic link, unless there is something already; return whether it was copied."""
    folder = os.path.dirname(target)
    try:
        mode = os.lstat(source).st_mode
        if os.path.lexists(target) or not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) or not _is_within(folder, root):
            return False
        os.makedirs(folder, exist_ok=True)
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink(source), target)
        else:
            _copy(source, target)
    except FileNotFoundError:  # removed meanwhile
        return False
    except OSError as error:
        raise ClientError(f"{source} cannot be copied to {target}: {error.strerror}") from error
    return True


def _copy(source: str, target: str) -> None:
    """Copy a file with its permissions and times, or share its blocks where the file system can do that."""
    try:
        with open(source, "rb") as original, open(target, "xb") as copy:
            if not _cloned(original.fileno(), copy.fileno()):
                shutil.copyfileobj(original, copy, 1 << 20)
        shutil.copystat(source, target)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(target):  # half a file would be taken for a whole one
            os.unlink(target)
        raise


def _cloned(source: int, target: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        fcntl.ioctl(target, CLONE, source)
    except OSError:
        return False
    return True


def _is_within(folder: str, root: str) -> bool:
    real = os.path.realpath(folder)
    return real == root or real.startswith(root + os.sep)
