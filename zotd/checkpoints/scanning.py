"""Finds the present state of a workspace by looking at all of its files.

git status, and beside it the list of what is ignored
  ->  look at each path that differs: too large? readable? a repository of its own?
  ->  git update-index  ->  git write-tree
"""

import os
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest

from zotd.checkpoints.checkpoint import Checkpoint
from zotd.checkpoints.errors import AbandonedError, CheckpointError, DiskFullError, UnrecordableError
from zotd.checkpoints.judging import PresentState, RecordingLimits, check_amount, judged
from zotd.checkpoints.left_out import Omission, Why
from zotd.checkpoints.shadow import BULK_VERSION, ShadowRepository

ATTEMPTS = 3
"""How often a scan begins anew when files change while it looks at them."""

BULK = 1000
"""From this number of files on, new objects go into one pack: writing each into a file of its own takes longer."""

BATCH = 10_000
"""Files that one git command stages at most: with so many new ones in a pack, git looks through all of them for each next one.
What is staged when recording is given up stays so for the next attempt."""

INDEX_BEHIND = "zot-index-behind"
"""File that is there while the index may lack what was recorded without a scan."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan has found.

    Attributes:
        state: of the workspace.
        would_repeat: whether another scan would find the same if nothing changes. Not so if a recorded file is left out
            from now on: its rules are those of new files from then on.
    """

    state: PresentState
    would_repeat: bool


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
    has_unrecorded: bool
    """Whether one of `dropped` is still there."""


class Scanner:
    """Scans a workspace; its caller holds the lock of the workspace."""

    def __init__(self, repository: ShadowRepository, limits: RecordingLimits) -> None:
        """`limits`: what is too much."""
        self._repository = repository
        self._limits = limits

    def scan(self, last: Checkpoint | None) -> Scan:
        """Bring the index up to date, and return what is there.

        Raises:
            UnrecordableError: the workspace has too many files, or too much to record at once.
            DiskFullError: there is too little space.
            CheckpointError: it failed.
        """
        self._catch_up(last)
        for _ in range(ATTEMPTS - 1):
            try:
                return self._scanned(last)
            except (AbandonedError, DiskFullError, UnrecordableError):
                raise
            except CheckpointError:  # a file has become a directory, or unreadable, since it was looked at
                continue
        return self._scanned(last)

    def _catch_up(self, last: Checkpoint | None) -> None:
        """Give the index what was recorded without it; what it knows of unchanged files stays."""
        behind = os.path.join(self._repository.folder, INDEX_BEHIND)
        if os.path.exists(behind):
            if last is not None:
                self._repository.run("read-tree", "-i", "-m", last.tree)
            os.unlink(behind)

    def _scanned(self, last: Checkpoint | None) -> Scan:
        looked, ignored = self._look()
        check_amount(self._repository, self._limits, files=self._entries() + len(looked.staged), new_bytes=looked.size)
        self._stage(looked)
        if looked.dropped:  # git lists what is ignored in a directory one by one if the index has something in it
            ignored = self._listed(self._begin_listing())
        is_as_before = last is not None and not (looked.staged or looked.dropped or looked.has_staged)
        tree = last.tree if last and is_as_before else self._repository.run("write-tree").decode().strip()
        omissions = {one.path: one for one in (*looked.omissions, *ignored)}
        changed = len(looked.staged) + len(looked.dropped)
        return Scan(PresentState(tree, omissions, self._entries(), changed), not looked.has_unrecorded)

    # --- looking ----------------------------------------------------------------------------------------------

    def _begin_listing(self) -> "subprocess.Popen[bytes]":
        return self._repository.begin("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")

    def _listed(self, listing: "subprocess.Popen[bytes]") -> list[Omission]:
        """Return what is ignored, when the listing has ended."""
        return [Omission(os.fsdecode(path), Why.IGNORED) for path in _outermost(self._repository.end(listing))]

    def _look(self) -> tuple[_Looked, list[Omission]]:
        listing = self._begin_listing()
        try:
            looked = self._judged(self._repository.run("status", "--porcelain=v1", "-z"))
        except BaseException:
            listing.kill()
            listing.communicate()
            raise
        return looked, self._listed(listing)

    def _judged(self, status: bytes) -> _Looked:
        staged: list[bytes] = []
        dropped: list[bytes] = []
        omissions: list[Omission] = []
        size = 0
        has_staged = has_unrecorded = False
        for line in status.split(b"\0"):
            has_staged |= line[:1] not in {b"", b" ", b"?"}
            if not line or line[1:2] == b" ":  # in the index already
                continue
            path, is_new = line[3:], line[:1] == b"?"
            if line[1:2] == b"D":  # also what lies behind a link that has replaced a directory
                dropped.append(path)
                continue
            found = judged(self._repository.workspace, os.fsdecode(path), self._limits.file_bytes)
            if isinstance(found, int):
                size += found
                staged.append(path)
            else:
                omissions.append(found)
                if not is_new:
                    dropped.append(path)
                    has_unrecorded = True
        return _Looked(staged, dropped, omissions, size, has_staged, has_unrecorded)

    def _entries(self) -> int:
        """Return how many files the index has, from its header."""
        try:
            with open(os.path.join(self._repository.folder, "index"), "rb") as file:
                return int(struct.unpack(">4sLL", file.read(12))[2])
        except (OSError, struct.error):
            return 0

    # --- writing ----------------------------------------------------------------------------------------------

    def _stage(self, looked: _Looked) -> None:
        if looked.dropped:
            self._update_index(looked.dropped, "--force-remove")
        if looked.staged:
            self._update_index(looked.staged, "--add", "--remove", "--replace")

    def _update_index(self, paths: Sequence[bytes], *flags: str) -> None:
        is_bulk = len(paths) >= BULK and self._repository.program.version >= BULK_VERSION
        bulk = ("-c", "core.bigFileThreshold=1") if is_bulk else ()
        for start in range(0, len(paths), BATCH):
            given = b"\0".join(paths[start : start + BATCH]) + b"\0"
            self._repository.run(*bulk, "update-index", *flags, "-z", "--stdin", stdin=given)


def leave_index_behind(repository: ShadowRepository) -> None:
    """Note that something is recorded that the index lacks; call it before the checkpoint is made."""
    with suppress(FileExistsError):
        os.close(os.open(os.path.join(repository.folder, INDEX_BEHIND), os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _outermost(listing: bytes) -> Iterator[bytes]:
    """Yield the ignored paths of `git ls-files --directory`, without directories in which only single files are ignored."""
    paths = sorted(path for path in listing.split(b"\0") if path)
    for path, following in zip_longest(paths, paths[1:], fillvalue=b""):
        if not (path.endswith(b"/") and following.startswith(path)):
            yield path
