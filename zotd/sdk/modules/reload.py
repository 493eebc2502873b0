"""Keeps loaded modules in step with their files, one file at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from ..pipe import HostPipe, log_error
from .files import IMPORT_PATIENCE_S, Version, complaint, import_patiently, versions
from .watch import changes

T = TypeVar("T")


class ModuleKind(Protocol[T]):
    """Loads and uses modules of one kind. `adopt` and `drop` are never called concurrently."""

    def load(self, path: Path) -> T:
        """Import a file. Runs foreign code, which may raise anything or never return.

        Raises:
            ContractError: the file lacks required functions.
        """

    def adopt(self, name: str, module: T) -> None:
        """Use a module from now on, in place of an earlier version."""

    def drop(self, name: str) -> None:
        """Stop using the module of a deleted file, if it was adopted."""


class Reloader(Generic[T]):
    """Adopts new and changed files, and drops deleted ones.

    A file that cannot be loaded is reported to the host (`module_error`). Its earlier version stays in use, and other
    files are not affected.
    """

    def __init__(
        self, pipe: HostPipe, kind: ModuleKind[T], directories: Sequence[Path], only: str | None = None
    ) -> None:
        """Follow `directories`, the first of which wins for a name. `only`: ignore all other names."""
        self._pipe = pipe
        self._kind = kind
        self._directories = directories
        self._only = only
        self._seen: dict[str, Version] = {}
        self._broken: set[Path] = set()
        self._lock = threading.Lock()
        self._changes = changes(directories)

    def start(self) -> None:
        """Load the existing files, and follow changes in a thread."""
        # Starts watching before the first look, so that no change in between is missed.
        next(self._changes)
        self._look()
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for _ in self._changes:
            self._look()

    def _look(self) -> None:
        found = {name: v for name, v in versions(self._directories).items() if self._only in {None, name}}
        for name in self._seen.keys() - found.keys():
            self._drop(name)
        for name, version in found.items():
            if self._seen.get(name) != version:
                self._load(name, version)

    def _load(self, name: str, version: Version) -> None:
        # An import that was given up may still finish in its own thread.
        with self._lock:
            self._seen[name] = version
        if not import_patiently(lambda: self._import(name, version)):
            self._complain(version.path, f"its import has not ended after {IMPORT_PATIENCE_S:.0f} s")

    def _import(self, name: str, version: Version) -> None:
        try:
            module = self._kind.load(version.path)
        except BaseException as error:  # noqa: BLE001  a file may even call sys.exit()
            log_error(error)
            self._complain(version.path, complaint(version.path, error))
            return
        with self._lock:
            if self._seen.get(name) != version:
                return  # the import took so long that the file has changed again
            self._kind.adopt(name, module)
        self._mended(version.path)

    def _drop(self, name: str) -> None:
        with self._lock:
            version = self._seen.pop(name)
            self._kind.drop(name)
        self._mended(version.path)

    def _complain(self, path: Path, error: str) -> None:
        self._broken.add(path)
        self._pipe.send({"type": "module_error", "file": str(path), "error": error})

    def _mended(self, path: Path) -> None:
        if path in self._broken:
            self._broken.discard(path)
            self._pipe.send({"type": "module_error", "file": str(path), "error": ""})
