"""`$ZOT_HOME/extensions.json`: the sources of installed extensions, and which ones the user has enabled or disabled.

    {"extensions": {"notes": {"source": "https://…", "commit": "…", "digest": "…", "files": {"main.py": "…"}}},
     "enabled": {"notes": false}}

The user's choice in this file overrides `enabled` of the manifest, which is the author's. All functions block for a few
file operations; `verify` blocks up to a second for each large extension.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import field
from msgspec.json import format as indented

from zotd import private_file, tree_digest
from zotd.paths import make_private_dir
from zotd.sanitize import escaped
from zotd.wire.base import BadFrameError, Frozen, T, decode, encode

FILE = "extensions.json"

SHOWN_FILES = 5
"""Number of files that a sentence names; the others are only counted."""


class InstallError(Exception):
    """The operation failed and changed nothing. The message is one sentence for the user."""


class InstallRecord(Frozen, frozen=True):
    """Source and contents of an extension at its installation."""

    source: str
    """A URL or an absolute path."""
    ref: str = ""
    """The requested branch, tag or commit; empty for the repository's HEAD and for directories."""
    commit: str = ""
    """The commit that `ref` named at that time; empty for directories."""
    digest: str = ""
    """SHA-256 over all paths, modes and contents."""
    files: dict[str, str] = field(default_factory=dict)
    """Digests of the files; see `tree_digest.TreeDigest`."""
    staging: str = ""
    """Name of the staging directory that it came from; see `zotd.exthost.staging`."""


class Installed(Frozen, frozen=True):
    """The complete contents of the file."""

    extensions: dict[str, InstallRecord] = field(default_factory=dict)
    enabled: dict[str, bool] = field(default_factory=dict)


class _Choices(Frozen, frozen=True):
    """The part that every start needs; decoding only this skips the digests of thousands of files."""

    enabled: dict[str, bool] = field(default_factory=dict)


def extensions(home: Path) -> Path:
    """Return the directory of the extensions of all workspaces."""
    return home / "extensions"


def load(home: Path) -> Installed:
    """Read the file; a missing one counts as empty.

    Raises:
        InstallError: the file is unreadable or damaged.
    """
    return _load(home, Installed)


def save(home: Path, installed: Installed) -> None:
    """Replace the file. Call it within `locked`.

    Raises:
        InstallError: the file could not be written and is unchanged.
    """
    path = home / FILE
    try:
        # Indented, because an error asks people to repair this file by hand.
        private_file.write(path, indented(encode(installed)) + b"\n")
    except OSError as error:
        raise InstallError(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Lock `extensions.json` and the directory `extensions` against other processes, and create both.

    Raises:
        InstallError: the home cannot be written.
    """
    # An ExitStack, so that an OSError of the caller's block is not reported as one of the lock.
    with ExitStack() as lock:
        try:
            make_private_dir(str(extensions(home)))
            lock.enter_context(private_file.locked(home / FILE))
        except OSError as error:
            raise InstallError(f"{home} cannot be written: {error.strerror}") from error
        yield


def choices(home: Path) -> Mapping[str, bool]:
    """Return the user's choices by name: True if enabled, False if disabled. Others follow their manifests.

    Raises:
        InstallError: the file is unusable, so it is unknown which extensions are disabled.
    """
    return _load(home, _Choices).enabled


def verify(home: Path) -> Sequence[tuple[str, str]]:
    """Return name and sentence for each installed extension that differs from what was installed, sorted by name.

    Files added beside the program count too: data belongs elsewhere, and an update would refuse to replace them.

    Raises:
        InstallError: the file is unusable.
    """
    found = []
    for name, record in sorted(load(home).extensions.items()):
        trouble = _trouble(extensions(home) / name, record)
        if trouble:
            found.append((name, f"{name} {trouble}; install it again from {escaped(record.source)}, or remove it"))
    return found


def _trouble(directory: Path, record: InstallRecord) -> str:
    """Describe the difference as the end of a sentence; empty if there is none."""
    if directory.is_symlink() or not directory.is_dir():
        return "is no longer where it was installed"
    try:
        found = tree_digest.scan(directory)
    except tree_digest.TreeTooLargeError as error:
        return f"cannot be checked: {error}"
    # The usual case: one digest covers all files, so they need not be compared.
    if found.digest == record.digest:
        return ""
    differs = tree_digest.difference(record.files, found.files)
    kinds = {"changed": differs.changed, "removed": differs.removed, "added": differs.added}
    told = [f"{kind} {_some(files)}" for kind, files in kinds.items() if files]
    return f"differs from what was installed: {', '.join(told)}" if told else ""


def _some(files: Sequence[str]) -> str:
    named = ", ".join(escaped(file) for file in files[:SHOWN_FILES])
    more = len(files) - SHOWN_FILES
    return f"{named} and {more} more" if more > 0 else named


def _load(home: Path, kind: type[T]) -> T:
    path = home / FILE
    try:
        content = private_file.read(path)
        return decode(b"{}" if content is None else content, kind)
    except OSError as error:
        raise InstallError(f"{path} cannot be read: {error.strerror}") from error
    except BadFrameError as error:
        raise InstallError(f"{path} is damaged; repair it, or remove it and install again: {error}") from error
