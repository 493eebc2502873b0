"""Paths as a model writes them, and files opened and replaced with care. All of it may block: use a thread."""

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
    """`path` from the session's working directory, absolute; `~` is the session's HOME.

    Raises:
        ToolError: no path at all, or one with a NUL.
    """
    if not path or "\0" in path:
        raise ToolError("the path is empty or contains a NUL; give the path of a file or directory")
    return locate(path, cwd=context.cwd, home=context.env.get("HOME"))


def locate(path: str, *, cwd: str, home: str | None) -> Path:
    """The same without a look at `path`; rules about paths go by this, too."""
    if home and (path == "~" or path.startswith("~/")):
        path = home + path[1:]
    return Path(cwd, path)


def shown_path(path: Path, context: ToolContext) -> str:
    """An absolute path as results show it: relative to the working directory when it lies below."""
    relative = os.path.relpath(path, context.cwd)
    return str(path) if relative == ".." or relative.startswith("../") else relative


SECRETS = ("auth.json", "tokens.json", "zot.db", "zot.db-wal", "zot.db-shm")
"""Files of `$ZOT_HOME` with keys, tokens, and the transcripts of all sessions."""


def is_secret(found: os.stat_result, home: str) -> bool:
    """Whether a file, by whatever name or link it was found, is one of `SECRETS` of this home (empty: there is none)."""
    for name in SECRETS if home else ():
        with suppress(OSError):
            if os.path.samestat(found, Path(home, name).stat()):
                return True
    return False


def open_regular(path: Path, home: str = "") -> BinaryIO:
    """A regular file, open for reading; the caller closes it.

    Raises:
        ToolError: a directory, something whose reading might never end (a FIFO, a device), or a secret of this home.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise ToolError(f"{path} is a directory; use glob, or ls in bash, to see what is in it")
    if not stat.S_ISREG(mode):
        raise ToolError(f"{path} is not a regular file; only regular files can be read or changed")
    # O_NONBLOCK: the name may have become a FIFO since, and opening one waits for a writer.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if is_secret(os.fstat(file.fileno()), home):
        file.close()
        raise ToolError(f"{path} contains keys or transcripts of zot, which tools cannot read; work without it")
    return file


def replace_file(path: Path, data: bytes) -> bool:
    """Make `data` the content of `path`, in one step: a reader sees the old content or the new. Tells if it existed.

    Parents are made; mode and, when permitted, owner are kept; a symbolic link stays, its target is replaced. Hard
    links to the old content keep the old content.

    Raises:
        ToolError: the path names a directory or another thing that is not a regular file.
        PermissionError: the file is read-only; that a directory lets its files be replaced does not change that.
    """
    target = Path(os.path.realpath(path))  # `Path.resolve` raises no OSError for a loop of links
    try:
        old = target.stat()
    except FileNotFoundError:
        old = None
    if old and not stat.S_ISREG(old.st_mode):
        raise ToolError(f"{path} is not a regular file; give the path of a file")
    if old and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, for a rename does not cross file systems; a name of its own, for a long one would not fit.
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
    """Create a file like `old`; a really new one gets its mode from the umask, as `open` does it."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as file:
        if old:
            with suppress(PermissionError):
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))  # after chown, which clears set-user-id
        file.write(data)
