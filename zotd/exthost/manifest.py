"""Reads and validates `extension.json` (`docs/extensions.md`)."""

import os
import re
import stat
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from msgspec import UNSET, Struct, UnsetType

from zotd.core.registry import INTERCEPTS
from zotd.exthost import sandbox_check
from zotd.wire.base import BadFrameError, Frozen, convert, decode
from zotd.wire.sandbox import SandboxRequest, WorkspaceAccess

FILE = "extension.json"

MAX_BYTES = 1024 * 1024
"""Longest manifest that is read; usual ones have a few hundred bytes."""

# Also used as a directory and file name, so it has no separators and does not begin with a dot.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

RESERVED_FIELDS = ("transport", "permissions")
"""Reserved for later versions. Ignoring one now would run code with more rights than its author intended."""


class ManifestError(ValueError):
    """The manifest cannot be used. The message is one sentence that names the file."""


class ProcessScope(StrEnum):
    """Which sessions one process of an extension serves."""

    WORKSPACE = "workspace"
    DAEMON = "daemon"


class OnFailure(StrEnum):
    """How a missing answer of a guard counts."""

    OPEN = "open"
    CLOSED = "closed"


class DataPlace(StrEnum):
    """Where an extension keeps its state. `beside` means its own directory and is only used with `--ext`."""

    BESIDE = "beside"
    SEPARATE = "separate"


class ReloadBy(StrEnum):
    """Whether a new process starts beside the old one, or after its end."""

    OVERLAP = "overlap"
    REPLACE = "replace"


class _File(Frozen, frozen=True):
    name: str
    exec: str
    args: tuple[str, ...] = ()
    version: str = ""
    description: str = ""
    language: str = ""
    enabled: bool = True
    skills: tuple[str, ...] = ()
    scope: ProcessScope = ProcessScope.WORKSPACE
    on_failure: dict[str, OnFailure] | UnsetType = UNSET
    env: tuple[str, ...] = ()
    data: DataPlace | UnsetType = UNSET
    reload: ReloadBy = ReloadBy.OVERLAP
    sandbox: SandboxRequest | UnsetType = UNSET


class Manifest(Struct, frozen=True):
    """A validated manifest, or its equivalent for an MCP server or Python modules."""

    directory: Path
    name: str
    argv: tuple[str, ...]
    """Program and arguments; the program is an absolute path or a name to look up in PATH."""
    version: str = ""
    description: str = ""
    language: str = ""
    is_enabled: bool = True
    skills: tuple[Path, ...] = ()
    """Paths inside the directory; they need not exist."""
    scope: ProcessScope = ProcessScope.WORKSPACE
    closed: frozenset[str] = frozenset()
    """Events that are refused if it does not answer."""
    env: tuple[str, ...] = ()
    """Variables that it gets although they are withheld by default."""
    data: DataPlace = DataPlace.SEPARATE
    kept_beside: bool = False
    """It may have state in its own directory, where earlier versions of zot kept it."""
    reload: ReloadBy = ReloadBy.OVERLAP
    sandbox: SandboxRequest | None = None
    """What its program is confined to; None: it has all rights of the user."""
    file: Path | None = None
    """The file it was read from, if that is not an `extension.json`."""
    script: Path | None = None
    """The program of an extension in one file, which has no manifest."""
    saved: str = ""
    """Digest of its files' versions if it is reloaded when they are saved, else empty."""
    granted: str = ""
    """Digest of the trusted code, which each process is checked against. Empty for the user's own extensions."""
    call_limit_s: float | None = None
    """Time limit of its tool calls; None: the configured one."""
    guard_limit_s: float | None = None
    """Time limit of its answers as a guard; None: the configured one."""
    is_patient: bool = False
    """Progress of a call restarts its time limit."""
    host_argv: tuple[str, ...] = ()
    """Beginning of `argv` that names a process which runs many such programs; empty: each has a process of its own."""
    restarts_when_stuck: bool = False
    """Replace its process when a tool times out: it runs tools of several authors, which must not wait for each other."""

    @property
    def ends_with_daemon(self) -> bool:
        """Whether its process cannot be left to the next daemon: several extensions run in it, or it needs the proxy."""
        return bool(self.host_argv) or sandbox_check.needs_proxy(self.sandbox)


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest in `directory`.

    Raises:
        ManifestError: it is missing, unreadable or invalid.
    """
    path = directory / FILE
    try:
        return _judged(directory, _decoded(path))
    except OSError as error:
        raise ManifestError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except (BadFrameError, ValueError) as error:
        raise ManifestError(f"{path}: {error}") from error


def _decoded(path: Path) -> _File:
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a file")  # opening a pipe would wait for a writer
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError("it is over 1 MiB")
    # Decoded untyped first, because the typed decoder skips unknown fields and would not see reserved ones.
    fields = decode(data, dict[str, object])
    for name in RESERVED_FIELDS:
        if name in fields:
            raise ValueError(f"`{name}` is reserved for later versions; remove it")
    # `null` counts as missing. msgspec would reject it for fields that have a default.
    return convert({name: value for name, value in fields.items() if value is not None}, _File)


def _judged(directory: Path, file: _File) -> Manifest:
    if not NAME.fullmatch(file.name):
        raise ValueError(f'the name "{file.name[:80]}" must have 1 to 64 letters, digits, ".", "_" and "-"')
    if not file.exec:
        raise ValueError("`exec` is empty; name the program to start")
    sandbox = _sandbox(file)
    on_failure: Mapping[str, OnFailure] = {} if file.on_failure is UNSET else file.on_failure
    for event in on_failure:
        # An error rather than a warning: a misspelt event would leave the guard open.
        if event not in INTERCEPTS:
            raise ValueError(f'`on_failure` names "{event}"; the events are {", ".join(INTERCEPTS)}')
    return Manifest(
        directory=directory,
        name=file.name,
        argv=(_program(directory, file.exec), *file.args),
        version=file.version,
        description=file.description,
        language=file.language,
        is_enabled=file.enabled,
        skills=tuple(_inside(directory, skill) for skill in file.skills),
        scope=file.scope,
        closed=frozenset(event for event, means in on_failure.items() if means is OnFailure.CLOSED),
        env=file.env,
        data=DataPlace.SEPARATE if file.data is UNSET else file.data,
        # An extension that says `separate` was written for this version and has nothing to copy.
        kept_beside=file.data is not DataPlace.SEPARATE,
        reload=file.reload,
        sandbox=sandbox,
    )


def _sandbox(file: _File) -> SandboxRequest | None:
    if file.sandbox is UNSET:
        return None
    if error := sandbox_check.fault(file.sandbox):
        raise ValueError(error)
    if file.scope is ProcessScope.DAEMON and file.sandbox.workspace is WorkspaceAccess.WRITE:
        raise ValueError('`workspace` of `sandbox` cannot be "write" with the scope "daemon", which has no workspace')
    return file.sandbox


def _program(directory: Path, exec_: str) -> str:
    """Resolve a program with a separator relative to the manifest; a bare name is looked up in PATH later."""
    return str(directory / exec_) if "/" in exec_ else exec_


def _inside(directory: Path, skill: str) -> Path:
    # os.path.realpath because Path.resolve raises on a loop of links and on a NUL. A link out of the directory would let
    # the model read any file as a skill.
    if not Path(os.path.realpath(directory / skill)).is_relative_to(os.path.realpath(directory)):
        raise ValueError(f'the skill "{skill}" is outside of the extension\'s directory')
    return directory / skill
