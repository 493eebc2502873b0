"""Resolves paths of models, and opens and replaces files safely. All functions may block: call them in a thread.

A call that is confined is checked by what was opened, not by what was named: a command of the model may replace a directory
by a link between a check and an opening.
"""

import errno
import os
import secrets
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from zotd.core.call_jail import CallJail
from zotd.core.ports import ToolContext
from zotd.tools.shared.builtin import ToolError


def resolve(path: str, context: ToolContext) -> Path:
    """Resolve `path` relative to the session's working directory; `~` is the session's HOME.

    Raises:
        ToolError: the path is empty or contains a NUL.
    """
    if not path or "\0" in path:
        raise ToolError("the path is empty or contains a NUL; give the path of a file or directory")
    return locate(path, cwd=context.cwd, home=context.env.get("HOME"))


def locate(path: str, *, cwd: str, home: str | None) -> Path:
    """Like `resolve` without validation. Approval rules use it too, so both see the same path."""
    if home and (path == "~" or path.startswith("~/")):
        path = home + path[1:]
    return Path(cwd, path)


def shown_path(path: Path, context: ToolContext) -> str:
    """Format an absolute path for a result: relative if it is below the working directory."""
    relative = os.path.relpath(path, context.cwd)
    return str(path) if relative == ".." or relative.startswith("../") else relative


SECRETS = (
    *("auth.json", "logins.json", "mcp-logins.json", "tokens.json", "push.json"),
    *("zot.db", "zot.db-wal", "zot.db-shm"),
)
"""Files of `$ZOT_HOME` with keys, tokens, and the transcripts of all sessions."""


def is_secret(found: os.stat_result, home: str) -> bool:
    """Return True if a file is one of `SECRETS` of this home, whatever name or link led to it. `home` may be empty."""
    for name in SECRETS if home else ():
        with suppress(OSError):
            # Compared by device and inode: a hard link or a symbolic link has another name.
            if os.path.samestat(found, Path(home, name).stat()):
                return True
    return False


_NAME_ONLY = os.O_PATH if sys.platform == "linux" else os.O_RDONLY
"""Opens a directory that may be entered but not listed, too."""


def open_regular(path: Path, home: str = "", jail: CallJail | None = None) -> BinaryIO:
    """Open a regular file for reading; the caller closes it.

    Raises:
        ToolError: it is a directory, a FIFO or device (whose reading might never end), a secret of this home, or hidden
            by the jail.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise ToolError(f"{path} is a directory; use glob, or ls in bash, to see what is in it")
    if not stat.S_ISREG(mode):
        raise ToolError(f"{path} is not a regular file; only regular files can be read or changed")
    # O_NONBLOCK: in the meantime the name may have become a FIFO, and opening one waits for a writer.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    try:
        _check_opened(file.fileno(), path, home, jail)
    except BaseException:
        file.close()
        raise
    return file


def _check_opened(fd: int, path: Path, home: str, jail: CallJail | None) -> None:
    found = os.fstat(fd)
    if is_secret(found, home):
        raise ToolError(f"{path} contains keys or transcripts of zot, which tools cannot read; work without it")
    # A file without a name has no place that could be checked.
    if jail is not None and (not found.st_nlink or not jail.may_read(os.fspath(_place_of(fd)))):
        raise ToolError(f"{path} is hidden by the jail of this session; only the user can allow that it is read")


def is_hidden(path: Path, jail: CallJail | None) -> bool:
    """Return True if the jail hides what this path leads to now."""
    return jail is not None and not jail.may_read(os.path.realpath(path))


def check_root(root: Path, jail: CallJail | None) -> None:
    """Raise ToolError if the jail hides the directory that is to be searched."""
    if is_hidden(root, jail):
        raise ToolError(f"{root} is hidden by the jail of this session; only the user can allow that it is searched")


def _place_of(fd: int) -> Path:
    """Return the real path of what is open. Linux only, as jails are."""
    return Path(f"/proc/self/fd/{fd}").readlink()


def replaceable(path: Path, limit: int, jail: CallJail | None = None) -> bytes | None:
    """Return the content of a file that may be replaced; None if there is none, or if it is longer than `limit`.

    Raises what `replace_file` would raise.
    """
    target = Path(os.path.realpath(path))
    if not target.exists():
        return None
    _check_target(target, jail)
    with open_regular(target) as file:
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        data = file.read(limit + 1)
    return data if len(data) <= limit else None


def replace_file(path: Path, data: bytes, jail: CallJail | None = None) -> bool:
    """Replace the content of `path` atomically; return True if the file existed.

    Creates parent directories. Keeps the mode and, if permitted, the owner. A symbolic link stays and its target is
    replaced. Hard links keep the old content.

    Raises:
        ToolError: the path names something other than a regular file, or one that the jail does not let calls change.
        PermissionError: the file is read-only, even if its directory would permit replacing it.
    """
    target = Path(os.path.realpath(path))  # for a loop of links, `Path.resolve` raises another error than OSError
    folder = _open_folder(target, jail)
    try:
        return _replace_in(folder, target.name, data, path)
    except OSError as error:
        if error.filename is None:
            raise
        # The name in the directory, or that of the draft, would tell the model nothing.
        raise type(error)(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(folder)


def _open_folder(target: Path, jail: CallJail | None) -> int:
    """Open the directory of a file that is about to be written, and make what is missing of it."""
    fd, missing = _nearest(target.parent)
    try:
        _check_target(Path(_place_of(fd), *missing, target.name) if jail else target, jail)
        for name in missing:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=fd)
            below = os.open(name, _NAME_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            os.close(fd)
            fd = below
    except BaseException:
        os.close(fd)
        raise
    return fd


def _nearest(folder: Path) -> tuple[int, list[str]]:
    """Open a directory, or the nearest one above it that exists; with the names that are missing below that one."""
    missing: list[str] = []
    while True:
        try:
            return os.open(folder, _NAME_ONLY | os.O_DIRECTORY | os.O_CLOEXEC), missing
        except FileNotFoundError:
            missing.insert(0, folder.name)
            folder = folder.parent


def _check_target(place: Path, jail: CallJail | None) -> None:
    if jail is not None and not jail.may_write(os.fspath(place)):
        raise ToolError(f"{place} is outside of what the jail of this session lets calls change; write elsewhere")


def _replace_in(folder: int, name: str, data: bytes, path: Path) -> bool:
    """Replace the file `name` of an open directory; `path` is what errors name."""
    try:
        old = os.stat(name, dir_fd=folder)
    except FileNotFoundError:
        old = None
    if old and not stat.S_ISREG(old.st_mode):
        raise ToolError(f"{path} is not a regular file; give the path of a file")
    if old and not os.access(name, os.W_OK, dir_fd=folder):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    # In the same directory, because a rename cannot cross file systems. A short name, because that of the target may already
    # have the maximum length.
    draft = f".zot-{secrets.token_hex(8)}.tmp"
    try:
        _write_new(draft, data, old, folder=folder)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise
    return old is not None


def _write_new(name: str, data: bytes, old: os.stat_result | None, *, folder: int) -> None:
    """Create a file with the owner and mode of `old`; without `old`, the umask determines the mode."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o666, dir_fd=folder), "wb") as file:
        if old:
            with suppress(PermissionError):
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))  # after chown, which clears set-user-id
        file.write(data)
