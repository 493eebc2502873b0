"""What a directory holds, as digests: to see later whether it has changed, and what in it.

A file is its bytes and whether it may be executed; a link is the text of its target, and what that leads to counts as
well when it lies in the same directory. What lies outside is never read.

`.git` does not count, for nothing in it runs. In `__pycache__` a file does not count that Python compares with the
time of its source, for Python writes these whenever it likes. One that Python loads without that look (PEP 552) is
code like any other.
"""

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

MAX_ENTRIES = 20_000
"""Files and directories that are looked at. One extension with a large `node_modules` has half of that; looking at
them takes a second."""

MAX_BYTES = 200 * 1024 * 1024
"""Bytes that are looked at, for the same reasons."""

SHORT_DIGITS = 16
"""Digits of a file's digest where only differences are shown; decisions use the digest of the whole tree."""

_CHUNK_BYTES = 1024 * 1024

_BY_TIME = bytes(4)
"""The flags in the head of a `.pyc` that Python compares with its source's time and size (PEP 552)."""


class TreeTooLargeError(Exception):
    """There is more than `MAX_ENTRIES` or `MAX_BYTES`; the message is one sentence."""


class TreeDigest(Struct, frozen=True):
    """What a directory held."""

    digest: str
    """SHA-256 over everything, 64 digits."""
    files: Mapping[str, str]
    """Path from the directory to `SHORT_DIGITS` of its digest, in order; bytes that are no UTF-8 are escaped."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """The same paths with the whole digest of each: of a file over whether it may be executed and its bytes, of a link over its target."""


class Difference(Struct, frozen=True):
    """Paths, each list in order."""

    added: Sequence[str]
    changed: Sequence[str]
    removed: Sequence[str]


def scan(directory: Path, starts: Sequence[str] = (".",)) -> TreeDigest:
    """What is at `starts`, paths from the directory; what does not exist adds nothing. Blocks, a second at most.

    What cannot be read counts as that.

    Raises:
        TreeTooLargeError: nothing can be said about this much.
    """
    walk = _Walk(directory)
    for start in starts:
        walk.visit(start)
    files = sorted((os.fsencode(path), digest) for path, digest in walk.found.items())
    everything = hashlib.sha256()
    for path, digest in files:
        everything.update(path + b"\0" + digest)  # no path has a NUL, and all digests have one length
    digests = {shown(path): digest.hex() for path, digest in files}
    return TreeDigest(everything.hexdigest(), {path: one[:SHORT_DIGITS] for path, one in digests.items()}, digests)


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> Difference:
    """What makes `after` differ, both as in `TreeDigest.files`."""
    return Difference(
        added=sorted(after.keys() - before.keys()),
        changed=sorted(path for path in before.keys() & after.keys() if before[path] != after[path]),
        removed=sorted(before.keys() - after.keys()),
    )


def shown(path: bytes) -> str:
    """A path as text that JSON can hold."""
    return path.decode(errors="backslashreplace")


class _Walk:
    def __init__(self, directory: Path) -> None:
        self.found: dict[str, bytes] = {}
        self._root = os.path.realpath(directory)
        self._seen: set[str] = set()
        self._bytes = 0

    def visit(self, start: str) -> None:
        pending = self._entered(start)
        while pending:
            path = pending.pop()
            if path not in self._seen:
                self._seen.add(path)
                pending += self._look(path)
            if len(self._seen) + len(pending) > MAX_ENTRIES:
                raise TreeTooLargeError(f"{self._root} has more than {MAX_ENTRIES} files to look at")

    def _entered(self, start: str) -> list[str]:
        """Where `start` is, when one of the directories above it is a link."""
        above = os.path.dirname(start)  # noqa: PTH120  (paths from the root stay text: Path is slow for thousands)
        while above:
            if os.path.islink(self._full(above)):  # noqa: PTH114
                self._look(above)
                return self._inside(start)
            above = os.path.dirname(above)  # noqa: PTH120
        return [start]

    def _look(self, path: str) -> list[str]:
        """Take down what is at `path`, and tell where to look next."""
        full = self._full(path)
        try:
            mode = os.lstat(full).st_mode
            if stat.S_ISDIR(mode):
                return [name if path == "." else f"{path}/{name}" for name in os.listdir(full) if name != ".git"]  # noqa: PTH208
            if stat.S_ISLNK(mode):
                # Where it leads in the end, too: the link that it names may have been turned elsewhere.
                self._take(path, b"link", os.fsencode(f"{os.readlink(full)}\0{self._real(path)}"))  # noqa: PTH115
                return self._inside(path)
            if stat.S_ISREG(mode):
                self._read(path, is_program=bool(mode & stat.S_IXUSR))
            else:
                self._take(path, b"special")
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            self._take(path, b"unreadable")
        return []

    def _inside(self, path: str) -> list[str]:
        real = self._real(path)
        return [] if real == ".." or real.startswith("../") else [real]

    def _real(self, path: str) -> str:
        return os.path.relpath(os.path.realpath(self._full(path)), self._root)

    def _read(self, path: str, *, is_program: bool) -> None:
        digest = hashlib.sha256(b"program\0" if is_program else b"file\0")
        # The name may have become a link or a FIFO since.
        descriptor = os.open(self._full(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            chunk = os.read(descriptor, _CHUNK_BYTES)
            if _is_compared_by_time(path, chunk):
                return
            while chunk:
                self._bytes += len(chunk)
                if self._bytes > MAX_BYTES:
                    raise TreeTooLargeError(f"{self._root} has more than {MAX_BYTES >> 20} MiB to look at")
                digest.update(chunk)
                chunk = os.read(descriptor, _CHUNK_BYTES)
        finally:
            os.close(descriptor)
        self.found[path] = digest.digest()

    def _take(self, path: str, kind: bytes, text: bytes = b"") -> None:
        self.found[path] = hashlib.sha256(kind + b"\0" + text).digest()

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}"


def _is_compared_by_time(path: str, head: bytes) -> bool:
    folder, _, name = path.rpartition("/")
    in_cache = folder == "__pycache__" or folder.endswith("/__pycache__")
    return in_cache and name.endswith(".pyc") and head[4:8] == _BY_TIME
