"""What a server has to learn about the disk before it checks a file: other programs change files too.

One look takes 5 ms for 1,000 files, on a thread.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from zotd.diagnostics.catalog import ServerRow, merged
from zotd.diagnostics.messages import WatchedChange
from zotd.diagnostics.project_environment import find_python, packages_stamp
from zotd.diagnostics.source_files import SourceFiles

FILE_BYTES = 1024 * 1024
"""Largest file that servers are asked about."""

MANIFESTS = ("package.json", "tsconfig.json", "go.mod", "go.sum", "Cargo.toml", "Cargo.lock", "pyproject.toml")
"""Files beside those of the language that servers want to hear about."""

Stamp = tuple[int, int]


class DiskNews(Struct, frozen=True):
    """What is different since the last look."""

    events: Sequence[tuple[str, WatchedChange]]
    texts: Mapping[str, str | None]
    """Of the open files that may have changed; None: it is gone, or is no text any more."""
    settings: Mapping[str, object] | None
    """Settings for the server, if they have changed."""


class DiskView:
    """The disk as one server knows it. Used by one thread at a time; methods block."""

    def __init__(self, row: ServerRow, root: str, places: Sequence[Path], env: Mapping[str, str]) -> None:
        """`places`: directories that may have an environment of their own, the nearest first."""
        self._row, self._places, self._env = row, places, env
        self._files = SourceFiles(root, row.languages.keys(), {*row.roots, *MANIFESTS})
        self._stamps: dict[str, Stamp | None] = {}
        self._packages: Sequence[tuple[str, int]] | None = None

    def look(self, open_paths: Iterable[str]) -> DiskNews:
        """Return what has changed. At the first look the settings always count as changed."""
        texts: dict[str, str | None] = {}
        for path in open_paths:
            stamp = _stamp(path)
            if path not in self._stamps or self._stamps[path] != stamp:
                texts[path] = read_text(path)
            self._stamps[path] = stamp
        return DiskNews(self._files.changes(), texts, self._settings())

    def _settings(self) -> Mapping[str, object] | None:
        if not self._row.python_at:
            is_first, self._packages = self._packages is None, ()
            return self._row.settings if is_first else None
        python = find_python(self._places, self._env)
        packages = packages_stamp(python)
        if packages == self._packages:
            return None
        self._packages = packages
        own = {} if python is None else {self._row.python_at: {"pythonPath": str(python)}}
        return merged(own, self._row.settings)


def read_text(path: str) -> str | None:
    """Return the text of a file; None if there is no file, or it is no text or too long."""
    try:
        with Path(path).open("rb") as file:
            return text_of(file.read(FILE_BYTES + 1))
    except OSError:
        return None


def text_of(data: bytes) -> str | None:
    """Return the text of a file that servers can be asked about; None if it is no UTF-8, or too long."""
    if len(data) > FILE_BYTES:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _stamp(path: str) -> Stamp | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
