"""`$ZOT_HOME/trust.json`: the workspaces whose own code may be used (`docs/decisions/0008-installing-and-trust.md`).

    {"workspaces": {"/home/ann/shop": {"digest": "…", "files": {".mcp.json": "…"}}}}

    unknown ──grant──> trusted ──any change──> changed ──grant──> trusted

A workspace is its real path; what is trusted is the content that its code had when a person granted it. Nothing but a
grant changes that. Everything here blocks, up to a second where a workspace has thousands of files: use a thread.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec

from zotd import private_file, tree_digest
from zotd.core.ports import StorageError

FILE = "trust.json"

CODE = (".zot/extensions", ".zot/skills", ".zot/config.toml", ".mcp.json")
"""Where a workspace's own code is, from its root."""

_MODULES = (".zot/extensions/tools/", ".zot/extensions/channels/")
"""Directories of modules, each of which is asked about by itself."""


class NotGrantedError(Exception):
    """The workspace is not trusted after all; the message is one sentence for the person who wanted it."""


@dataclass(frozen=True, slots=True)
class WorkspaceCode:
    """What a workspace has that would be used if it were trusted."""

    items: Sequence[str]
    """Extensions, modules, skills and files, as paths from the workspace, in order: what a person is asked about."""
    digest: str
    """Of all of it, 64 digits; empty when there is too much to look at."""
    files: Mapping[str, str]
    """Every file, and the beginning of its digest; empty when there is too much to look at."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """The same with whole digests, as `tree_digest.TreeDigest.digests`."""
    excess: str = ""
    """A sentence, when there is too much to look at: it then counts as changed each time."""

    def part(self, directory: str = "") -> str:
        """A digest of what lies below `directory`, a path from the workspace, and of programs and targets of links.

        Without a directory only of these. Empty when there is too much to look at.
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


@dataclass(frozen=True, slots=True)
class Trusted:
    """The code may be used."""

    code: WorkspaceCode


@dataclass(frozen=True, slots=True)
class Changed:
    """The code was trusted, and is not what it was; ask again."""

    code: WorkspaceCode
    files: Sequence[str]
    """Added, changed and removed ones, in order; empty when there is too much to look at."""


@dataclass(frozen=True, slots=True)
class UntrustedCode:
    """Nobody has trusted the code; ask."""

    code: WorkspaceCode


@dataclass(frozen=True, slots=True)
class NothingToTrust:
    """The workspace has no code of its own; there is nothing to ask."""

    code: WorkspaceCode


State: TypeAlias = Trusted | Changed | UntrustedCode | NothingToTrust


class _Grant(msgspec.Struct, frozen=True):
    digest: str
    files: dict[str, str]


class _File(msgspec.Struct, frozen=True):
    workspaces: dict[str, _Grant]


def code_of(cwd: Path, *, home: Path, programs: Sequence[str] = ()) -> WorkspaceCode:
    """The code of a workspace as it is now. `programs`: paths in it that its code, or the user, would have started.

    Where the workspace's `.zot` is the home of all, what is in there is the user's own and does not count.
    """
    is_home = os.path.realpath(cwd / ".zot") == os.path.realpath(home)
    starts = [start for start in CODE if not (is_home and start.startswith(".zot/"))]
    named = [program for program in programs if os.path.lexists(cwd / program)]
    try:
        found = tree_digest.scan(cwd, [*starts, *named])
    except tree_digest.TreeTooLargeError as error:
        there = [start for start in [*starts, *named] if os.path.lexists(cwd / start)]
        return WorkspaceCode(items=there, digest="", files={}, excess=str(error))
    items = sorted({*_items(found.files), *(program for program in named if not _is_place_of_code(program))})
    return WorkspaceCode(items=items, digest=found.digest, files=found.files, digests=found.digests)


class Trust:
    """What one home trusts; any number of these, in any number of processes, may use the same file."""

    def __init__(self, home: Path, programs: Callable[[Path], Sequence[str]] = lambda _: ()) -> None:
        """The home must exist before the first change.

        `programs` names what else of a workspace would be started, as paths from it: see `code_of`. It may block.
        """
        self._home = home
        self._programs = programs
        self._path = home / FILE

    def code(self, cwd: Path) -> WorkspaceCode:
        """The code of `cwd` as it is now."""
        return code_of(cwd, home=self._home, programs=self._programs(cwd))

    def state(self, cwd: Path, *, code: WorkspaceCode | None = None) -> State:
        """Whether the code of `cwd` may be used; `code` as `code` has just found it.

        Raises:
            StorageError: the file cannot be used; nothing is trusted then.
        """
        code = code or self.code(cwd)
        grant = self._load().get(_key(cwd))
        if grant is not None and code.digest == grant.digest:
            return Trusted(code)
        if not code.items:
            return NothingToTrust(code)
        if grant is None:
            return UntrustedCode(code)
        differs = tree_digest.difference(grant.files, code.files)
        files = sorted([*differs.added, *differs.changed, *differs.removed])
        return Changed(code, [] if code.excess else files)

    def grant(self, cwd: Path, *, digest: str | None = None) -> Trusted:
        """Trust the code of `cwd` as it is now, and also when there is none yet.

        `digest` is that of what the person was asked about: the code may have changed while they were thinking.

        Raises:
            NotGrantedError: the code is not of that digest any more, or too much to look at.
            StorageError: the file cannot be used, or not be written.
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
        """Trust it no longer, also when the directory is gone; False when it was not trusted.

        Raises:
            StorageError: the file cannot be used, or not be written.
        """
        with self._change() as workspaces:
            keys = workspaces.keys() & {_key(cwd), _text(str(cwd))}
            for key in keys:
                del workspaces[key]
            return bool(keys)

    def workspaces(self) -> Sequence[str]:
        """The real paths of what is trusted, in order; whether they still hold what they held is `state`'s business.

        Raises:
            StorageError: the file cannot be used.
        """
        return sorted(self._load())

    def _load(self) -> dict[str, _Grant]:
        try:
            content = private_file.read(self._path)
            return {} if content is None else msgspec.json.decode(content, type=_File).workspaces
        except OSError as error:
            raise StorageError(f"{self._path} cannot be read: {error.strerror}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StorageError(f"{self._path} is damaged, remove it to trust nothing: {error}") from error

    @contextmanager
    def _change(self) -> Iterator[dict[str, _Grant]]:
        """What is trusted, to be changed; written when the block ends and something has changed."""
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
    """False for what only a link leads to: the link is asked about."""
    return path == ".zot" or path in CODE or path.startswith(tuple(f"{place}/" for place in CODE))


def _item(path: str) -> str:
    return "/".join(path.split("/")[: 4 if path.startswith(_MODULES) else 3])


def _key(cwd: Path) -> str:
    return _text(os.path.realpath(cwd))


def _text(path: str) -> str:
    return tree_digest.shown(os.fsencode(path))
