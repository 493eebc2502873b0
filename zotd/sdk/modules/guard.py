"""Running only those files of a directory that a person has trusted: by the very bytes that are run.

What may run is given as digests by path from the workspace, as `zotd.tree_digest` makes them: of a file over
`file` or `program` (it may be executed), a NUL and its bytes; of a link over `link`, a NUL, its target, a NUL and where
that leads, from the workspace.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path


class UntrustedError(ImportError):
    """A file is not what was trusted."""


class ModuleGuard:
    """The digests of one workspace."""

    def __init__(self, workspace: Path, directory: Path, granted: Mapping[str, str]) -> None:
        """`directory`: what lies below runs only with a digest."""
        self._workspace = os.path.realpath(workspace)
        self._named = os.path.abspath(workspace)
        self.directory = directory
        self._granted = granted

    def covers(self, path: str | os.PathLike[str]) -> bool:
        """Whether this file lies below the directory, by its name."""
        return os.path.abspath(path).startswith(f"{self.directory}{os.sep}")

    def read(self, path: str | os.PathLike[str]) -> bytes:
        """The content of a file, which may run; any file that is not covered may.

        Raises:
            UntrustedError: it is not what was trusted.
            OSError: it cannot be read.
        """
        with open(path, "rb") as file:
            data = file.read()
        if self.covers(path) and not self._holds(os.path.abspath(path), data):
            raise UntrustedError(
                f"{os.path.basename(path)} has changed since its directory was trusted, or is new;"
                f" look at it, then: zotctl trust grant {self._named}"
            )
        return data

    def _holds(self, path: str, data: bytes) -> bool:
        parts = os.path.relpath(path, self._named).split(os.sep)
        links = [self._named + os.sep + os.sep.join(parts[:end]) for end in range(1, len(parts) + 1)]
        if not all(self._holds_link(link) for link in links if os.path.islink(link)):
            return False
        real = os.path.relpath(os.path.realpath(path), self._workspace)
        if real.startswith(".." + os.sep):
            return True  # outside: where the links lead was trusted, and it did not come with the repository
        kinds = (b"file\0", b"program\0")
        return self._granted.get(_shown(real)) in {hashlib.sha256(kind + data).hexdigest() for kind in kinds}

    def _holds_link(self, link: str) -> bool:
        try:
            target = os.readlink(link)
        except OSError:
            return False
        real = os.path.relpath(os.path.realpath(link), self._workspace)
        digest = hashlib.sha256(b"link\0" + os.fsencode(f"{target}\0{real}")).hexdigest()
        return self._granted.get(_shown(os.path.relpath(link, self._named))) == digest

    def install(self) -> None:
        """Check what modules import from the directory as well: helpers, and packages of them."""
        guard = self

        class Loader(SourceFileLoader):
            def get_data(self, path: str) -> bytes:
                if guard.covers(path) and path.endswith(".pyc"):
                    raise OSError(f"{path} is not used")  # made from a source that nobody has seen
                return guard.read(path)

        hook = FileFinder.path_hook((Loader, [".py"]))

        def guarded(entry: str) -> FileFinder:
            if entry != str(guard.directory) and not guard.covers(entry):
                raise ImportError(entry)
            return hook(entry)  # type: ignore[return-value]

        sys.path_hooks.insert(0, guarded)
        sys.path_importer_cache.clear()


def granted(words: list[str]) -> dict[str, str]:
    """`DIGEST:PATH` as a mapping of paths."""
    pairs = (word.split(":", 1) for word in words)
    return {path: digest for digest, path in pairs}


def _shown(path: str) -> str:
    return os.fsencode(path).decode(errors="backslashreplace")
