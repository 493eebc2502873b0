"""State of extensions in `$ZOT_HOME/data`, which is not part of trusted code and which updates do not replace.

    data/weather                       an extension in the home
    data/shop@0c5f…/weather            an extension of a project, by the project's directory
    data/.copied/weather.json          digests of files copied from the extension's directory, where earlier versions kept state

A copy is made once, before the first start, and deletes nothing. All functions block.
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
"""Limits of a copy. State beyond them is not copied, and the log says so."""

CODE = frozenset({".py", ".pyc", ".js", ".mjs", ".cjs", ".ts", ".go", ".rs", ".rb", ".sh", ".so", ".md"})
"""Suffixes of code, used where no record says which files were installed."""

# Their files have any suffix, and thousands of them would be copied as state.
LIBRARIES = frozenset({"node_modules", "zot_sdk", ".venv", "venv"})


def place(manifest: Manifest, *, home: Path, cwd: Path, is_explicit: bool) -> Path:
    """Return the directory for an extension's state, which need not exist. `is_explicit`: it was named with `--ext`."""
    # Only with -e: anywhere else, files written beside the code would change what was trusted or installed.
    if is_explicit and manifest.data is DataPlace.BESIDE:
        return manifest.directory
    if _is_of_project(manifest, home, cwd):
        return home / PLACE / workspace(cwd) / manifest.name
    return home / PLACE / manifest.name


def made(manifest: Manifest, where: Surroundings, say: Callable[[str], None]) -> str:
    """Create the directory for an extension's state and return it; pass an error to `say`."""
    path = place(manifest, home=where.home, cwd=Path(where.cwd), is_explicit=where.is_explicit)
    if path != manifest.directory:
        try:
            make_private_dir(str(path))
        except OSError as error:
            # The extension starts anyway: many keep no state, and the others get the error when they write.
            say(f"the directory {path} could not be made: {error.strerror}")
    return str(path)


def workspace(cwd: Path) -> str:
    """Name a project's data directory. It contains `@`, which no extension's name does, so the two cannot collide."""
    # The digest distinguishes projects of the same name; the name is for people who look into the directory.
    real = os.path.realpath(cwd)
    return f"{os.path.basename(real)[:60]}@{hashlib.sha256(os.fsencode(real)).hexdigest()[:16]}"  # noqa: PTH119


def prepare(manifests: Iterable[Manifest], *, home: Path, cwd: Path, is_explicit: bool = False) -> None:
    """Copy the state that these extensions keep in their own directories, once for each."""
    for manifest in manifests:
        if not manifest.kept_beside or not os.path.isfile(manifest.directory / FILE):  # noqa: PTH113
            continue
        target = place(manifest, home=home, cwd=cwd, is_explicit=is_explicit)
        # An existing target means that the copy was made, or that the extension has already stored new state.
        if target == manifest.directory or os.path.lexists(target):
            continue
        try:
            copy(manifest, target, home=home)
        except (OSError, InstallError, tree_digest.TreeTooLargeError) as error:
            log.warning(
                "what %s keeps in %s was not copied to %s: %s", manifest.name, manifest.directory, target, error
            )


def copy(manifest: Manifest, target: Path, *, home: Path) -> None:
    """Copy the state of an extension from its directory to `target`, which does not exist, and record the copied files.

    Raises:
        OSError: it could not be copied; `target` does not exist then.
        InstallError: the record of installed files cannot be read.
        TreeTooLargeError: there is more than `MAX_FILES` or `MAX_BYTES`.
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
    # Left by a copy that was interrupted. Only the rename below makes a copy count.
    shutil.rmtree(new, ignore_errors=True)
    make_private_dir(str(new))
    for path in files:
        make_private_dir(str((new / path).parent))
        shutil.copyfile(manifest.directory / path, new / path, follow_symlinks=False)
        (new / path).chmod(0o600)
    digests = tree_digest.scan(manifest.directory).digests
    # Before the rename: once the directory has its name, the copy is never repeated.
    _note(target, home, {path: digests[path] for path in files if path in digests})
    new.rename(target)
    log.info("%d files that %s kept in %s were copied to %s", len(files), manifest.name, manifest.directory, target)


def written(directory: Path, record: installed.InstallRecord, *, home: Path) -> list[str]:
    """List the files in an installed extension's directory that were neither installed nor copied, sorted.

    Raises:
        TreeTooLargeError: the directory is too large to be compared.
    """
    found = tree_digest.scan(directory)
    differs = tree_digest.difference(record.files, found.files)
    copied = _noted(home / PLACE / directory.name, home)
    return sorted(path for path in (*differs.added, *differs.changed) if copied.get(path) != found.digests[path])


def delete(name: str, *, home: Path) -> bool:
    """Delete the state of the installed extension `name`; return False if there was none."""
    target = home / PLACE / name
    with suppress(FileNotFoundError):
        _notes(target, home).unlink()
    # A link leads to a directory that zot did not create, so it is left alone.
    if not target.is_dir() or target.is_symlink():
        return False
    shutil.rmtree(target)
    return True


def _is_of_project(manifest: Manifest, home: Path, cwd: Path) -> bool:
    place = project_extensions(cwd)
    # The home itself may be opened as a project; its extensions are still those of the user.
    return manifest.directory.parent == place and os.path.realpath(place) != os.path.realpath(home / "extensions")


def _state(manifest: Manifest, home: Path) -> Iterator[str]:
    """Yield the files in the extension's directory that are state: not installed, or unlike code if there is no record."""
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
        # Without notes, copied files count as written by the extension: an update then refuses to replace them.
        return {}


def shown(files: list[str]) -> str:
    """Join the first names for a sentence, with the number of the others."""
    named = ", ".join(escaped(path) for path in files[: installed.SHOWN_FILES])
    more = len(files) - installed.SHOWN_FILES
    return f"{named} and {more} more" if more > 0 else named
