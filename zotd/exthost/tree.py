"""What may become an extension's directory: judged before anything is written, and written without trusting names.

Directories and git repositories are both a list of entries here. Only files and links that stay inside are taken;
of a file's mode only whether its owner may execute it. `.git` is left out, and `__pycache__`: what Python wrote for
other sources is not what is installed.
"""

import os
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from zotd.exthost.installed import InstallError
from zotd.tree_digest import MAX_BYTES, MAX_ENTRIES

LEFT_OUT = frozenset({".git", "__pycache__"})
"""Compared without case, as the file systems of macOS do."""

MAX_LINK_BYTES = 4096
"""Longest target of a link, as Linux allows it."""

_CHUNK_BYTES = 1024 * 1024

_FILE_MODE, _PROGRAM_MODE = 0o600, 0o700


class EntryKind(Enum):
    """What an entry is; there is nothing else."""

    FILE = auto()
    PROGRAM = auto()
    """A file that may be executed."""
    LINK = auto()


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file or link."""

    path: str
    """Relative, with `/` between the parts."""
    kind: EntryKind
    size: int
    """Bytes; of a link, those of its target."""
    object_id: str = ""
    """Git's name of its content; empty on this machine's disk."""


def is_left_out(path: str) -> bool:
    """Whether this is never installed, wherever it comes from."""
    return any(part.casefold() in LEFT_OUT for part in path.split("/"))


def judged(entries: Iterable[TreeEntry]) -> list[TreeEntry]:
    """The entries in the order in which to write them: links last, so that nothing is written through one.

    Raises:
        InstallError: a name that could harm or that cannot exist beside another one, or more than
            `MAX_ENTRIES` or `MAX_BYTES`.
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
    """What is in a directory of this machine, with names that have not been judged. Links are not followed.

    Raises:
        InstallError: a device, a pipe, a socket, or a file that runs as somebody else.
        OSError: something cannot be read.
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
    """The content of what `walk` has found.

    Raises:
        InstallError: it is not what it was.
        OSError: it cannot be read.
    """
    path = directory / entry.path
    if entry.kind is EntryKind.LINK:
        yield os.fsencode(path.readlink())
        return
    left = entry.size
    # The name may have become a link or a FIFO since.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        while chunk := file.read(min(_CHUNK_BYTES, left + 1)):
            left -= len(chunk)
            if left < 0:
                break
            yield chunk
    if left:
        raise InstallError(f"{path} changed while it was copied; try again")


def write(directory: Path, contents: Iterable[tuple[TreeEntry, Iterable[bytes]]]) -> None:
    """Make a directory of entries in the order of `judged`; each content is read before the next one is asked for.

    Raises:
        InstallError: a link points outside of the directory.
        OSError: it cannot be written.
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
    # Only now can be told where a chain of links leads. os.path.realpath, for Path.resolve raises on a loop of links.
    for link in links:
        if not Path(os.path.realpath(directory / link)).is_relative_to(os.path.realpath(directory)):
            raise InstallError(f"the link {_quoted(link)} points outside of the directory")


def folded(path: str) -> str:
    """The path as file systems without case and with one form of accents see it (macOS)."""
    return unicodedata.normalize("NFC", path).casefold()


class _Names:
    """The names so far, `folded`."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def add(self, path: str) -> None:
        parts = path.split("/")
        if not all(_is_name(part) for part in parts):
            raise InstallError(f"the name {_quoted(path)} in it cannot be used")
        for end in range(1, len(parts)):
            self._claim("/".join(parts[:end]) + "/", path)
        if folded(path) in self._seen:
            raise self._clash(path)
        self._claim(path, path)
        if len(self._seen) > MAX_ENTRIES:
            raise InstallError(f"it has more than {MAX_ENTRIES} files, too many for an extension")

    def _claim(self, name: str, path: str) -> None:
        """A directory, with `/` at its end, may come again in the same spelling; nothing else may."""
        if self._seen.setdefault(folded(name.removesuffix("/")), name) != name:
            raise self._clash(path)

    def _clash(self, path: str) -> InstallError:
        other = self._seen.get(folded(path), path)
        return InstallError(f"{_quoted(path)} and {_quoted(other)} in it are the same name on some file systems")


def _is_name(part: str) -> bool:
    # Not printable: control characters, marks that turn the direction of text, and bytes that are no UTF-8.
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
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    mode = _PROGRAM_MODE if kind is EntryKind.PROGRAM else _FILE_MODE
    with os.fdopen(os.open(path, flags, mode), "wb") as file:
        file.writelines(chunks)


def _target(path: str, target: bytes) -> str:
    """Where a link leads, when that is inside by the names alone; `write` follows them."""
    text = os.fsdecode(target)
    joined = os.path.normpath(os.path.join(os.path.dirname(path), text))  # noqa: PTH118, PTH120  (no file is meant)
    if not text.isprintable() or not text or text.startswith("/") or joined == ".." or joined.startswith("../"):
        raise InstallError(f"the link {_quoted(path)} points outside of the directory, to {_quoted(text)}")
    return text


def _quoted(path: str) -> str:
    """For a message: a name that somebody else chose."""
    return ascii(path if len(path) <= 80 else f"{path[:80]}…")
