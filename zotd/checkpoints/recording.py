"""Records the present state of a workspace as a commit in its shadow repository.

git status, and beside it the list of what is ignored
  ->  look at each path that differs: too large? readable? a repository of its own?
  ->  git update-index  ->  git write-tree  ->  a commit
"""

import os
import shutil
import stat
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import msgspec

from zotd.checkpoints import commits, left_out
from zotd.checkpoints.checkpoint import Checkpoint, Occasion, encoded
from zotd.checkpoints.errors import AbandonedError, CheckpointError, DiskFullError, UnrecordableError
from zotd.checkpoints.history import newest
from zotd.checkpoints.left_out import LeftOut, Omission, Why
from zotd.checkpoints.shadow import BULK_VERSION, ShadowRepository
from zotd.clock import rfc3339

ATTEMPTS = 3
"""How often recording begins anew when files change while it looks at them."""

BULK = 1000
"""From this number of files on, new objects go into one pack: writing each into a file of its own takes longer."""

SPARE_BYTES = 256 * 1024 * 1024
"""Space that recording leaves on the file system of `$ZOT_HOME`."""


@dataclass(frozen=True, slots=True)
class RecordingLimits:
    """What is too much to record.

    Attributes:
        file_bytes: size of the largest file that is recorded.
        files: most files of a workspace.
        new_bytes: most that one checkpoint may add.
    """

    file_bytes: int = 10 * 1024 * 1024
    files: int = 600_000
    new_bytes: int = 4 * 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Looked:
    """What is to be done with the paths that differ from the last checkpoint."""

    staged: Sequence[bytes]
    """New or changed."""
    dropped: Sequence[bytes]
    """Recorded until now, and from now on gone, too large or unreadable."""
    omissions: Sequence[Omission]
    size: int
    """Of all that is staged, in bytes."""
    has_staged: bool
    """The index differs from the last checkpoint already: a recording was interrupted, or made no checkpoint."""


