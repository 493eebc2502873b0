"""Checks the files of an extension before they are written, and writes them without trusting their names.

Directories and git repositories are both represented as a list of entries. Only files and links that stay inside are
accepted; of a file's mode only the owner's execute bit is kept. `.git` and `__pycache__` are left out: bytecode may differ
from the source beside it.
"""

import os
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from pathlib import Path

from msgspec import Struct

from zotd.exthost.installed import InstallError
from zotd.tree_digest import MAX_BYTES, MAX_ENTRIES

LEFT_OUT = frozenset({".git", "__pycache__"})
"""Compared without case, as the file systems of macOS do."""

MAX_LINK_BYTES = 4096
"""Longest target of a link (PATH_MAX of Linux)."""

_CHUNK_BYTES = 1024 * 1024

_FILE_MODE, _PROGRAM_MODE = 0o600, 0o700


class EntryKind(Enum):
    """Kinds of entries; all others are refused."""

    FILE = auto()
    PROGRAM = auto()
    """A file with the execute bit of its owner."""
    LINK = auto()


class TreeEntry(Struct, frozen=True):
    """One file or link, before it is written."""

    path: str
    """Relative, with `/` as the separator."""
    kind: EntryKind
    size: int
    """Size in bytes; of a link, the length of its target."""
    object_id: str = ""
    """Git's object id; empty for a file on disk."""


def is_left_out(path: str) -> bool:
    """Return True for paths that are never installed."""
    return any(part.casefold() in LEFT_OUT for part in path.split("/"))


def judged(entries: Iterable[TreeEntry]) -> list[TreeEntry]:
    """Check entries and return them in the order in which to write them: links last, so no file is written through one.

    Raises:
        InstallError: a name is harmful or clashes with another one, or there are more than `MAX_ENTRIES` or
            `MAX_BYTES`.
    """
    names = _Names()
    taken = []
    size = 0
    for entry in entries:
        names.add(entry.path)
        size += entry.size
        if size > MAX_BYTES:
            raise InstallError(f"it has more than {MAX_BYTES >> 20} MiB, too much for an extension")
        if entry.kind is EntryKind.LINK and entry.size > MAX_LINK_BYTES:
            raise InstallError(f"the link {_quoted(entry.path)} has a target that is too long")
        taken.append(entry)
    return sorted(taken, key=lambda entry: (entry.kind is EntryKind.LINK, entry.path))


def walk(directory: Path) -> Iterator[TreeEntry]:
    """Yield the entries of a directory on disk, with unchecked names. Does not follow links.

    Raises:
        InstallError: there is a device, a pipe, a socket, or a setuid or setgid file.
        OSError: a directory cannot be read.
    """
    pending = [""]
    while pending:
        folder = pending.pop()
        with os.scandir(directory / folder) as items:
            taken = [item for item in items if not is_left_out(item.name)]
            found = [(f"{folder}/{item.name}".lstrip("/"), item.stat(follow_symlinks=False)) for item in taken]
        for path, about in found:
            if stat.S_ISDIR(about.st_mode):
                pending.append(path)
            else:
                yield _entry(path, about)


def read(directory: Path, entry: TreeEntry) -> Iterator[bytes]:
    """Yield the content of an entry that `walk` has found.

    Raises:
        InstallError: the file has changed in the meantime.
        OSError: the file cannot be read.
    """
    path = directory / entry.path
    if entry.kind is EntryKind.LINK:
        # The target itself is the content of a link, as in git.
        yield os.fsencode(path.readlink())
        return
    left = entry.size
    # In the meantime the name may have become a link, or a FIFO that would block.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        # Reads one byte more than expected to notice a file that grew after the size was checked.
        while chunk := file.read(min(_CHUNK_BYTES, left + 1)):
            left -= len(chunk)
            if left < 0:
                break
            yield chunk
    if left:
        raise InstallError(f"{path} changed while it was copied; try again")


