"""What the next recording of a workspace builds upon: the last one, and a watch that tells what has changed since.

recording by a scan  ->  everything is known, if the workspace was watched before the scan began
the next ones        ->  only what may have changed is looked at (`increment`)
anything unclear     ->  a scan again
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from zotd.checkpoints import eligibility
from zotd.checkpoints.checkpoint import Checkpoint
from zotd.checkpoints.directory_watch import ChangedPaths, DirectoryWatch, UnwatchableError
from zotd.checkpoints.errors import AbandonedError, CheckpointError
from zotd.checkpoints.increment import Increment, ScanNeededError
from zotd.checkpoints.judging import PresentState, RecordingLimits
from zotd.checkpoints.left_out import Omission, Why
from zotd.checkpoints.objects import Trees
from zotd.checkpoints.scanning import Scan
from zotd.checkpoints.shadow import ShadowRepository

MOST_WAIT = 64
"""Most scans between two attempts to watch a workspace that could not be watched."""

LINK_BYTES = 4096
"""Longest `.git` file that is read."""

Rules = tuple[str, RecordingLimits]
"""What decides what is recorded, apart from the workspace: the content of `info/exclude`, and limits."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Known:
    """A recorded state that was complete."""

    checkpoint: Checkpoint
    state: PresentState
    rules: Rules
    repositories: Mapping[str, bool]
    """Directories that are left out as repositories of their own: whether they look like one."""


class Baseline:
    """What a process knows of a workspace between two recordings.

    Used by one recording at a time, which holds `lock`. Close it when nothing is recorded any more.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._watch = DirectoryWatch()
        self._trees = Trees()
        self._known: _Known | None = None
        self._changes = ChangedPaths()
        """Since the known state."""
        self._is_closed = False
        self._failures = 0
        self._wait = 0
        """Scans until the next attempt to watch."""

    def close(self) -> None:
        """Watch nothing any more; waits for a recording that is under way."""
        with self.lock:
            self._is_closed = True
            self._forget()

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The last checkpoint, if it is known."""
        return self._known.checkpoint if self._known else None

    def present(self, repository: ShadowRepository, last: Checkpoint | None, rules: Rules) -> PresentState | None:
        """Return the present state, or None if a scan is needed.

        Args:
            repository: of the workspace.
            last: the last checkpoint; another one than `checkpoint` was recorded by another process.
            rules: those of now.

        Raises CheckpointError: the state cannot be recorded.
        """
        known = self._known
        if known is None or last is None:
            return None
        try:
            self._take_changes(known, repository.workspace, last, rules)
            increment = Increment(repository, rules[1], known.state, watch=self._watch, trees=self._trees)
            return increment.state(self._changes)
        except AbandonedError:
            raise  # nothing is lost: the next recording looks at the same changes
        except (ScanNeededError, UnwatchableError, CheckpointError, OSError) as error:
            log.debug("%s is scanned: %s", repository.workspace, error)
            self._forget()
            return None

    def watched(
        self, workspace: str, last: Checkpoint | None, skipped: Callable[[], Mapping[str, Omission]]
    ) -> frozenset[str] | None:
        """Watch the workspace from now on, for a scan that follows.

        Args:
            workspace: its real path.
            last: the last checkpoint; without one it is not known yet what need not be watched.
            skipped: returns what the last checkpoint leaves out.

        Returns the directories that are not watched; None if nothing is.
        """
        self._forget()
        if last is None or self._is_closed:
            return None
        if self._wait:
            self._wait -= 1
            return None
        unwatched = frozenset(path for path in skipped() if path.endswith("/"))
        try:
            _check_watchable(workspace)
            self._watch.begin(workspace, unwatched)
        except UnwatchableError as error:
            self._wait = min(MOST_WAIT, 1 << self._failures)
            self._failures += 1
            log.info("%s is scanned for each checkpoint: %s", workspace, error)
            return None
        self._failures = 0
        return unwatched

    def know_scan(
        self, workspace: str, checkpoint: Checkpoint, scan: Scan, *, unwatched: frozenset[str] | None, rules: Rules
    ) -> None:
        """Build upon a scan that was recorded as `checkpoint`, if everything was watched that it has not left out."""
        if unwatched is None or not scan.would_repeat or not unwatched <= scan.state.omissions.keys():
            self._forget()
            return
        self._watch.leave({path.removesuffix("/") for path in scan.state.omissions if path.endswith("/")})
        repositories = _repositories(workspace, scan.state.omissions)
        self._known = _Known(checkpoint, scan.state, rules, repositories)

    def know_increment(self, checkpoint: Checkpoint, state: PresentState) -> None:
        """Build upon a state that `present` has returned and that was recorded as `checkpoint`."""
        assert self._known is not None
        repositories = {path: one for path, one in self._known.repositories.items() if path in state.omissions}
        self._known = _Known(checkpoint, state, self._known.rules, repositories)
        self._changes = ChangedPaths()

    def _take_changes(self, known: _Known, workspace: str, last: Checkpoint, rules: Rules) -> None:
        """Add to the changes what has changed until now; raises ScanNeededError if they do not tell everything."""
        if last.commit != known.checkpoint.commit:
            raise ScanNeededError("another process has recorded it")
        if rules != known.rules:
            raise ScanNeededError("the rules above the workspace have changed, or the limits")
        if known.repositories != _repositories(workspace, known.state.omissions):
            raise ScanNeededError("a repository of its own has appeared or is gone")
        _check_watchable(workspace)
        changes = self._watch.changed()
        if changes is None:
            raise ScanNeededError("the watch has missed something")
        self._changes.add(changes)

    def _forget(self) -> None:
        self._known = None
        self._changes = ChangedPaths()
        self._watch.end()


def _check_watchable(workspace: str) -> None:
    if why := eligibility.why_unwatchable(workspace):
        raise UnwatchableError(why)


def _repositories(workspace: str, omissions: Mapping[str, Omission]) -> Mapping[str, bool]:
    return {
        path: _is_repository(os.path.join(workspace, path, ".git"))
        for path, one in omissions.items()
        if one.why is Why.REPOSITORY
    }


def _is_repository(place: str) -> bool:
    """Return whether a `.git`, a directory or a file that names one, is where git would find a repository."""
    try:
        if os.path.isfile(place):  # opening a FIFO would wait for a writer
            with open(place, "rb") as file:
                named = os.fsdecode(file.read(LINK_BYTES).removeprefix(b"gitdir:").strip())
            place = os.path.join(os.path.dirname(place), named)
    except OSError:
        return False
    common = ("objects", "refs") if os.path.isdir(os.path.join(place, "objects")) else ("commondir",)
    return all(os.path.lexists(os.path.join(place, name)) for name in ("HEAD", *common))
