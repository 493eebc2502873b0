"""Finds extensions, in the load order that decides every conflict (`docs/extensions.md`).

explicit paths > <cwd>/.zot/extensions/* > $ZOT_HOME/extensions/*       directories and `*.py`; inside each: by name

The user's choice (`zotd.exthost.installed.choices`) decides whether an extension is started, else its manifest. One that
is named by an explicit path is always started.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from zotd.exthost import installed
from zotd.exthost.installed import InstallError
from zotd.exthost.manifest import FILE, Manifest, ManifestError, read_manifest
from zotd.exthost.scripts import RESERVED, is_script, script_manifest


class Shadowed(Struct, frozen=True):
    """An extension that is not used because an earlier one has the same name."""

    manifest: Manifest
    by: Path


class Discovered(Struct):
    """Extensions of all locations, and the reasons why others cannot be used."""

    manifests: list[Manifest] = field(default_factory=list)
    """To be started, in load order."""
    disabled: list[Manifest] = field(default_factory=list)
    shadowed: list[Shadowed] = field(default_factory=list)
    errors: dict[Path, str] = field(default_factory=dict)
    """The reason for each directory that cannot be used."""
    is_untrusted: bool = False
    """The working directory has extensions that are not used because it is not trusted."""
    keeps: Callable[[Manifest], bool] = lambda _: False
    """Whether a running extension may continue although it would not be started: its code changed without a grant."""


def project_extensions(cwd: Path) -> Path:
    """Return the directory in which a project keeps its extensions."""
    return cwd / ".zot" / "extensions"


def discover(
    *, explicit: Sequence[Path], cwd: Path | None, home: Path | None, is_trusted: Callable[[Path], bool]
) -> Discovered:
    """Read all manifests. `cwd` None: no project; `home` None: no installed ones. Blocks for some file reads.

    `is_trusted` is called with `cwd`, and only if that has extensions: the check reads all files.
    """
    found = Discovered()
    for path in explicit:
        # Without choices: an explicit path is started even if the user has disabled the name elsewhere.
        _take(found, path.parent if path.name == FILE else path, {})
    choices = {} if home is None else _choices(found, home)
    for directory in _directories(found, cwd, home, is_trusted):
        _take(found, directory, choices)
    return found


def is_extension(entry: Path) -> bool:
    """Return True if an entry of `extensions` has a manifest, which may be invalid, or is an extension in one file."""
    return (entry.name not in RESERVED and _has_manifest(entry)) or is_script(entry)


def read_extension(path: Path) -> Manifest:
    """Return the manifest in a directory, or what it would be for an extension in one file. Raises ManifestError."""
    return script_manifest(path) if is_script(path) else read_manifest(path)


def is_directory(path: Path) -> bool:
    """Like `Path.is_dir`, but False instead of an error if access is denied or the path is too long."""
    return os.path.isdir(path)  # noqa: PTH112


def _choices(found: Discovered, home: Path) -> Mapping[str, bool] | None:
    """Return the user's choices by name, or None if they cannot be read: any extension might then be disabled."""
    try:
        return installed.choices(home)
    except InstallError as error:
        found.errors[home / installed.FILE] = f"{error}; until then only extensions with an explicit path are started"
        return None


def _directories(
    found: Discovered, cwd: Path | None, home: Path | None, is_trusted: Callable[[Path], bool]
) -> Iterator[Path]:
    ours = home / "extensions" if home is not None else None
    # If the home itself is opened as a project, its extensions must not be found twice.
    if cwd is not None and (ours is None or os.path.realpath(project_extensions(cwd)) != os.path.realpath(ours)):
        project = _in(found, project_extensions(cwd))
        if project and not is_trusted(cwd):
            found.is_untrusted = True
        else:
            yield from project
    if ours is not None:
        yield from _in(found, ours)


def _in(found: Discovered, location: Path) -> list[Path]:
    """List the extensions of one location, directories and files, sorted by name."""
    try:
        entries = sorted(location.iterdir(), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        found.errors[location] = f"{location} cannot be read: {(error.strerror or str(error)).lower()}"
        return []
    return [entry for entry in entries if is_extension(entry)]


def _has_manifest(directory: Path) -> bool:
    return os.path.isfile(directory / FILE)  # noqa: PTH113  (Path.is_file raises if access is denied)


def _take(found: Discovered, directory: Path, choices: Mapping[str, bool] | None) -> None:
    directory = directory.absolute()
    try:
        manifest = read_extension(directory)
    except ManifestError as error:
        found.errors[directory] = str(error)
        return
    earlier = next((one for one in (*found.manifests, *found.disabled) if one.name == manifest.name), None)
    if earlier is not None:
        # The same directory twice is no conflict: -e may name an installed extension.
        if (earlier.directory, earlier.script) != (manifest.directory, manifest.script):
            found.shadowed.append(Shadowed(manifest, earlier.directory))
    # Without readable choices nothing is started that the user might have disabled.
    elif choices is not None and choices.get(manifest.name, manifest.is_enabled):
        found.manifests.append(manifest)
    else:
        found.disabled.append(manifest)
