"""`extension.json`, read and judged (`docs/extensions.md`)."""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from msgspec import UNSET, UnsetType

from zotd.core.registry import INTERCEPTS
from zotd.wire.base import BadFrameError, Frozen, convert, decode

FILE = "extension.json"

MAX_BYTES = 1024 * 1024
"""Longest manifest that is read: a few hundred bytes are usual."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

RESERVED_FIELDS = ("transport", "permissions")
"""Will mean something one day; ignoring one now would run code with more rights than its author wrote down."""


class ManifestError(ValueError):
    """This is no extension that can be used; the message is one sentence that names the file."""


class ProcessScope(StrEnum):
    """What one process of an extension serves."""

    WORKSPACE = "workspace"
    DAEMON = "daemon"


class OnFailure(StrEnum):
    """What a guard that does not answer means."""

    OPEN = "open"
    CLOSED = "closed"


class DataPlace(StrEnum):
    """Where an extension's state goes: `beside`, its own directory, counts only for `--ext`."""

    BESIDE = "beside"
    SEPARATE = "separate"


class ReloadBy(StrEnum):
    """How a new process takes over."""

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


@dataclass(frozen=True, slots=True)
class Manifest:
    """An extension as its author describes it."""

    directory: Path
    name: str
    argv: tuple[str, ...]
    """What to start; the first one is an absolute path or a word to be looked up on PATH."""
    version: str = ""
    description: str = ""
    language: str = ""
    is_enabled: bool = True
    skills: tuple[Path, ...] = ()
    """Inside of the directory; they need not exist."""
    scope: ProcessScope = ProcessScope.WORKSPACE
    closed: frozenset[str] = frozenset()
    """Events that it refuses when it does not answer."""
    env: tuple[str, ...] = ()
    """Variables that it gets although they are withheld."""
    data: DataPlace = DataPlace.SEPARATE
    kept_beside: bool = False
    """Earlier versions had it keep its state in its directory."""
    reload: ReloadBy = ReloadBy.OVERLAP
    file: Path | None = None
    """What it was read from, where that is no `extension.json`."""
    granted: str = ""
    """A digest of what a person has trusted of it; each process is checked against it. Empty: the user's own."""
    call_limit_s: float | None = None
    """Longest a call of its tools may take; None: as configured."""
    is_patient: bool = False
    """Progress of a call sets its time limit back."""
    restarts_when_stuck: bool = False
    """A new process takes over when a tool has not answered in time: ours, whose tools are not its own."""


def read_manifest(directory: Path) -> Manifest:
    """The manifest in `directory`.

    Raises:
        ManifestError: it cannot be read, or says something that is not allowed.
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
    fields = decode(data, dict[str, object])
    for name in RESERVED_FIELDS:
        if name in fields:
            raise ValueError(f"`{name}` is reserved for later versions; remove it")
    return convert({name: value for name, value in fields.items() if value is not None}, _File)


def _judged(directory: Path, file: _File) -> Manifest:
    if not NAME.fullmatch(file.name):
        raise ValueError(f'the name "{file.name[:80]}" must have 1 to 64 letters, digits, ".", "_" and "-"')
    if not file.exec:
        raise ValueError("`exec` is empty; name the program to start")
    on_failure: Mapping[str, OnFailure] = {} if file.on_failure is UNSET else file.on_failure
    for event in on_failure:
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
        kept_beside=file.data is not DataPlace.SEPARATE,
        reload=file.reload,
    )


def _program(directory: Path, exec_: str) -> str:
    """Absolute as it is; with a separator from the manifest's directory; a bare word as it is, for PATH."""
    return str(directory / exec_) if "/" in exec_ else exec_


def _inside(directory: Path, skill: str) -> Path:
    # os.path.realpath, for Path.resolve raises on a loop of links, and on a NUL.
    if not Path(os.path.realpath(directory / skill)).is_relative_to(os.path.realpath(directory)):
        raise ValueError(f'the skill "{skill}" is outside of the extension\'s directory')
    return directory / skill