def write(directory: Path, contents: Iterable[tuple[TreeEntry, Iterable[bytes]]]) -> None:
    """Create a directory from entries in the order of `judged`. Each content is read before the next entry is requested.

    Raises:
        InstallError: a link points outside of the directory.
        OSError: a file cannot be written.
    """
    directory.mkdir()
    links = []
    for entry, chunks in contents:
        path = directory / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind is EntryKind.LINK:
            path.symlink_to(_target(entry.path, b"".join(chunks)))
            links.append(entry.path)
        else:
            _write_file(path, entry.kind, chunks)
    # A chain of links can only be followed once all exist. os.path.realpath because Path.resolve raises on a loop of links.
    for link in links:
        if not Path(os.path.realpath(directory / link)).is_relative_to(os.path.realpath(directory)):
            raise InstallError(f"the link {_quoted(link)} points outside of the directory")


def folded(path: str) -> str:
    """Fold a path as file systems do that ignore case and normalise accents (macOS)."""
    return unicodedata.normalize("NFC", path).casefold()


class _Names:
    """Detects names that clash on some file systems."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def add(self, path: str) -> None:
        parts = path.split("/")
        if not all(_is_name(part) for part in parts):
            raise InstallError(f"the name {_quoted(path)} in it cannot be used")
        for end in range(1, len(parts)):
            # Parent directories too: `A/x` and `a/y` would share a directory where case is ignored.
            self._claim("/".join(parts[:end]) + "/", path)
        # A file must not have the name of a directory either.
        if folded(path) in self._seen:
            raise self._clash(path)
        self._claim(path, path)
        if len(self._seen) > MAX_ENTRIES:
            raise InstallError(f"it has more than {MAX_ENTRIES} files, too many for an extension")

    def _claim(self, name: str, path: str) -> None:
        """Reserve a name. Only a directory (ending with `/`) may occur again, in the same spelling."""
        if self._seen.setdefault(folded(name.removesuffix("/")), name) != name:
            raise self._clash(path)

    def _clash(self, path: str) -> InstallError:
        other = self._seen.get(folded(path), path)
        return InstallError(f"{_quoted(path)} and {_quoted(other)} in it are the same name on some file systems")


def _is_name(part: str) -> bool:
    # Refuses control characters, changes of text direction, and bytes that are not UTF-8: people read these names.
    return part not in {"", ".", ".."} and part.isprintable()


def _entry(path: str, found: os.stat_result) -> TreeEntry:
    if stat.S_ISLNK(found.st_mode):
        return TreeEntry(path, EntryKind.LINK, found.st_size)
    if not stat.S_ISREG(found.st_mode):
        raise InstallError(f"{_quoted(path)} in it is a device, a pipe or a socket")
    if found.st_mode & (stat.S_ISUID | stat.S_ISGID):
        raise InstallError(f"{_quoted(path)} in it is setuid or setgid; remove that with chmod a-s")
    return TreeEntry(path, EntryKind.PROGRAM if found.st_mode & stat.S_IXUSR else EntryKind.FILE, found.st_size)


def _write_file(path: Path, kind: EntryKind, chunks: Iterable[bytes]) -> None:
    # O_EXCL and O_NOFOLLOW: a file must never be written over or through something that exists already.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    mode = _PROGRAM_MODE if kind is EntryKind.PROGRAM else _FILE_MODE
    with os.fdopen(os.open(path, flags, mode), "wb") as file:
        file.writelines(chunks)


def _target(path: str, target: bytes) -> str:
    """Return the target of a link whose name stays inside. `write` checks later where chains of links lead."""
    text = os.fsdecode(target)
    joined = os.path.normpath(os.path.join(os.path.dirname(path), text))  # noqa: PTH118, PTH120  (no file is meant)
    if not text.isprintable() or not text or text.startswith("/") or joined == ".." or joined.startswith("../"):
        raise InstallError(f"the link {_quoted(path)} points outside of the directory, to {_quoted(text)}")
    return text


def _quoted(path: str) -> str:
    """Quote a foreign name for a message, so that it cannot contain control characters."""
    return ascii(path if len(path) <= 80 else f"{path[:80]}…")
