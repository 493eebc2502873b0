"""Removing an extension from `$ZOT_HOME/extensions`, and switching one on and off.

What we did not install is never deleted, for nobody could get it back: it is moved to `extensions/.removed`.
"""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace as with_changes

from zotd.exthost import installed, staging
from zotd.exthost.discovery import is_extension, project_extensions
from zotd.exthost.installed import Installed, InstallError
from zotd.exthost.manifest import ManifestError, read_manifest
from zotd.exthost.staging import InstallDirectory
from zotd.paths import make_private_dir
from zotd.sanitize import escaped

REMOVED = ".removed"
"""Below `extensions`, for renaming must not cross file systems."""


@dataclass(frozen=True, slots=True)
class Removal:
    """Result of a removal."""

    name: str
    kept: Path | None
    """Where it is now, when we had not installed it."""


def remove(name: str, *, home: Path) -> Removal:
    """Remove an extension, and what was recorded about it; its data directory stays. Does not end its processes.

    `name` is its directory's or its manifest's. A linked directory is unlinked and otherwise untouched. Blocks.

    Raises:
        InstallError: it was not removed.
    """
    place = staging.open_staging(home)
    try:
        with installed.locked(home):
            return _remove(name, home, place)
    except OSError as error:
        raise InstallError(f"{name} was not removed: {(error.strerror or str(error)).lower()}") from error
    finally:
        place.discard()


def set_enabled(name: str, enabled: bool, *, home: Path, cwd: Path | None = None) -> None:
    """Have an extension started or not, whatever its manifest says; from the next discovery on. Blocks.

    The choice is about the name, in every workspace; paths that are named explicitly are beyond it. `cwd` is the
    workspace of who wants it, whose own extensions can be switched, too.

    Raises:
        InstallError: there is no such extension, or the choice could not be written.
    """
    with installed.locked(home):
        before = installed.load(home)
        places = [installed.extensions(home), *([] if cwd is None else [project_extensions(cwd)])]
        if not any(_name(directory) == name for place in places for directory in _extensions(place)):
            raise InstallError(f"there is no extension {escaped(name)!r}")
        installed.save(home, with_changes(before, enabled=before.enabled | {name: enabled}))


def put_away(home: Path, directory: Path) -> Path:
    """Move what we did not install to where nothing is started; the new place. Inside of `installed.locked`.

    Raises:
        OSError: it could not be moved.
    """
    place = installed.extensions(home) / REMOVED
    make_private_dir(str(place))
    kept = Path(tempfile.mkdtemp(prefix=f"{directory.name}.", dir=place))
    return directory.rename(kept)  # over an empty directory


def _remove(name: str, home: Path, place: InstallDirectory) -> Removal:
    before = installed.load(home)
    directory = _directory(home, name, before)
    is_ours = directory.is_symlink() or directory.name in before.extensions
    gone = put_away(home, directory) if not is_ours else place.old
    if is_ours and os.path.lexists(directory):
        directory.rename(gone)
    try:
        installed.save(home, _without(before, name, directory.name))
    except InstallError:
        if os.path.lexists(gone):
            gone.rename(directory)
        raise
    return Removal(directory.name, None if is_ours else gone)


def _directory(home: Path, name: str, before: Installed) -> Path:
    """Where the extension is, or was; a directory's own name comes before what manifests say."""
    place = installed.extensions(home)
    if name in before.extensions:
        return place / name
    there = list(_extensions(place))
    found = [directory for directory in there if directory.name == name] or [
        directory for directory in there if _name(directory) == name
    ]
    if not found:
        raise InstallError(f"there is no extension {escaped(name)!r} in {place}")
    if len(found) > 1:
        raise InstallError(f"{name} is the name of {' and '.join(one.name for one in found)}; use one of these")
    return found[0]


def _extensions(place: Path) -> Iterator[Path]:
    """Directories that have a manifest, also one that cannot be read."""
    if place.is_dir():
        yield from (entry for entry in sorted(place.iterdir()) if is_extension(entry))


def _name(directory: Path) -> str | None:
    try:
        return read_manifest(directory).name
    except ManifestError:
        return None


def _without(before: Installed, *names: str) -> Installed:
    return Installed(
        {name: record for name, record in before.extensions.items() if name not in names},
        {name: enabled for name, enabled in before.enabled.items() if name not in names},
    )
