"""The checkpoints of one workspace: record, list, compare, restore, undo and redo.

All of it blocks, and one process at a time does it for a workspace (`locking`). Every change begins by finishing a
restore that was interrupted.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import pairwise, takewhile

import msgspec
from msgspec.structs import replace

from zotd import paths
from zotd.checkpoints import eligibility, history, journal, left_out, locking, packing
from zotd.checkpoints.baseline import Baseline
from zotd.checkpoints.checkpoint import Checkpoint, Occasion
from zotd.checkpoints.errors import AbandonedError, ChangedSinceError, CheckpointError, UnclearRunError
from zotd.checkpoints.exclusions import exclusions
from zotd.checkpoints.folders import JOURNAL, folder_of
from zotd.checkpoints.journal import RestoreJournal
from zotd.checkpoints.judging import RecordingLimits, check_space
from zotd.checkpoints.left_out import LeftOut
from zotd.checkpoints.outcome import Restored, RunChanges, WhenChanged
from zotd.checkpoints.plan import plan
from zotd.checkpoints.recording import Recorder
from zotd.checkpoints.restoring import Restorer, draft_prefix
from zotd.checkpoints.shadow import EMPTY_TREE, ShadowRepository, find_program
from zotd.checkpoints.trees import PathDifference, differences, line_counts
from zotd.checkpoints.undo import RecordedRun, recorded_runs, undo_stack

POINTS = ("present recorded", "journal written", "changes made", "journal removed")
"""Where a restore calls its probe; `restoring.POINTS` has those of each change."""


class Checkpoints:
    """Works on the checkpoints of one workspace, for one operation."""

    def __init__(
        self,
        workspace: str,
        home: str,
        env: Mapping[str, str],
        *,
        limits: RecordingLimits | None = None,
        baseline: Baseline | None = None,
        abandoned: threading.Event | None = None,
        probe: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Find git and the shadow repository; nothing is made yet.

        Args:
            workspace: a directory.
            home: `$ZOT_HOME`.
            env: of the user, for `PATH` and `HOME`.
            limits: what is too much to record.
            baseline: what this process knows of the workspace; None: nothing, so all files are looked at.
            abandoned: set when the caller does not wait any more; git is then killed.
            probe: called at `POINTS` and `restoring.POINTS`.

        Raises:
            UnrecordableError: there is no git, or the workspace is none that can be recorded.
        """
        self.workspace = os.path.realpath(workspace)
        eligibility.check(self.workspace, env)
        self._home = home
        self._abandoned = abandoned or threading.Event()
        self._limits = limits or RecordingLimits()
        self._baseline = baseline
        self._probe = probe
        self.repository = ShadowRepository(
            folder_of(home, self.workspace), self.workspace, find_program(env), self._abandoned
        )
        """Where the checkpoints are."""

    # --- recording and reading --------------------------------------------------------------------------------

    def record(self, occasion: Occasion, *, always: bool = False) -> Checkpoint:
        """Record the present state; see `Recorder.record`."""
        try:
            with self._locked():
                return self._recorder().record(occasion, always=always)
        except AbandonedError:
            raise
        except CheckpointError:
            # Whatever git says of a full disk, people have to know that it is full.
            if os.path.isdir(self.repository.folder):
                check_space(self.repository.folder)
            raise

    def all(self) -> list[Checkpoint]:
        """Return the checkpoints, newest first."""
        return history.checkpoints(self.repository)

    def find(self, number: int) -> Checkpoint:
        """Return the checkpoint with this number; raises CheckpointError if there is none."""
        found = next((one for one in self.all() if one.number == number), None)
        if found is None:
            raise CheckpointError(
                f"there is no checkpoint {number} of {self.workspace}; `zotctl checkpoints list` has all"
            )
        return found

    def changes(self, checkpoint: Checkpoint) -> Mapping[str, PathDifference]:
        """Return the files that differ between a checkpoint and the one before it; in the oldest one, all."""
        before = next((one.tree for one in self.all() if one.number < checkpoint.number), EMPTY_TREE)
        return differences(self.repository, before, checkpoint.tree)

    def left_out(self, checkpoint: Checkpoint) -> LeftOut:
        """Return the list of what a checkpoint does not contain."""
        return left_out.read(self.repository.folder, checkpoint.left_out)

    def diff(self, older: Checkpoint | None, newer: Checkpoint | None, under: Sequence[str] = ()) -> bytes:
        """Return a patch from one checkpoint to another.

        Args:
            older: None: the empty directory.
            newer: None: the present state of the workspace.
            under: files and directories to compare; empty: all.
        """
        if newer is None:
            with self._locked():
                target = self._recorder().tree()
        else:
            target = newer.tree
        places = [f":(top,literal){place}" for place in under if place]
        return self.repository.run(
            *("diff-tree", "-r", "-p", "--binary", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"),
            *(older.tree if older else EMPTY_TREE, target, "--", *places),
        )

    def run_changes(self, session: str, after: int = 0, until: int | None = None) -> RunChanges:
        """Return what the last run of a session has changed that began after the event `after`, at most at `until`.

        Raises:
            CheckpointError: there is no such run, or its end is not recorded yet.
        """
        for run in reversed(recorded_runs(self.all()[::-1], session)):
            if run.after is not None and after < run.before.seq and (until is None or run.before.seq <= until):
                counts = line_counts(self.repository, run.before.tree, run.after.tree)
                return RunChanges(run, counts, self.diff(run.before, run.after))
        raise CheckpointError("no run there has changed recorded files")

    # --- restoring --------------------------------------------------------------------------------------------

    def restore(self, target: Checkpoint, *, under: Sequence[str] = (), force: bool = False) -> Restored:
        """Return files of the workspace to the state in `target`.

        Files that the user has changed since the last checkpoint are left alone without `force`. Files that are not
        recorded now are never touched.

        Args:
            target: a checkpoint of this workspace.
            under: files and directories to restore, relative to the workspace; empty: all.
            force: restore also what the user has changed; the state before is recorded and can be restored.
        """
        with self._locked():
            since = list(takewhile(lambda one: one.kind in {"present", "restored"}, known := self.all()))
            occasion = Occasion(kind="restored", target=target.number)
            return self._restore(known[: len(since) + 1][::-1], target, occasion, under=under, force=force)

    def undo(self, session: str, *, when_changed: WhenChanged = WhenChanged.KEEP) -> Restored:
        """Take back what the last run of a session that changed files has changed.

        Raises:
            ChangedSinceError: the user has changed some of the files since, and `when_changed` is REFUSE.
            UnclearRunError: the run was cut, and `when_changed` is not OVERWRITE.
            CheckpointError: no run is left.
        """
        with self._locked():
            stack = undo_stack(self.all()[::-1], session)
            if not stack.done:
                raise CheckpointError("there is nothing to undo: no run of this session has changed recorded files")
            return self._undo(stack.done[-1:], session, when_changed)[0]

    def redo(self, session: str, *, when_changed: WhenChanged = WhenChanged.KEEP) -> Restored:
        """Make the changes again that the last `undo` of a session has taken back; raises as `undo` does."""
        with self._locked():
            stack = undo_stack(self.all()[::-1], session)
            if not stack.undone:
                raise CheckpointError("there is nothing to redo: the last thing that changed files was no undo")
            run = stack.undone[-1]
            assert run.after is not None  # an undo records it
            if when_changed is WhenChanged.REFUSE:
                self._refuse_changed([RecordedRun(run.run, run.after, run.before, run.has_end)])
            occasion = Occasion(kind="restored", session=session, redoes=run.run)
            force = when_changed is WhenChanged.OVERWRITE
            return self._restore([run.before], run.after, occasion, force=force, is_within=True)

    def undo_after(self, session: str, seq: int, *, when_changed: WhenChanged = WhenChanged.KEEP) -> Sequence[Restored]:
        """Undo all runs of a session that began after its event `seq`, the newest first; empty if there are none.

        Raises:
            ChangedSinceError, UnclearRunError: as `undo` does; no run is undone then.
            CheckpointError: the event is in the middle of a run that changed files.
        """
        with self._locked():
            done = undo_stack(self.all()[::-1], session).done
            if any(run.before.seq <= seq < (run.after.seq if run.after else seq) for run in done):
                raise CheckpointError(
                    f"message {seq} is in the middle of a run that changed files; choose a message before or after the run"
                )
            return self._undo([run for run in done if run.before.seq > seq], session, when_changed)

    def finish(self) -> None:
        """Finish a restore that was interrupted, if there is one; does nothing in a workspace without checkpoints."""
        if os.path.exists(os.path.join(self.repository.folder, JOURNAL)):
            with self._locked():
                pass

    def tidy(self, keep: int) -> None:
        """Pack what was recorded since the last time, and forget all but the newest `keep` checkpoints, if it is due.

        Then all files are looked at, too, for changes of which the baseline was not told.
        """
        last = history.newest(self.repository)
        if last is None or not packing.is_due(self.repository, last.number):
            return
        packing.pack(self.repository, last.number)
        with self._locked():
            self._recorder().verify()
            packing.forget_old(self.repository, keep)

    def _undo(self, runs: Sequence[RecordedRun], session: str, when_changed: WhenChanged) -> list[Restored]:
        """Undo runs, given oldest first, from the newest on."""
        if when_changed is not WhenChanged.OVERWRITE:
            self._refuse_unclear(runs)
        newest_first = [replace(run, after=run.after or self._cut_end(run, session)) for run in reversed(runs)]
        if when_changed is WhenChanged.REFUSE:
            self._refuse_changed(newest_first)
        done = []
        for run in newest_first:
            assert run.after is not None
            occasion = Occasion(kind="restored", session=session, undoes=run.run)
            force = when_changed is WhenChanged.OVERWRITE
            done.append(self._restore([run.after], run.before, occasion, force=force, is_within=True))
        return done

    def _refuse_unclear(self, runs: Sequence[RecordedRun]) -> None:
        """Raise UnclearRunError if the end of one of these runs was not recorded."""
        for run in runs:
            if not run.has_end:
                after = run.after.tree if run.after else self._recorder().tree()
                changed = differences(self.repository, run.before.tree, after)
                if changed:
                    raise UnclearRunError(sorted(changed))

    def _cut_end(self, run: RecordedRun, session: str) -> Checkpoint:
        """Record the end of a run that was cut, with no checkpoint since: what is there now is what it has made."""
        return self._recorder().record(Occasion(kind="end", session=session, run=run.run), always=True)

    def _refuse_changed(self, runs: Sequence[RecordedRun]) -> None:
        """Raise ChangedSinceError if the user has changed files of these runs, the newest first, since they changed them."""
        changed: set[str] = set()
        conflicts: set[str] = set()
        later = self._recorder().tree()
        for run in runs:
            assert run.after is not None
            changed |= differences(self.repository, run.after.tree, later).keys()
            conflicts |= changed & differences(self.repository, run.before.tree, run.after.tree).keys()
            later = run.before.tree
        if conflicts:
            raise ChangedSinceError(sorted(conflicts))

    def _restore(
        self,
        known: Sequence[Checkpoint],
        target: Checkpoint,
        occasion: Occasion,
        *,
        under: Sequence[str] = (),
        force: bool = False,
        is_within: bool = False,
    ) -> Restored:
        """Restore `target`.

        Args:
            known: a checkpoint of which nothing is the user's change, and those of restores since, oldest first.
            target: the state to return to.
            occasion: of the checkpoint after it.
            under: see `restore`.
            force: see `restore`.
            is_within: change only what differs between `known` and `target`.
        """
        recorder = self._recorder()
        present = recorder.record(Occasion(kind="present", session=occasion.session))
        self._probe("present recorded")
        planned = plan(
            differences(self.repository, present.tree, target.tree),
            users=self._changed_by_the_user(known, present),
            left_out=self.left_out(target),
            only=differences(self.repository, known[0].tree, target.tree).keys() if is_within else None,
            under=under,
            force=force,
        )
        made = RestoreJournal(draft_prefix(), msgspec.json.encode(occasion), planned.changes)
        restorer = Restorer(self.repository, made, self._probe)
        journal.write(self.repository.folder, made)
        self._probe("journal written")
        after = self._carry_out(restorer, occasion)
        kept = [*planned.kept, *restorer.kept]
        return Restored(paths=sorted(restorer.restored), kept=kept, before=present, after=after)

    def _changed_by_the_user(self, known: Sequence[Checkpoint], present: Checkpoint) -> set[str]:
        """Return the paths that the user has changed since the first of these states."""
        found: set[str] = set()
        for before, after in pairwise(known):
            changed = differences(self.repository, before.tree, after.tree).keys()
            found = found - changed if after.kind == "restored" else found | changed
        return found | differences(self.repository, known[-1].tree, present.tree).keys()

    def _carry_out(self, restorer: Restorer, occasion: Occasion) -> Checkpoint:
        restorer.run()
        self._probe("changes made")
        after = self._recorder().record(occasion, always=True)
        journal.remove(self.repository.folder)
        self._probe("journal removed")
        return after

    # --- inside -----------------------------------------------------------------------------------------------

    def _recorder(self) -> Recorder:
        return Recorder(self.repository, self._limits, exclusions(self.workspace, self._home), self._baseline)

    def _acquired(self) -> int:
        """Return a descriptor that holds the lock until it is closed."""
        folder = self.repository.folder
        try:
            paths.make_private_dir(folder)
            return locking.acquire(folder, self.workspace, self._abandoned)
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> CheckpointError:
        reason = (error.strerror or str(error)).lower()
        return CheckpointError(f"checkpoints of {self.workspace}: {error.filename or self.repository.folder}: {reason}")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the workspace, with the shadow repository complete and no restore half done."""
        folder = self.repository.folder
        lock = self._acquired()
        try:
            with self._baseline.lock if self._baseline else nullcontext():
                self.repository.remove_stale_lock()
                self.repository.create()
                interrupted = journal.read(folder)
                if interrupted is not None:
                    occasion = msgspec.json.decode(interrupted.occasion, type=Occasion)
                    self._carry_out(Restorer(self.repository, interrupted, self._probe), occasion)
                yield
        except OSError as error:
            raise self._failure(error) from error
        finally:
            os.close(lock)
