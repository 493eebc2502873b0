"""`$ZOT_HOME/trust.json`: the workspaces whose own code may be used (`docs/decisions/0008-installing-and-trust.md`).

    {"workspaces": {"/home/ann/shop": {"digest": "…", "files": {".mcp.json": "…"}}}}

    unknown ──grant──> trusted ──any change──> changed ──grant──> trusted

A workspace is identified by its real path. A grant is for the content that its code has at that moment; any other
content needs another grant. Everything here blocks, for up to a second in a workspace with thousands of files: use a
thread.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct, field

from zotd import private_file, tree_digest
from zotd.core.ports import StorageError
from zotd.decodable import decodable

FILE = "trust.json"

CODE = (".zot/agents", ".zot/commands", ".zot/extensions", ".zot/skills", ".zot/config.toml", ".mcp.json")
"""Where a workspace may have code of its own, relative to its root."""

_MODULES = (".zot/extensions/tools/", ".zot/extensions/channels/")
"""Directories of modules; each module in them is an item of its own in `WorkspaceCode.items`."""


class NotGrantedError(Exception):
    """The workspace was not trusted; the message is one sentence for the user."""


class WorkspaceCode(Struct, frozen=True):
    """The code of a workspace that would be used if it were trusted."""

    items: Sequence[str]
    """Extensions, modules, skills and files, as sorted paths relative to the workspace; shown to the user."""
    digest: str
    """Digest of all code, 64 digits; empty if it is too large to scan."""
    files: Mapping[str, str]
    """Each file with the beginning of its digest; empty if it is too large to scan."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Each file with its whole digest, as in `tree_digest.TreeDigest.digests`."""
    excess: str = ""
    """Why the code is too large to scan, as a sentence. It then counts as changed every time."""

    def part(self, directory: str = "") -> str:
        """Return a digest of the files below `directory` (relative to the workspace), programs and targets of links.

        Without `directory` only of programs and targets of links. Empty if the code is too large to scan.
        """
        if self.excess:
            return ""
        prefix = f"{directory}/" if directory else None
        files = [
            (path, digest)
            for path, digest in self.digests.items()
            if not _is_place_of_code(path) or path == directory or (prefix is not None and path.startswith(prefix))
        ]
        return hashlib.sha256(repr(files).encode()).hexdigest()


class Trusted(Struct, frozen=True):
    """The code was granted trust and has not changed since."""

    code: WorkspaceCode


class Changed(Struct, frozen=True):
    """The code was trusted and has changed since; the user has to be asked again."""

    code: WorkspaceCode
    files: Sequence[str]
    """Paths of added, changed and removed files, sorted; empty if the code is too large to scan."""


class UntrustedCode(Struct, frozen=True):
    """The code was never trusted; the user has to be asked."""

    code: WorkspaceCode


class NothingToTrust(Struct, frozen=True):
    """The workspace has no code of its own, so there is nothing to ask."""

    code: WorkspaceCode


State: TypeAlias = Trusted | Changed | UntrustedCode | NothingToTrust


class _Grant(msgspec.Struct, frozen=True):
    digest: str
    files: dict[str, str]


class _File(msgspec.Struct, frozen=True):
    workspaces: dict[str, _Grant]


def code_of(cwd: Path, *, home: Path, programs: Sequence[str] = ()) -> WorkspaceCode:
    """Scan the code of a workspace.

    `programs` are paths in the workspace of programs that its code or the user's configuration would start. If the
    workspace's `.zot` is `home`, its content belongs to the user and does not count.
    """
    is_home = os.path.realpath(cwd / ".zot") == os.path.realpath(home)
    starts = [start for start in CODE if not (is_home and start.startswith(".zot/"))]
    # `lexists`, because a dangling link can get a target later.
    named = [program for program in programs if os.path.lexists(cwd / program)]
    try:
        found = tree_digest.scan(cwd, [*starts, *named])
    except tree_digest.TreeTooLargeError as error:
        there = [start for start in [*starts, *named] if os.path.lexists(cwd / start)]
        return WorkspaceCode(items=there, digest="", files={}, excess=str(error))
    items = sorted({*_items(found.files), *(program for program in named if not _is_place_of_code(program))})
    return WorkspaceCode(items=items, digest=found.digest, files=found.files, digests=found.digests)


