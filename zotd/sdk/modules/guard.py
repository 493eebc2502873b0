"""Restricts imports to trusted files, by a digest of the very bytes that are run.

The trusted files are given as digests by path relative to the workspace, in the format of `zotd.tree_digest`. The digest
of a file covers `file` or `program` (if executable), a NUL and its bytes; that of a link covers `link`, a NUL, its target,
a NUL and the resolved path relative to the workspace.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path


class UntrustedError(ImportError):
    """A file differs from the trusted version, or is new."""


class ModuleGuard:
    """The trusted digests of one workspace."""

    def __init__(self, workspace: Path, directory: Path, granted: Mapping[str, str]) -> None:
        """Guard the files below `directory`, which run only with a digest in `granted`."""
        self._workspace = os.path.realpath(workspace)
        self._named = os.path.abspath(workspace)
        self.directory = directory
        self._granted = granted

    def covers(self, path: str | os.PathLike[str]) -> bool:
        """Return True if the file is below the directory, judging by its name."""
        return os.path.abspath(path).startswith(f"{self.directory}{os.sep}")

    def read(self, path: str | os.PathLike[str]) -> bytes:
        """Read a file that may run. Files that are not covered may always run.

        Raises:
            UntrustedError: the file differs from the trusted version, or is new.
            OSError: the file cannot be read.
        """
        with open(path, "rb") as file:
            data = file.read()
        # Checked on the bytes just read and returned: a file that changes afterwards cannot slip through.
        if self.covers(path) and not self._holds(os.path.abspath(path), data):
            raise UntrustedError(
                f"{os.path.basename(path)} has changed since its directory was trusted, or is new;"
                f" look at it, then: zotctl trust grant {self._named}"
            )
        return data

    def _holds(self, path: str, data: bytes) -> bool:
        parts = os.path.relpath(path, self._named).split(os.sep)
        links = [self._named + os.sep + os.sep.join(parts[:end]) for end in range(1, len(parts) + 1)]
        # Every directory on the path may be a link, and a changed link would lead to other code.
        if not all(self._holds_link(link) for link in links if os.path.islink(link)):
            return False
        real = os.path.relpath(os.path.realpath(path), self._workspace)
        if real.startswith(".." + os.sep):
            return True  # outside: the link was trusted with its target, and the file did not come with the repository
        # The execute bit does not matter for an import, so either digest is accepted.
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
        """Check everything that modules import from the directory: helpers and packages."""
        guard = self

        class Loader(SourceFileLoader):
            def get_data(self, path: str) -> bytes:
                if guard.covers(path) and path.endswith(".pyc"):
                    raise OSError(f"{path} is not used")  # bytecode may come from another source than the trusted one
                return guard.read(path)

        hook = FileFinder.path_hook((Loader, [".py"]))

        def guarded(entry: str) -> FileFinder:
            if entry != str(guard.directory) and not guard.covers(entry):
                raise ImportError(entry)
            return hook(entry)  # type: ignore[return-value]

        sys.path_hooks.insert(0, guarded)
        sys.path_importer_cache.clear()


def granted(words: list[str]) -> dict[str, str]:
    """Parse words `DIGEST:PATH`; return digests by path."""
    pairs = (word.split(":", 1) for word in words)
    return {path: digest for digest, path in pairs}


def _shown(path: str) -> str:
    return os.fsencode(path).decode(errors="backslashreplace")
