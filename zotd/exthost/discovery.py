"""Which extensions there are, in the order that decides every conflict (`docs/extensions.md`).

explicit paths > <cwd>/.zot/extensions/*/ > $ZOT_HOME/extensions/*/       inside each: by directory name
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
    """What there is."""

    manifests: list[Manifest] = field(default_factory=list)
    """To be started, in load order."""
    disabled: list[Manifest] = field(default_factory=list)
    shadowed: list[Shadowed] = field(default_factory=list)
    errors: dict[Path, str] = field(default_factory=dict)
    """A sentence for each directory that cannot be used."""
    is_untrusted: bool = False
    """The working directory has extensions that are not used because nobody trusts it."""


def project_extensions(cwd: Path) -> Path:
    """Where a project keeps its extensions."""
    return cwd / ".zot" / "extensions"


def discover(
    *, explicit: Sequence[Path], cwd: Path | None, home: Path, is_trusted: Callable[[Path], bool]
) -> Discovered:
    """Read all manifests. `cwd` None: no project (extensions of scope `daemon`). Blocks for some file reads.

    `is_trusted` is asked about `cwd`, and only when it has extensions of its own.
    """
    found = Discovered()
    for path in explicit:
        _take(found, path.parent if path.name == FILE else path)
    for directory in _directories(found, cwd, home, is_trusted):
        _take(found, directory)
    return found


def _directories(found: Discovered, cwd: Path | None, home: Path, is_trusted: Callable[[Path], bool]) -> Iterator[Path]:
    ours = home / "extensions"
    # The home of all may be opened as a project, too.
    if cwd is not None and os.path.realpath(project_extensions(cwd)) != os.path.realpath(ours):
        project = _in(found, project_extensions(cwd))
        if project and not is_trusted(cwd):
            found.is_untrusted = True
        else:
            yield from project
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
    return [entry for entry in entries if entry.name not in RESERVED and _has_manifest(entry)]


def _has_manifest(directory: Path) -> bool:
    return os.path.isfile(directory / FILE)  # noqa: PTH113  (Path.is_file raises where we may not look)


def _take(found: Discovered, directory: Path) -> None:
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
    elif manifest.is_enabled:
        found.manifests.append(manifest)
    else:
        found.disabled.append(manifest)
