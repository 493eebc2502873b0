"""`$ZOT_HOME/trust.json`: the workspaces whose own code may be used (`docs/decisions/0008-installing-and-trust.md`).

    {"workspaces": {"/home/ann/shop": {"digest": "…", "files": {".mcp.json": "…"}}}}

    unknown ──grant──> trusted ──changed while nothing was live──> changed
                        │   ▲                                         │
                        └───┘ update: changed while live   grant <────┘

A workspace is its real path; what is trusted is the content that its code had then. Everything here blocks, up to a
second where a workspace has thousands of files: use a thread.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec

from zotd import contents, private_file
from zotd.core.ports import StorageError

FILE = "trust.json"

CODE = (".zot/extensions", ".zot/skills", ".zot/config.toml", ".mcp.json")
"""Where a workspace's own code is, from its root."""

_MODULES = (".zot/extensions/tools/", ".zot/extensions/channels/")
"""Directories of modules, each of which is asked about by itself."""


class NotGrantedError(Exception):
    """The workspace is not trusted after all; the message is one sentence for the person who wanted it."""


@dataclass(frozen=True, slots=True)
class Code:
    """What a workspace has that would be used if it were trusted."""

    items: Sequence[str]
    """Extensions, modules, skills and files, as paths from the workspace, in order: what a person is asked about."""
    digest: str
    """Of all of it, 64 digits; empty when there is too much to look at."""
    files: Mapping[str, str]
    """Every file, and the beginning of its digest; empty when there is too much to look at."""
    excess: str = ""
    """A sentence, when there is too much to look at: it then counts as changed each time."""


@dataclass(frozen=True, slots=True)
class Trusted:
    """The code may be used."""

    digest: str
    """What `Trust.update` wants to know when the workspace closes."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The code was trusted, and is not what it was; ask again."""

    code: Code
    files: Sequence[str]
    """Added, changed and removed ones, in order; empty when there is too much to look at."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody has trusted the code; ask."""

    code: Code


@dataclass(frozen=True, slots=True)
class NothingToTrust:
    """The workspace has no code of its own; there is nothing to ask."""


State: TypeAlias = Trusted | Changed | Unknown | NothingToTrust


class _Grant(msgspec.Struct, frozen=True):
    digest: str
    files: dict[str, str]


class _File(msgspec.Struct, frozen=True):
    workspaces: dict[str, _Grant]


def code_of(cwd: Path, *, home: Path) -> Code:
    """The code of a workspace as it is now.

    Where the workspace's `.zot` is the home of all, what is in there is the user's own and does not count.
    """
    is_home = os.path.realpath(cwd / ".zot") == os.path.realpath(home)
    starts = [start for start in CODE if not (is_home and start.startswith(".zot/"))]
    try:
        found = contents.scan(cwd, starts)
    except contents.TooMuchError as error:
        there = [start for start in starts if os.path.lexists(cwd / start)]
        return Code(items=there, digest="", files={}, excess=str(error))
    return Code(items=_items(found.files), digest=found.digest, files=found.files)


class Trust:
    """What one home trusts; any number of these, in any number of processes, may use the same file."""

    def __init__(self, home: Path) -> None:
        """The home must exist before the first change."""
        self._home = home
        self._path = home / FILE

    def state(self, cwd: Path) -> State:
        """Whether the code of `cwd` may be used.

        Raises:
            StorageError: the file cannot be used; nothing is trusted then.
        """
        code = code_of(cwd, home=self._home)
        grant = self._load().get(_key(cwd))
        if grant is not None and code.digest == grant.digest:
            return Trusted(grant.digest)
        if not code.items:
            return NothingToTrust()
        if grant is None:
            return Unknown(code)
        differs = contents.difference(grant.files, code.files)
        files = sorted([*differs.added, *differs.changed, *differs.removed])
        return Changed(code, [] if code.excess else files)

    def grant(self, cwd: Path, *, digest: str | None = None) -> Trusted:
        """Trust the code of `cwd` as it is now, and also when there is none yet.

        `digest` is that of what the person was asked about: the code may have changed while they were thinking.

        Raises:
            NotGrantedError: the code is not of that digest any more, or too much to look at.
            StorageError: the file cannot be used, or not be written.
        """
        code = code_of(cwd, home=self._home)
        if code.excess:
            raise NotGrantedError(f"{code.excess}: it can be trusted with --trust, each time, but not for good")
        if digest not in {None, code.digest}:
            raise NotGrantedError(f"the code of {cwd} has changed since you were asked; look at it again")
        with self._change() as workspaces:
            workspaces[_key(cwd)] = _Grant(code.digest, dict(code.files))
        return Trusted(code.digest)

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

    def update(self, cwd: Path, *, since: str) -> Trusted | None:
        """Trust what became of trusted code while it was live; the new state, None when it is not trusted.

        For a workspace that was `Trusted` when it was opened: `since` is the digest that it had then, or at the last
        update. Nothing happens when that is not what is trusted now: somebody has revoked or granted it meanwhile.
        Call it when the processes of the workspace have started, when they have ended, and when a change was seen
        in between; what changes without any of these, as when the daemon is killed, is asked about.

        Raises:
            StorageError: the file cannot be used, or not be written.
        """
        code = code_of(cwd, home=self._home)
        if code.excess:
            return None
        with self._change() as workspaces:
            grant = workspaces.get(_key(cwd))
            if grant is None or grant.digest != since:
                return None
            workspaces[_key(cwd)] = _Grant(code.digest, dict(code.files))
        return Trusted(code.digest)

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
    return contents.shown(os.fsencode(path))
