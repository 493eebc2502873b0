"""Records the present state of a workspace as a commit in its shadow repository.

the present state, by what has changed since the last recording (`increment`) or by a scan (`scanning`)  ->  a commit
"""

import os
import time
from collections.abc import Mapping

import msgspec

from zotd.checkpoints import commits, left_out
from zotd.checkpoints.baseline import Baseline, Rules
from zotd.checkpoints.checkpoint import Checkpoint, Occasion, encoded
from zotd.checkpoints.history import newest
from zotd.checkpoints.judging import PresentState, RecordingLimits
from zotd.checkpoints.left_out import Omission
from zotd.checkpoints.scanning import Scanner, leave_index_behind
from zotd.checkpoints.shadow import ShadowRepository
from zotd.clock import rfc3339


class Recorder:
    """Records a workspace; its caller holds the lock of the workspace."""

    def __init__(
        self, repository: ShadowRepository, limits: RecordingLimits, exclude: str, baseline: Baseline | None
    ) -> None:
        """`exclude`: the content of `info/exclude`; `baseline`: None: each recording is a scan."""
        self._repository = repository
        self._limits = limits
        self._exclude = exclude
        self._baseline = baseline

    def record(self, occasion: Occasion, *, always: bool = False) -> Checkpoint:
        """Record the present state, and return its checkpoint: the last one if nothing differs and `always` is not set.

        With `always`, that is done only for a step behind another one of its run.

        Raises:
            UnrecordableError: the workspace has too many files, or too much to record at once.
            DiskFullError: there is too little space.
            CheckpointError: it failed, for example because a disk is full.
        """
        last = self._last()
        present = self._incremental(last)
        if present is None or self._baseline is None:
            return self._record_scan(occasion, last, always=always)
        if present.tree != (last.tree if last else ""):
            leave_index_behind(self._repository)
        made = self._commit(occasion, last, present, always=always)
        self._baseline.know_increment(made, present)
        return made

    def tree(self) -> str:
        """Return the object name of the present state's tree, without a checkpoint of it; raises as `record` does."""
        return self.present().tree

    def present(self) -> PresentState:
        """Return the present state, without a checkpoint of it; raises as `record` does."""
        last = self._last()
        return self._incremental(last) or Scanner(self._repository, self._limits).scan(last).state

    def verify(self) -> None:
        """Look at all files, for changes of which the baseline was not told; the next recording has them.

        Raises as `record` does.
        """
        last = self._last()
        if self._baseline is None or last is None:
            return
        self._set_exclude()
        workspace = self._repository.workspace
        unwatched = self._baseline.watched(workspace, last, lambda: self._omissions(last))
        scan = Scanner(self._repository, self._limits).scan(last)
        if scan.state.tree == last.tree:
            self._baseline.know_scan(workspace, last, scan, unwatched=unwatched, rules=self._rules)

    def _last(self) -> Checkpoint | None:
        """Return the last checkpoint; None if there is none."""
        known = self._baseline.checkpoint if self._baseline else None
        return known if known and known.commit == commits.newest(self._repository) else newest(self._repository)

    def _incremental(self, last: Checkpoint | None) -> PresentState | None:
        self._set_exclude()
        return self._baseline.present(self._repository, last, self._rules) if self._baseline else None

    def _record_scan(self, occasion: Occasion, last: Checkpoint | None, *, always: bool) -> Checkpoint:
        unwatched = (
            self._baseline.watched(self._repository.workspace, last, lambda: self._omissions(last))
            if self._baseline
            else None
        )
        scan = Scanner(self._repository, self._limits).scan(last)
        made = self._commit(occasion, last, scan.state, always=always)
        if self._baseline:
            self._baseline.know_scan(self._repository.workspace, made, scan, unwatched=unwatched, rules=self._rules)
        return made

    def _omissions(self, checkpoint: Checkpoint | None) -> Mapping[str, Omission]:
        listed = left_out.read(self._repository.folder, checkpoint.left_out if checkpoint else "")
        return {one.path: one for one in listed.omissions}

    @property
    def _rules(self) -> Rules:
        return self._exclude, self._limits

    def _set_exclude(self) -> None:
        place = os.path.join(self._repository.folder, "info", "exclude")
        try:
            with open(place, "rb") as file:
                known = file.read()
        except FileNotFoundError:
            known = b""
        if known != self._exclude.encode(errors="surrogateescape"):
            self._repository.write(os.path.join("info", "exclude"), self._exclude)

    def _commit(
        self, occasion: Occasion, last: Checkpoint | None, present: PresentState, *, always: bool
    ) -> Checkpoint:
        """Return the checkpoint of this state: a new one, or the last one if nothing differs and no new one is needed."""
        digest = left_out.write(self._repository.folder, left_out.left_out(present.omissions.values()))
        # The first step of a run says what was before it; the following ones only add what has changed since.
        is_wanted = always and not (last and last.kind == occasion.kind == "step" and last.run == occasion.run)
        if last is not None and not is_wanted and (present.tree, digest) == (last.tree, last.left_out):
            return last
        now = time.time()
        made = Checkpoint(
            **msgspec.structs.asdict(occasion),
            number=last.number + 1 if last else 1,
            time=rfc3339(now),
            changed=present.changed,
            left_out=digest,
        )
        parent = last.commit if last else None
        commit = commits.append(self._repository, present.tree, parent, encoded(made), seconds=int(now))
        return msgspec.structs.replace(made, commit=commit, tree=present.tree)