class Recorder:
    """Records a workspace; its caller holds the lock of the workspace."""

    def __init__(self, repository: ShadowRepository, limits: RecordingLimits, exclude: str) -> None:
        """`exclude`: the content of `info/exclude`."""
        self._repository = repository
        self._limits = limits
        self._exclude = exclude

    def record(self, occasion: Occasion, *, always: bool = False) -> Checkpoint:
        """Record the present state, and return its checkpoint: the last one if nothing differs and `always` is not set.

        Raises:
            UnrecordableError: the workspace has too many files, or too much to record at once.
            DiskFullError: there is too little space.
            CheckpointError: it failed, for example because a disk is full.
        """
        last = newest(self._repository)
        self._set_exclude()
        tree, listed, changed = self._staged(last)
        digest = left_out.write(self._repository.folder, listed)
        if last is not None and not always and (tree, digest) == (last.tree, last.left_out):
            return last
        return self._commit(occasion, last, tree, digest=digest, changed=changed)

    def tree(self) -> str:
        """Return the object name of the present state's tree, without a checkpoint of it; raises as `record` does."""
        self._set_exclude()
        return self._staged(newest(self._repository))[0]

    # --- looking ----------------------------------------------------------------------------------------------

    def _staged(self, last: Checkpoint | None) -> tuple[str, LeftOut, int]:
        """Bring the index up to date; return its tree, what it leaves out, and how many paths differed from `last`."""
        for _ in range(ATTEMPTS - 1):
            try:
                return self._staged_at_once(last)
            except (AbandonedError, DiskFullError, UnrecordableError):
                raise
            except CheckpointError:  # a file has become a directory, or unreadable, since it was looked at
                continue
        return self._staged_at_once(last)

    def _staged_at_once(self, last: Checkpoint | None) -> tuple[str, LeftOut, int]:
        looked, ignored = self._look()
        self._check(looked)
        self._stage(looked)
        is_as_before = last is not None and not (looked.staged or looked.dropped or looked.has_staged)
        tree = last.tree if last and is_as_before else self._repository.run("write-tree").decode().strip()
        changed = len(looked.staged) + len(looked.dropped)
        return tree, left_out.left_out([*looked.omissions, *ignored]), changed

    def _look(self) -> tuple[_Looked, list[Omission]]:
        listing = self._repository.begin("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        try:
            looked = self._judged(self._repository.run("status", "--porcelain=v1", "-z"))
        except BaseException:
            listing.kill()
            listing.communicate()
            raise
        return looked, [Omission(os.fsdecode(path), Why.IGNORED) for path in _outermost(self._repository.end(listing))]

    def _judged(self, status: bytes) -> _Looked:
        staged: list[bytes] = []
        dropped: list[bytes] = []
        omissions: list[Omission] = []
        size = 0
        has_staged = False
        for line in status.split(b"\0"):
            has_staged |= line[:1] not in {b"", b" ", b"?"}
            if not line or line[1:2] == b" ":  # in the index already
                continue
            path, is_new = line[3:], line[:1] == b"?"
            if line[1:2] == b"D":  # also what lies behind a link that has replaced a directory
                dropped.append(path)
                continue
            found = self._judge(path)
            if isinstance(found, int):
                size += found
                staged.append(path)
            else:
                omissions.append(found)
                if not is_new:
                    dropped.append(path)
        return _Looked(staged, dropped, omissions, size, has_staged)

    def _judge(self, path: bytes) -> int | Omission:
        """Return the size of a file that can be recorded, 0 if it is gone, or why it is left out."""
        name = os.fsdecode(path)
        if path.endswith(b"/"):
            return Omission(name, Why.REPOSITORY)
        if any(part.lower() == b".git" for part in path.split(b"/")):
            return Omission(name, Why.NAME)
        place = os.path.join(self._repository.workspace, name)
        try:
            found = os.lstat(place)
        except OSError:
            return 0
        if stat.S_ISLNK(found.st_mode) or stat.S_ISDIR(found.st_mode):
            return 0
        if not stat.S_ISREG(found.st_mode) or not os.access(place, os.R_OK):
            return Omission(name, Why.UNREADABLE, found.st_size)
        if found.st_size > self._limits.file_bytes:
            return Omission(name, Why.LARGE, found.st_size)
        return found.st_size

    # --- checking ---------------------------------------------------------------------------------------------

    def _check(self, looked: _Looked) -> None:
        workspace, limits = self._repository.workspace, self._limits
        if self._entries() + len(looked.staged) > limits.files:
            raise UnrecordableError(
                f"{workspace} has more than {limits.files:,} files; name those that need no checkpoints in .gitignore"
            )
        if looked.size > limits.new_bytes:
            raise UnrecordableError(
                f"{workspace} has more than {limits.new_bytes >> 30} GiB to record; name what needs no checkpoints in .gitignore"
            )
        free = shutil.disk_usage(self._repository.folder).free
        if looked.size and free < looked.size + SPARE_BYTES:
            raise DiskFullError(
                f"{self._repository.folder} has {free >> 20} MiB left, too little for checkpoints; free some space"
            )

    def _entries(self) -> int:
        """Return how many files the index has, from its header."""
        try:
            with open(os.path.join(self._repository.folder, "index"), "rb") as file:
                return int(struct.unpack(">4sLL", file.read(12))[2])
        except (OSError, struct.error):
            return 0

    # --- writing ----------------------------------------------------------------------------------------------

    def _set_exclude(self) -> None:
        place = os.path.join(self._repository.folder, "info", "exclude")
        try:
            with open(place, "rb") as file:
                known = file.read()
        except FileNotFoundError:
            known = b""
        if known != self._exclude.encode(errors="surrogateescape"):
            self._repository.write(os.path.join("info", "exclude"), self._exclude)

    def _stage(self, looked: _Looked) -> None:
        if looked.dropped:
            self._update_index(looked.dropped, "--force-remove")
        if looked.staged:
            self._update_index(looked.staged, "--add", "--remove", "--replace")

    def _update_index(self, paths: Sequence[bytes], *flags: str) -> None:
        is_bulk = len(paths) >= BULK and self._repository.program.version >= BULK_VERSION
        bulk = ("-c", "core.bigFileThreshold=1") if is_bulk else ()
        self._repository.run(*bulk, "update-index", *flags, "-z", "--stdin", stdin=b"\0".join(paths) + b"\0")

    def _commit(
        self, occasion: Occasion, last: Checkpoint | None, tree: str, *, digest: str, changed: int
    ) -> Checkpoint:
        now = time.time()
        made = Checkpoint(
            **msgspec.structs.asdict(occasion),
            number=last.number + 1 if last else 1,
            time=rfc3339(now),
            changed=changed,
            left_out=digest,
        )
        parent = last.commit if last else None
        commit = commits.append(self._repository, tree, parent, encoded(made), seconds=int(now))
        return msgspec.structs.replace(made, commit=commit, tree=tree)


def _outermost(listing: bytes) -> Iterator[bytes]:
    """Yield the ignored paths of `git ls-files --directory`, without directories in which only single files are ignored."""
    paths = sorted(path for path in listing.split(b"\0") if path)
    for path, following in zip_longest(paths, paths[1:], fillvalue=b""):
        if not (path.endswith(b"/") and following.startswith(path)):
            yield path
