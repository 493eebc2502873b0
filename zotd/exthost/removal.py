"""Removes extensions from `$ZOT_HOME/extensions`, and enables or disables them.

A directory that zot did not install may be the only copy, so it is never deleted: it is moved to `extensions/.removed`.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace as with_changes

from zotd.exthost import installed, staging
from zotd.exthost.discovery import is_extension, project_extensions, read_extension
from zotd.exthost.installed import Installed, InstallError
from zotd.exthost.manifest import ManifestError
from zotd.exthost.staging import InstallDirectory
from zotd.paths import make_private_dir
from zotd.sanitize import escaped

REMOVED = ".removed"
"""Directory below `extensions`, because a rename must not cross file systems."""


class Removal(Struct, frozen=True):
    """Result of a removal."""

    name: str
    kept: Path | None
    """New location of a directory that zot did not install, else None."""


def remove(name: str, *, home: Path) -> Removal:
    """Remove an extension and its record; its data directory stays. Does not end its processes.

    `name` is that of the directory or of the manifest. Of a linked directory only the link is removed. Blocks.

    Raises:
        InstallError: the extension was not removed.
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
    """Enable or disable an extension, overriding its manifest, from the next discovery on. Blocks.

    The choice applies to the name in every workspace, but not to paths that are named explicitly. `cwd` is the workspace
    of the client, whose own extensions can be named too.

    Raises:
        InstallError: there is no such extension, or the choice could not be written.
    """
    with installed.locked(home):
        before = installed.load(home)
        places = [installed.extensions(home), *([] if cwd is None else [project_extensions(cwd)])]
        if not any(_name(directory) == name for place in places for directory in _extensions(place)):
            raise InstallError(f"there is no extension {escaped(name)!r}; `zotctl ext list` lists them")
        installed.save(home, with_changes(before, enabled=before.enabled | {name: enabled}))


def put_away(home: Path, directory: Path) -> Path:
    """Move a directory to where no extension is started; return its new path. Call it within `installed.locked`.

    Raises:
        OSError: the directory could not be moved.
    """
    place = installed.extensions(home) / REMOVED
    make_private_dir(str(place))
    kept = Path(tempfile.mkdtemp(prefix=f"{directory.name}.", dir=place))
    # A directory replaces the empty one, whose name is unique; an extension in one file goes into it.
    return directory.rename(kept if directory.is_dir() else kept / directory.name)


def _remove(name: str, home: Path, place: InstallDirectory) -> Removal:
    before = installed.load(home)
    directory = _directory(home, name, before)
    is_ours = directory.is_symlink() or directory.name in before.extensions
    gone = put_away(home, directory) if not is_ours else place.old
    # Moved before the record is saved, so that a failure can still be undone. Staging deletes it afterwards.
    if is_ours and os.path.lexists(directory):
        directory.rename(gone)
    try:
        # Both names: records are stored by directory, choices by the name in the manifest.
        installed.save(home, _without(before, name, directory.name))
    except InstallError:
        if os.path.lexists(gone):
            gone.rename(directory)
        raise
    return Removal(directory.name, None if is_ours else gone)


def _directory(home: Path, name: str, before: Installed) -> Path:
    """Find the directory of an extension; a directory's name has precedence over names in manifests."""
    place = installed.extensions(home)
    if name in before.extensions:
        return place / name
    there = list(_extensions(place))
    found = [directory for directory in there if directory.name == name] or [
        directory for directory in there if _name(directory) == name
    ]
    if not found:
        raise InstallError(f"there is no extension {escaped(name)!r} in {place}; `zotctl ext list` lists them")
    if len(found) > 1:
        raise InstallError(f"{name} is the name of {' and '.join(one.name for one in found)}; use one of these")
    return found[0]


def _extensions(place: Path) -> Iterator[Path]:
    """Yield directories that have a manifest, even an invalid one, and extensions in one file."""
    if place.is_dir():
        yield from (entry for entry in sorted(place.iterdir()) if is_extension(entry))


def _name(directory: Path) -> str | None:
    try:
        return read_extension(directory).name
    except ManifestError:
        return None


def _without(before: Installed, *names: str) -> Installed:
    return Installed(
        {name: record for name, record in before.extensions.items() if name not in names},
        {name: enabled for name, enabled in before.enabled.items() if name not in names},
    )
