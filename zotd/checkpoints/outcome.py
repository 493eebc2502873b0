"""What undo, redo and restores do about files, and what they have done.

Loads nothing that records or restores: a daemon needs that only when a step changes files.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec
from msgspec import Struct

from zotd.checkpoints.checkpoint import Checkpoint
from zotd.checkpoints.undo import RecordedRun


class WhyKept(StrEnum):
    """Why a restore leaves a file as it is."""

    CHANGED = "changed since it was last recorded"
    NOT_RECORDED_THEN = "not recorded in that checkpoint"
    IN_THE_WAY = "something that is not recorded is at this path"
    FAILED = "cannot be written"


class WhenChanged(StrEnum):
    """What an undo does about files that the user has changed since."""

    REFUSE = "refuse"  # nothing is changed if there is one
    KEEP = "keep"  # they stay, and the others are restored
    OVERWRITE = "overwrite"


class Kept(Struct, frozen=True):
    """A path that a restore leaves alone although it differs; `detail` is the system's error, if there is one."""

    path: str
    why: WhyKept
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" + (f" ({self.detail})" if self.detail else "")


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore has done.

    Attributes:
        paths: files that are now as they were.
        kept: files that differ and were left alone, each with the reason.
        before: the checkpoint of the state before it, to return to.
        after: the checkpoint of the state that it made.
    """

    paths: Sequence[str]
    kept: Sequence[Kept]
    before: Checkpoint
    after: Checkpoint


class LineCount(NamedTuple):
    """Number of lines that were added to a file, and removed from it."""

    added: int
    removed: int


class RunChanges(Struct, frozen=True):
    """What a run has changed.

    Attributes:
        run: with the checkpoints before and after it.
        files: the lines that were added and removed, by path; None: it is no text.
        patch: the changes themselves.
    """

    run: RecordedRun
    files: Mapping[str, LineCount | None]
    patch: bytes


class Brought(Struct, frozen=True):
    """What was brought from another place (`synced`).

    Attributes:
        place: from where; empty: nothing was to be brought.
        made: when the copy was made there, in seconds since the epoch.
        paths: files that have changed.
        kept: files that were left alone, each with the reason.
        commits: why the commits of the other place are not checked out here; empty: they are, or there are none.
        is_own: this directory has made the newest copy itself, so no other daemon can push one late.
    """

    place: str = ""
    made: float = 0.0
    paths: Sequence[str] = ()
    kept: Sequence[Kept] = ()
    commits: str = ""
    is_own: bool = False
