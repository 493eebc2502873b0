"""`$ZOT_HOME/extensions.json`: what was installed from where, and what the user has switched on or off.

    {"extensions": {"notes": {"source": "https://…", "commit": "…", "digest": "…", "files": {"main.py": "…"}}},
     "enabled": {"notes": false}}

A manifest's `enabled` is its author's word; what stands here is the user's, and wins. Everything blocks for a few file
operations, `verify` for a second for each large extension.
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
"""Files that a sentence names before it only counts."""


class InstallError(Exception):
    """It was not done, and everything is as before; the message is one sentence for the person who wanted it."""


class InstallRecord(Frozen, frozen=True):
    """Where an extension came from, and what it was."""

    source: str
    """A URL or an absolute path."""
    ref: str = ""
    """The branch, tag or commit that was asked for; empty for the repository's HEAD, and for directories."""
    commit: str = ""
    """What that was then; empty for directories."""
    digest: str = ""
    """SHA-256 over all paths, modes and contents."""
    files: dict[str, str] = field(default_factory=dict)
    """As in `tree_digest.TreeDigest`."""
    staging: str = ""
    """The directory below `.installing` that it came from; see `zotd.exthost.staging`."""


class Installed(Frozen, frozen=True):
    """The whole file."""

    extensions: dict[str, InstallRecord] = field(default_factory=dict)
    enabled: dict[str, bool] = field(default_factory=dict)


class _Choices(Frozen, frozen=True):
    """The part that is read at every start; the digests of thousands of files are skipped."""

    enabled: dict[str, bool] = field(default_factory=dict)


def extensions(home: Path) -> Path:
    """Where the extensions of all workspaces are."""
    return home / "extensions"


def load(home: Path) -> Installed:
    """What the file says; nothing when there is none.

    Raises:
        InstallError: it cannot be used.
    """
    return _load(home, Installed)


def save(home: Path, installed: Installed) -> None:
    """Replace the file; inside of `locked`.

    Raises:
        InstallError: it could not be written and is as before.
    """
    path = home / FILE
    try:
        private_file.write(path, indented(encode(installed)) + b"\n")
    except OSError as error:
        raise InstallError(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Nobody else changes `extensions.json` or what is in `extensions` meanwhile; makes both places.

    Raises:
        InstallError: the home cannot be written.
    """
    with ExitStack() as lock:
        try:
            make_private_dir(str(extensions(home)))
            lock.enter_context(private_file.locked(home / FILE))
        except OSError as error:
            raise InstallError(f"{home} cannot be written: {error.strerror}") from error
        yield


def choices(home: Path) -> Mapping[str, bool]:
    """What the user has switched on or off, by name; others are as their authors want them.

    Raises:
        InstallError: the file cannot be used; nobody knows then what is off.
    """
    return _load(home, _Choices).enabled


def verify(home: Path) -> Sequence[tuple[str, str]]:
    """Name and sentence of each installed extension that is not what was installed, by name.

    What it has added beside its program counts: its data belongs elsewhere, and an update would refuse to replace it.

    Raises:
        InstallError: the file cannot be used.
    """
    found = []
    for name, record in sorted(load(home).extensions.items()):
        trouble = _trouble(extensions(home) / name, record)
        if trouble:
            found.append((name, f"{name} {trouble}; install it again from {escaped(record.source)}, or remove it"))
    return found


def _trouble(directory: Path, record: InstallRecord) -> str:
    """What is wrong, as the end of a sentence; empty when it is as it was installed."""
    if directory.is_symlink() or not directory.is_dir():
        return "is no longer where it was installed"
    try:
        found = tree_digest.scan(directory)
    except tree_digest.TreeTooLargeError as error:
        return f"cannot be checked: {error}"
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
