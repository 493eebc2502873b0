"""Extensions that are reloaded when their files are saved, because their author works on them.

They are the user's own, so no one has to be asked: what `zot -e` names, and in `$ZOT_HOME/extensions` files and links to
directories. Copies that were installed are not among them, nor is the code of a project, which needs a grant.
"""

import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from zotd.exthost import changes
from zotd.exthost.data import CODE, LIBRARIES
from zotd.exthost.manifest import FILE, Manifest
from zotd.exthost.scripts import is_script

SUFFIXES = CODE - {".pyc", ".md"} | {".mts", ".cts", ".jsx", ".tsx", ".lua", ".pl", ".php", ".java", ".toml"}
"""Suffixes of files that count. An extension that writes other ones beside its program is not reloaded by that."""

SKIPPED = LIBRARIES | {".git", "__pycache__", "recordings", "target", "build", "dist"}
"""Directories that change without being saved, or that no process reads at its start."""

MAX_FILES = 2_000
"""Most files of one extension that are looked at."""

MAX_FOLDERS = changes.MAX_DIRECTORIES + 1
"""Most directories of one extension that are looked at. With so many it cannot be watched, and is not reloaded."""


def stamped(manifest: Manifest) -> Manifest:
    """Return the manifest with what tells one version of its files from another. Blocks for a look at each file."""
    versions = []
    for path in _files(manifest):
        with suppress(OSError):  # deleted meanwhile
            status = os.stat(path)  # noqa: PTH116
            versions.append((path, status.st_mtime_ns, status.st_size, status.st_ino))
    return replace(manifest, saved=hashlib.sha256(repr(versions).encode(errors="surrogateescape")).hexdigest())


def is_followed(manifest: Manifest) -> bool:
    """Whether this extension of `$ZOT_HOME/extensions` is reloaded when it is saved."""
    return manifest.script is not None or os.path.islink(manifest.directory)  # noqa: PTH114


def watched(home: Path | None, explicit: Sequence[Path] = ()) -> dict[Path, Collection[str] | None]:
    """Return the directories in which something may be saved, for `exthost.changes`. Blocks.

    `home`: `$ZOT_HOME`, None to leave its extensions out; `explicit`: what `zot -e` names.
    """
    found: dict[Path, Collection[str] | None] = {}
    roots = [path.parent if path.name == FILE else path for path in explicit]
    for root in roots:  # also what is not there at the moment
        found[root.parent] = {*(found.get(root.parent) or ()), root.name}
    if home is not None:
        user = home / "extensions"
        found |= {home: {"extensions"}, user: None}
        with suppress(OSError):
            roots += [entry for entry in user.iterdir() if entry.is_symlink()]
    for root in roots:
        found.update(dict.fromkeys([root.parent] if is_script(root) else map(Path, _folders(root))))
    return found


def _files(manifest: Manifest) -> list[str]:
    if manifest.script is not None:
        return [str(manifest.script), *map(str, sorted(manifest.directory.glob("_*.py")))]
    named = {os.path.join(manifest.directory, word) for word in manifest.argv}  # noqa: PTH118
    found: list[str] = []
    for folder in _folders(manifest.directory):
        with suppress(OSError), os.scandir(folder) as entries:
            found += sorted(one.path for one in entries if one.path in named or _counts(one.name))
        if len(found) >= MAX_FILES:
            break
    return found[:MAX_FILES]


def _counts(name: str) -> bool:
    return name == FILE or os.path.splitext(name)[1] in SUFFIXES  # noqa: PTH122


def _folders(directory: Path) -> Iterator[str]:
    for folder, folders, _ in islice(os.walk(directory), MAX_FOLDERS):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        yield folder