class Trust:
    """The trusted workspaces of one home. Several objects, also in several processes, may use the same file."""

    def __init__(self, home: Path, programs: Callable[[Path], Sequence[str]] = lambda _: ()) -> None:
        """The home must exist before the first change.

        `programs` returns further paths in a workspace whose programs would be started: see `code_of`. It may block.
        """
        self._home = home
        self._programs = programs
        self._path = home / FILE

    def code(self, cwd: Path) -> WorkspaceCode:
        """Scan the code of the workspace `cwd`."""
        return code_of(cwd, home=self._home, programs=self._programs(cwd))

    def state(self, cwd: Path, *, code: WorkspaceCode | None = None) -> State:
        """Return whether the code of `cwd` may be used. Pass `code` if it was just scanned.

        Raises:
            StorageError: the file cannot be used; then nothing is trusted.
        """
        code = code or self.code(cwd)
        grant = self._load().get(_key(cwd))
        if grant is not None and code.digest == grant.digest:
            return Trusted(code)
        if not code.items:  # checked after the grant, because trust can be granted before there is any code
            return NothingToTrust(code)
        if grant is None:
            return UntrustedCode(code)
        differs = tree_digest.difference(grant.files, code.files)
        files = sorted([*differs.added, *differs.changed, *differs.removed])
        return Changed(code, [] if code.excess else files)

    def grant(self, cwd: Path, *, digest: str | None = None) -> Trusted:
        """Trust the current code of `cwd`, even if it has none yet.

        If `digest` is given, the code must still have it: it may have changed while the user was being asked.

        Raises:
            NotGrantedError: the code has another digest, or is too large to scan.
            StorageError: the file cannot be read or written.
        """
        code = self.code(cwd)
        if code.excess:
            raise NotGrantedError(f"{code.excess}: it cannot be trusted permanently; use --trust each time")
        if digest not in {None, code.digest}:
            raise NotGrantedError(f"the code of {cwd} has changed since you were asked; review it again")
        with self._change() as workspaces:
            workspaces[_key(cwd)] = _Grant(code.digest, dict(code.files))
        return Trusted(code)

    def revoke(self, cwd: Path) -> bool:
        """Withdraw the trust in `cwd`, which need not exist any more; False if it was not trusted.

        Raises:
            StorageError: the file cannot be read or written.
        """
        with self._change() as workspaces:
            # Also the path as given: if the directory is gone, its real path cannot be determined.
            keys = workspaces.keys() & {_key(cwd), _text(str(cwd))}
            for key in keys:
                del workspaces[key]
            return bool(keys)

    def workspaces(self) -> Sequence[str]:
        """Return the real paths of the trusted workspaces, sorted. `state` tells whether their code has changed since.

        Raises:
            StorageError: the file cannot be read.
        """
        return sorted(self._load())

    def _load(self) -> dict[str, _Grant]:
        try:
            content = private_file.read(self._path)
            return {} if content is None else msgspec.json.decode(content, type=decodable(_File)).workspaces
        except OSError as error:
            raise StorageError(f"{self._path} cannot be read: {error.strerror}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StorageError(f"{self._path} is damaged, remove it to trust nothing: {error}") from error

    @contextmanager
    def _change(self) -> Iterator[dict[str, _Grant]]:
        """Yield the trusted workspaces for modification, under a lock; write the file if they have changed."""
        try:
            with private_file.locked(self._path):
                workspaces = self._load()
                before = dict(workspaces)
                yield workspaces
                if workspaces != before:
                    private_file.write(self._path, msgspec.json.encode(_File(workspaces)) + b"\n")
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror}") from error


def _items(files: Iterable[str]) -> list[str]:
    return sorted({_item(path) for path in files if _is_place_of_code(path)})


def _is_place_of_code(path: str) -> bool:
    """Whether the path is in one of the places of `CODE`, and not only reachable through a link from there."""
    return path == ".zot" or path in CODE or path.startswith(tuple(f"{place}/" for place in CODE))


def _item(path: str) -> str:
    return "/".join(path.split("/")[: 4 if path.startswith(_MODULES) else 3])


def _key(cwd: Path) -> str:
    return _text(os.path.realpath(cwd))


def _text(path: str) -> str:
    return tree_digest.shown(os.fsencode(path))
