"""Which run of a session is undone or redone next. Pure: it follows from the checkpoints alone.

run R: a "step" checkpoint before its first step ... an "end" checkpoint
"restored" with undoes=R: R is undone      "restored" with redoes=R: R is done again
a new run: what was undone cannot be redone any more
"""

from collections.abc import Sequence

from msgspec import Struct, field

from zotd.checkpoints.checkpoint import Checkpoint


class RecordedRun(Struct, frozen=True):
    """A run between two checkpoints."""

    run: str
    before: Checkpoint
    """Before its first step that could change something."""
    after: Checkpoint | None
    """At its end, or the next checkpoint of the workspace if its end was not recorded; None: there is none since."""

    has_end: bool
    """Whether its end was recorded: else changes that the user has made since then cannot be told from its own."""

    @property
    def changed_nothing(self) -> bool:
        """Whether it left the workspace as it was."""
        return self.after is not None and self.before.tree == self.after.tree


class UndoStack(Struct, frozen=True):
    """The runs of a session that changed something, oldest first."""

    done: Sequence[RecordedRun]
    """Undone next: the last one."""
    undone: Sequence[RecordedRun]
    """Redone next: the last one."""


class _Fold(Struct):
    done: list[str] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    before: dict[str, Checkpoint] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    """Place of the last checkpoint of a run that has not ended, by run."""
    after: dict[str, Checkpoint] = field(default_factory=dict)

    def runs(self, names: Sequence[str], history: Sequence[Checkpoint]) -> Sequence[RecordedRun]:
        """Return the runs with these names that changed something."""
        found = []
        for name in names:
            following = history[self.last[name] + 1 : self.last[name] + 2]
            after = self.after.get(name, following[0] if following else None)
            found.append(RecordedRun(name, self.before[name], after, name in self.after))
        return [one for one in found if not one.changed_nothing]

    def take(self, place: int, one: Checkpoint) -> None:
        if one.kind == "step":
            if one.run not in self.before:
                self.before[one.run] = one
                self.done.append(one.run)
                self.undone.clear()
            self.last[one.run] = place
        elif one.kind == "end" and one.run in self.before:
            self.after[one.run] = one
        elif one.undoes in self.done:
            self.done.remove(one.undoes)
            self.undone.append(one.undoes)
        elif one.redoes in self.undone:
            self.undone.remove(one.redoes)
            self.done.append(one.redoes)


def undo_stack(history: Sequence[Checkpoint], session: str) -> UndoStack:
    """Return what a session can undo and redo. `history`: all checkpoints of its workspace, oldest first."""
    fold = _folded(history, session)
    return UndoStack(fold.runs(fold.done, history), fold.runs(fold.undone, history))


def recorded_runs(history: Sequence[Checkpoint], session: str) -> Sequence[RecordedRun]:
    """Return all runs of a session that changed something, oldest first, also those that were undone since."""
    fold = _folded(history, session)
    return fold.runs(list(fold.before), history)


def _folded(history: Sequence[Checkpoint], session: str) -> _Fold:
    fold = _Fold()
    for place, one in enumerate(history):
        if one.session == session:
            fold.take(place, one)
    return fold
