"""Installing an extension into `$ZOT_HOME/extensions` (`docs/decisions/0008-installing-and-trust.md`).

    a directory ─────────────────────────┐
                                         ├─> tree.judged ─> staging ─> manifest, digest ─> recorded, in its place
    a repository ─> clone (git, no files)┘

Nothing is built and nothing is run. An installation is atomic, even if the process is killed.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace as with_changes

from zotd import tree_digest
from zotd.exthost import data, installed, mcp, modules, staging, tree
from zotd.exthost.clone import Clone
from zotd.exthost.installed import InstallError, InstallRecord
from zotd.exthost.manifest import Manifest, ManifestError, read_manifest
from zotd.exthost.removal import put_away
from zotd.exthost.scripts import RESERVED
from zotd.exthost.source import Directory, Repository, Source, parse
from zotd.exthost.staging import InstallDirectory
from zotd.sanitize import escaped

OUR_PREFIXES = (mcp.PREFIX, modules.PREFIX)
"""Prefixes of extensions that zot creates itself; an installed one with such a name could replace one of them."""


class Installation(Struct, frozen=True):
    """Result of an installation."""

    manifest: Manifest
    record: InstallRecord
    previous: InstallRecord | None
    """Record of the replaced extension. If its `commit` differs for the same `ref`, the branch or tag has moved."""
    kept: Path | None
    """New location of a replaced extension that was not installed by zot, or was changed after its installation."""


Progress = Callable[[str], None]
"""Called with a description of each step, on the event loop."""


async def install(
    text: str,
    *,
    home: Path,
    cwd: Path,
    env: Mapping[str, str],
    replace: bool = False,
    progress: Progress = lambda _: None,
) -> Installation:
    """Install the extension that `text` names (see `zotd.exthost.source`). `cwd` and `env` are those of the client.

    An installed extension of that name is replaced if it has the same source and was not modified, or with `replace`. Its
    data stays (`zotd.exthost.data`), and a copy is kept of a directory that holds more than was installed. The extension
    is not started, and a choice of the user to disable it stays in effect.

    May be cancelled while git runs; after that, the installation continues in a thread.

    Raises:
        InstallError: the extension was not installed.
    """
    source = parse(text, cwd=cwd)
    try:
        return await _install(_Order(home, source, replace), env, progress)
    except InstallError as error:
        raise InstallError(f"{escaped(source.location)} was not installed: {error}") from error
    except OSError as error:
        raise InstallError(f"{escaped(source.location)} was not installed: {_reason(error)}") from error


class _Order(Struct, frozen=True):
    home: Path
    source: Source
    replace: bool


_Fill = Callable[[Path], None]
"""Creates a directory and writes the files into it."""


async def _install(order: _Order, env: Mapping[str, str], progress: Progress) -> Installation:
    place = await asyncio.to_thread(staging.open_staging, order.home)
    try:
        if isinstance(order.source, Directory):
            progress(f"copying {escaped(order.source.location)}")
            commit, fill = "", _copy_of(order.source.path)
        else:
            commit, fill = await _fetch(order.source, place, env, progress)
    except BaseException:
        await asyncio.to_thread(place.discard)
        raise
    # From here on the thread owns the staging directory. If the thread never starts, the next process that opens the
    # staging area cleans up.
    return await asyncio.to_thread(_finish, order, place, fill, commit)


async def _fetch(
    source: Repository, place: InstallDirectory, env: Mapping[str, str], progress: Progress
) -> tuple[str, _Fill]:
    """Fetch a repository; return the commit id and a function that writes the files."""
    directory = place.path / "clone"
    directory.mkdir()
    clone = Clone(directory, env)
    progress(f"fetching {source.location}")
    commit = await clone.fetch(source)
    listing = await clone.list(commit)
    if listing.submodules:
        progress(f"skipping submodules: {escaped(', '.join(listing.submodules)[:200])}")
    entries = tree.judged(listing.entries)
    progress(f"unpacking {len(entries)} files, {sum(entry.size for entry in entries) >> 10} KiB, of commit {commit}")
    await clone.unpack(entries)
    return commit, lambda new: tree.write(new, clone.read(entries))


def _copy_of(directory: Path) -> _Fill:
    def fill(new: Path) -> None:
        _manifest(directory)  # fail early: `directory` may be a large one, named by mistake
        entries = tree.judged(tree.walk(directory))
        tree.write(new, ((entry, tree.read(directory, entry)) for entry in entries))

    return fill


def _finish(order: _Order, place: InstallDirectory, fill: _Fill, commit: str) -> Installation:
    try:
        fill(place.new)
        # Read from the copy, which nothing can change any more; the source may have changed since.
        manifest = _manifest(place.new)
        found = tree_digest.scan(place.new)
        ref = order.source.ref if isinstance(order.source, Repository) else ""
        record = InstallRecord(order.source.location, ref, commit, found.digest, dict(found.files), place.name)
        # Only the final step is locked: copying or fetching may take minutes, and other commands must not wait for
        # it.
        with installed.locked(order.home):
            staging.recover_locked(order.home)
            return _commit(order, place, manifest.name, record)
    finally:
        place.discard()


def _manifest(directory: Path) -> Manifest:
    try:
        manifest = read_manifest(directory)
    except ManifestError as error:
        raise InstallError(str(error).replace(f"{directory}/", "its ", 1)) from error
    # Compared without case, because file systems of macOS ignore it.
    if manifest.name.casefold() in RESERVED:
        raise InstallError(f'the name "{manifest.name}" is reserved for Python modules')
    if manifest.name.casefold().startswith(OUR_PREFIXES):
        raise InstallError(
            f'the name "{manifest.name}" begins with {" or ".join(OUR_PREFIXES)}, as the names of MCP servers and '
            "Python modules do; choose another one"
        )
    return manifest


def _commit(order: _Order, place: InstallDirectory, name: str, record: InstallRecord) -> Installation:
    home = order.home
    # The record is saved before the directories are swapped: after a crash, `staging.recover` finds it and finishes
    # the swap.
    before = installed.load(home)
    previous = before.extensions.get(name)
    directory = installed.extensions(home) / name
    _check_free(order, directory, previous)
    is_there = directory.is_dir() and not directory.is_symlink()
    is_touched = previous is not None and is_there and _is_touched(order, directory, previous)
    kept = put_away(home, directory) if is_there and (previous is None or is_touched) else None
    try:
        installed.save(home, with_changes(before, extensions=before.extensions | {name: record}))
        staging.swap(directory, place.path)
    except BaseException:
        if kept is not None:
            kept.rename(directory)
        with suppress(InstallError):  # if it was not written, it is unchanged
            installed.save(home, before)
        raise
    return Installation(read_manifest(directory), record, previous, kept)


def _is_touched(order: _Order, directory: Path, previous: InstallRecord) -> bool:
    """Return True if the directory differs from what was installed, so that a copy has to be kept.

    Raises:
        InstallError: files would be lost that are not copied to the data directory, and `replace` was not given.
    """
    # State that the extension kept beside its program is saved first; it must not prevent the update.
    with suppress(ManifestError):
        data.prepare([read_manifest(directory)], home=order.home, cwd=order.home)
    try:
        found = tree_digest.scan(directory)
        left = data.written(directory, previous, home=order.home)
    except tree_digest.TreeTooLargeError as error:
        found, left = None, [str(error)]
    if left and not order.replace:
        raise InstallError(
            f"{directory.name} has files that were added or changed after the installation ({data.shown(left)}); "
            "move them away, or use --force, which keeps a copy of them"
        )
    return found is None or found.digest != previous.digest


def _check_free(order: _Order, directory: Path, previous: InstallRecord | None) -> None:
    """Raise InstallError if the new extension must not be placed at `directory`."""
    # On a file system that ignores case, the two names would be the same directory.
    for other in directory.parent.iterdir():
        if other.name != directory.name and tree.folded(other.name) == tree.folded(directory.name):
            raise InstallError(f"{directory.name} and {other.name}, which is there already, differ only in case")
    if order.replace or not os.path.lexists(directory):
        return
    if previous is None:
        raise InstallError(f"{directory} exists already and was not installed; remove or replace it")
    if previous.source != order.source.location:
        came_from = escaped(previous.source)
        raise InstallError(f"{directory.name} exists already, from {came_from}; remove or replace it")


def _reason(error: OSError) -> str:
    name = f": {escaped(str(error.filename))}" if error.filename else ""
    return f"{(error.strerror or str(error)).lower()}{name}"
