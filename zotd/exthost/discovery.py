"""Which extensions there are, in the order that decides every conflict (`docs/extensions.md`).

explicit paths > <cwd>/.zot/extensions/*/ > $ZOT_HOME/extensions/*/       inside each: by directory name

Whether one is started is what its user has said (`zotd.exthost.installed.choices`), else what its manifest says. An
explicit path is its user's word, too.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zotd.exthost import installed
from zotd.exthost.installed import InstallError
from zotd.exthost.manifest import FILE, Manifest, ManifestError, read_manifest

RESERVED = frozenset({"tools", "channels"})
"""Directories of Python modules, which are no extensions."""


@dataclass(frozen=True, slots=True)
class Shadowed:
    """An extension that is not used because one of its name comes before it."""

    manifest: Manifest
    by: Path


@dataclass(slots=True)
class Discovered:
    """Extensions found in all places, and those that cannot be used."""

    manifests: list[Manifest] = field(default_factory=list)
    """To be started, in load order."""
    disabled: list[Manifest] = field(default_factory=list)
    shadowed: list[Shadowed] = field(default_factory=list)
    errors: dict[Path, str] = field(default_factory=dict)
    """A sentence for each directory that cannot be used."""
    is_untrusted: bool = False
    """The working directory has extensions that are not used because nobody trusts it."""
    keeps: Callable[[Manifest], bool] = lambda _: False
    """Whether one that runs goes on as it is, though it would not be started: its code has changed unasked."""


def project_extensions(cwd: Path) -> Path:
    """Where a project keeps its extensions."""
    return cwd / ".zot" / "extensions"


def discover(
    *, explicit: Sequence[Path], cwd: Path | None, home: Path | None, is_trusted: Callable[[Path], bool]
) -> Discovered:
    """Read all manifests. `cwd` None: no project; `home` None: nothing that is installed. Blocks for some file reads.

    `is_trusted` is asked about `cwd`, and only when it has extensions of its own.
    """
    found = Discovered()
    for path in explicit:
        _take(found, path.parent if path.name == FILE else path, {})
    choices = {} if home is None else _choices(found, home)
    for directory in _directories(found, cwd, home, is_trusted):
        _take(found, directory, choices)
    return found


def is_extension(entry: Path) -> bool:
    """Whether an entry of `extensions` is meant to be one; its manifest may be broken."""
    return entry.name not in RESERVED and _has_manifest(entry)


def is_directory(path: Path) -> bool:
    """Whether it is one, as far as can be seen: `Path.is_dir` raises where we may not look, or the path is too long."""
    return os.path.isdir(path)  # noqa: PTH112


def _choices(found: Discovered, home: Path) -> Mapping[str, bool] | None:
    """What the user has said, by name; None when that cannot be read, and anything might be switched off."""
    try:
        return installed.choices(home)
    except InstallError as error:
        found.errors[home / installed.FILE] = f"{error}; until then only extensions with an explicit path are started"
        return None


def _directories(
    found: Discovered, cwd: Path | None, home: Path | None, is_trusted: Callable[[Path], bool]
) -> Iterator[Path]:
    ours = home / "extensions" if home is not None else None
    # The home of all may be opened as a project, too.
    if cwd is not None and (ours is None or os.path.realpath(project_extensions(cwd)) != os.path.realpath(ours)):
        project = _in(found, project_extensions(cwd))
        if project and not is_trusted(cwd):
            found.is_untrusted = True
        else:
            yield from project
    if ours is not None:
        yield from _in(found, ours)


def _in(found: Discovered, location: Path) -> list[Path]:
    """Extension directories of one location, by name; a directory without a manifest is none."""
    try:
        entries = sorted(location.iterdir(), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        found.errors[location] = f"{location} cannot be read: {(error.strerror or str(error)).lower()}"
        return []
    return [entry for entry in entries if is_extension(entry)]


def _has_manifest(directory: Path) -> bool:
    return os.path.isfile(directory / FILE)  # noqa: PTH113  (Path.is_file raises where we may not look)


def _take(found: Discovered, directory: Path, choices: Mapping[str, bool] | None) -> None:
    directory = directory.absolute()
    try:
        manifest = read_manifest(directory)
    except ManifestError as error:
        found.errors[directory] = str(error)
        return
    earlier = next((one for one in (*found.manifests, *found.disabled) if one.name == manifest.name), None)
    if earlier is not None:
        if earlier.directory != manifest.directory:
            found.shadowed.append(Shadowed(manifest, earlier.directory))
    elif choices is not None and choices.get(manifest.name, manifest.is_enabled):
        found.manifests.append(manifest)
    else:
        found.disabled.append(manifest)
