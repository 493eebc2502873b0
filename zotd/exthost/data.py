"""Where extensions keep their state: `$ZOT_HOME/data`, which nobody signs and no update replaces.

    data/weather                       an extension of the user's
    data/shop@0c5f…/weather            one that a project brings along, by the project's directory
    data/.copied/weather.json          what was copied there from the extension's directory, where earlier versions kept it

A copy is made once, before the first start, and deletes nothing. Everything here blocks.
"""

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from zotd import private_file, tree_digest
from zotd.exthost import installed
from zotd.exthost.discovery import project_extensions
from zotd.exthost.installed import InstallError
from zotd.exthost.manifest import FILE, DataPlace, Manifest
from zotd.exthost.surroundings import Surroundings
from zotd.exthost.tree import is_left_out
from zotd.paths import make_private_dir
from zotd.sanitize import escaped

log = logging.getLogger(__name__)

PLACE = "data"
COPIED = ".copied"

MAX_FILES, MAX_BYTES = 2_000, 64 * 1024 * 1024
"""What is copied of one extension; one with more is left as it is, and its log says so."""

CODE = frozenset({".py", ".pyc", ".js", ".mjs", ".cjs", ".ts", ".go", ".rs", ".rb", ".sh", ".so", ".md"})
"""Endings of files that are no state, where it is not recorded which files were installed."""

LIBRARIES = frozenset({"node_modules", "zot_sdk", ".venv", "venv"})


def place(manifest: Manifest, *, home: Path, cwd: Path, is_explicit: bool) -> Path:
    """The directory for the state of an extension, which need not exist. `is_explicit`: it was named with `--ext`."""
    if is_explicit and manifest.data is DataPlace.BESIDE:
        return manifest.directory
    if _is_of_project(manifest, home, cwd):
        return home / PLACE / workspace(cwd) / manifest.name
    return home / PLACE / manifest.name


def made(manifest: Manifest, where: Surroundings, say: Callable[[str], None]) -> str:
    """The directory for the state of an extension, which is there now; `say` is told when it could not be made."""
    path = place(manifest, home=where.home, cwd=Path(where.cwd), is_explicit=where.is_explicit)
    if path != manifest.directory:
        try:
            make_private_dir(str(path))
        except OSError as error:
            say(f"the directory {path} could not be made: {error.strerror}")
    return str(path)


def workspace(cwd: Path) -> str:
    """The name of a project's directory of data: no extension has an `@` in its name."""
    real = os.path.realpath(cwd)
    return f"{os.path.basename(real)[:60]}@{hashlib.sha256(os.fsencode(real)).hexdigest()[:16]}"  # noqa: PTH119


def prepare(manifests: Iterable[Manifest], *, home: Path, cwd: Path, is_explicit: bool = False) -> None:
    """Copy what these extensions have kept in their directories, once for each."""
    for manifest in manifests:
        if not manifest.kept_beside or not os.path.isfile(manifest.directory / FILE):  # noqa: PTH113
            continue
        target = place(manifest, home=home, cwd=cwd, is_explicit=is_explicit)
        if target == manifest.directory or os.path.lexists(target):
            continue
        try:
            copy(manifest, target, home=home)
        except (OSError, InstallError, tree_digest.TreeTooLargeError) as error:
            log.warning(
                "what %s keeps in %s was not copied to %s: %s", manifest.name, manifest.directory, target, error
            )


def copy(manifest: Manifest, target: Path, *, home: Path) -> None:
    """Copy the state of an extension from its directory to `target`, which does not exist, and note what that was.

    Raises:
        OSError: it could not be copied; `target` does not exist then.
        InstallError: it is not known what was installed.
        TooMuchError: there is more than `MAX_FILES` or `MAX_BYTES`.
    """
    files = list(_state(manifest, home))
    if len(files) > MAX_FILES or sum((manifest.directory / path).stat().st_size for path in files) > MAX_BYTES:
        raise tree_digest.TreeTooLargeError(
            f"there are more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB; copy them by hand"
        )
    if not files:
        return
    make_private_dir(str(target.parent))
    new = target.with_name(f".{target.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    make_private_dir(str(new))
    for path in files:
        make_private_dir(str((new / path).parent))
        shutil.copyfile(manifest.directory / path, new / path, follow_symlinks=False)
        (new / path).chmod(0o600)
    digests = tree_digest.scan(manifest.directory).digests
    _note(target, home, {path: digests[path] for path in files if path in digests})
    new.rename(target)
    log.info("%d files that %s kept in %s were copied to %s", len(files), manifest.name, manifest.directory, target)


def written(directory: Path, record: installed.InstallRecord, *, home: Path) -> list[str]:
    """Files that an installed extension has in its directory and that were neither installed nor copied, in order.

    Raises:
        TooMuchError: there is too much to look at.
    """
    found = tree_digest.scan(directory)
    differs = tree_digest.difference(record.files, found.files)
    copied = _noted(home / PLACE / directory.name, home)
    return sorted(path for path in (*differs.added, *differs.changed) if copied.get(path) != found.digests[path])


def delete(name: str, *, home: Path) -> bool:
    """Delete the state of the user's extension `name`; False when there was none."""
    target = home / PLACE / name
    with suppress(FileNotFoundError):
        _notes(target, home).unlink()
    if not target.is_dir() or target.is_symlink():
        return False
    shutil.rmtree(target)
    return True


def _is_of_project(manifest: Manifest, home: Path, cwd: Path) -> bool:
    place = project_extensions(cwd)
    return manifest.directory.parent == place and os.path.realpath(place) != os.path.realpath(home / "extensions")


def _state(manifest: Manifest, home: Path) -> Iterator[str]:
    """Files in the extension's directory that are its state: what was not installed, or does not look like code."""
    directory = manifest.directory
    record = None
    if directory.parent == installed.extensions(home):
        record = installed.load(home).extensions.get(directory.name)
    found = tree_digest.scan(directory)
    if record is not None:
        differs = tree_digest.difference(record.files, found.files)
        candidates = sorted([*differs.added, *differs.changed])
    else:
        candidates = [path for path in found.files if _looks_like_state(directory, path)]
    for path in candidates:
        if not is_left_out(path) and not (directory / path).is_symlink() and (directory / path).is_file():
            yield path


def _looks_like_state(directory: Path, path: str) -> bool:
    parts = path.split("/")
    if path == FILE or any(part in LIBRARIES for part in parts):
        return False
    return os.path.splitext(path)[1] not in CODE and not os.access(directory / path, os.X_OK)  # noqa: PTH122


def _notes(target: Path, home: Path) -> Path:
    name = "@".join(target.relative_to(home / PLACE).parts)
    return home / PLACE / COPIED / f"{name}.json"


def _note(target: Path, home: Path, digests: Mapping[str, str]) -> None:
    path = _notes(target, home)
    make_private_dir(str(path.parent))
    private_file.write(path, msgspec.json.encode(dict(digests)) + b"\n")


def _noted(target: Path, home: Path) -> dict[str, str]:
    try:
        content = private_file.read(_notes(target, home))
        return {} if content is None else msgspec.json.decode(content, type=dict[str, str])
    except (OSError, msgspec.MsgspecError):
        return {}


def shown(files: list[str]) -> str:
    """Some of these names, for a sentence."""
    named = ", ".join(escaped(path) for path in files[: installed.SHOWN_FILES])
    more = len(files) - installed.SHOWN_FILES
    return f"{named} and {more} more" if more > 0 else named
