"""Resolves paths of models, and opens and replaces files safely. All functions may block: call them in a thread."""

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

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


SECRETS = ("auth.json", "logins.json", "tokens.json", "zot.db", "zot.db-wal", "zot.db-shm")
"""Files of `$ZOT_HOME` with keys, tokens, and the transcripts of all sessions."""


def is_secret(found: os.stat_result, home: str) -> bool:
    """Return True if a file is one of `SECRETS` of this home, whatever name or link led to it. `home` may be empty."""
    for name in SECRETS if home else ():
        with suppress(OSError):
            # Compared by device and inode: a hard link or a symbolic link has another name.
            if os.path.samestat(found, Path(home, name).stat()):
                return True
    return False


def open_regular(path: Path, home: str = "") -> BinaryIO:
    """Open a regular file for reading; the caller closes it.

    Raises:
        ToolError: it is a directory, a FIFO or device (whose reading might never end), or a secret of this home.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise ToolError(f"{path} is a directory; use glob, or ls in bash, to see what is in it")
    if not stat.S_ISREG(mode):
        raise ToolError(f"{path} is not a regular file; only regular files can be read or changed")
    # O_NONBLOCK: in the meantime the name may have become a FIFO, and opening one waits for a writer.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if is_secret(os.fstat(file.fileno()), home):
        file.close()
        raise ToolError(f"{path} contains keys or transcripts of zot, which tools cannot read; work without it")
    return file


def replace_file(path: Path, data: bytes) -> bool:
    """Replace the content of `path` atomically; return True if the file existed.

    Creates parent directories. Keeps the mode and, if permitted, the owner. A symbolic link stays and its target is
    replaced. Hard links keep the old content.

    Raises:
        ToolError: the path names something other than a regular file.
        PermissionError: the file is read-only, even if its directory would permit replacing it.
    """
    target = Path(os.path.realpath(path))  # for a loop of links, `Path.resolve` raises another error than OSError
    try:
        old = target.stat()
    except FileNotFoundError:
        old = None
    if old and not stat.S_ISREG(old.st_mode):
        raise ToolError(f"{path} is not a regular file; give the path of a file")
    if old and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    # In the same directory, because a rename cannot cross file systems. A short name, because that of the target may already
    # have the maximum length.
    draft = target.with_name(f".zot-{secrets.token_hex(8)}.tmp")
    try:
        _write_new(draft, data, old)
        draft.replace(target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    return old is not None


def _write_new(path: Path, data: bytes, old: os.stat_result | None) -> None:
    """Create a file with the owner and mode of `old`; without `old`, the umask determines the mode."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as file:
        if old:
            with suppress(PermissionError):
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))  # after chown, which clears set-user-id
        file.write(data)
