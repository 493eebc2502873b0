"""Copies the files of a directory that is there to a shared repository, and brings changes from other places to it."""

import os
import time

from msgspec import Struct

from zotd.checkpoints import left_out, workspace_copy
from zotd.checkpoints.checkpoint import Checkpoint, Occasion
from zotd.checkpoints.checkpoints import Checkpoints
from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.known_copies import KnownCopies
from zotd.checkpoints.outcome import Brought
from zotd.checkpoints.shared_repository import SharedRepository
from zotd.checkpoints.user_history import TAKEN, CheckedOut, advance, head_of
from zotd.checkpoints.workspace_copy import CopyFacts, WorkspaceCopy


class MadeCopy(Struct, frozen=True):
    """A copy that is to be pushed."""

    commit: str
    head: CheckedOut


class SyncedCheckpoints(Checkpoints):
    """Checkpoints of a workspace, with copies of it in a shared repository."""

    @property
    def known(self) -> KnownCopies:
        """The copies whose state the workspace had."""
        return KnownCopies(self.repository)

    def copied(self, session: str, place: str, expected: str) -> MadeCopy:
        """Store a copy of the present state; the copy `expected` if it is one. Raises as `record` does."""
        with self._locked():
            present, head = self._recorder().present(), head_of(self.repository, self.workspace)
            omissions = list(present.omissions.values())
            last = next((one for one in self.known.all() if one.commit == expected), None)
            is_own = last is not None and last.facts.maker == self.known.own_name()
            if (
                last
                and is_own
                and workspace_copy.is_of(self.repository, last, present.tree, omissions=omissions, head=head)
            ):
                return MadeCopy(expected, head)
            facts = CopyFacts(
                session=session,
                place=place,
                maker=self.known.own_name(),
                versions=self.known.next_versions(),
                head=head.commit,
                branch=head.branch,
                made=time.time(),
            )
            made = workspace_copy.make(self.repository, present.tree, omissions, facts)
            self.known.add(made)
            return MadeCopy(made.commit, head)

    def has_had(self, session: str, found: str, place: str, shared: SharedRepository) -> bool:
        """Return whether the workspace has the state of the copy `found`, or a later one, so that it may be copied itself."""
        copy = self._fetched(found, session, shared)
        return copy.facts.place == place or any(one.commit == found for one in self.known.all())

    def bring(self, found: str, session: str, place: str, shared: SharedRepository) -> Brought:
        """Change the files as they have changed at another place since this directory had their state.

        Files that were changed here meanwhile are left alone.

        Raises:
            CheckpointError: this directory never had a state of these files, or it failed.
        """
        copy = self._fetched(found, session, shared)
        with self._locked():
            is_own = copy.facts.maker == self.known.own_name()
            is_known = any(one.commit == found or one.facts.contains(copy.facts) for one in self.known.all())
            if is_known or copy.facts.place == place:
                self.known.add(copy)
                return Brought(is_own=is_own)
            base = self.known.base_of(copy)
            tree = base.tree if base else self._clean_tree(copy)
            digest = left_out.write(self.repository.folder, workspace_copy.omissions_of(self.repository, copy))
            here = head_of(self.repository, self.workspace)
            done = self._restore(
                [Checkpoint(kind="present", number=0, time="", tree=tree)],
                Checkpoint(kind="present", number=0, time="", tree=copy.tree, left_out=digest),
                Occasion(kind="restored", session=session),
                is_within=True,
            )
        # Not under the lock, because it fetches: a person who commits meanwhile is noticed by git.
        then = base.facts.checked_out if base else here
        there = copy.facts.checked_out
        has_commits = not there.commit or advance(self.repository, shared, session, here=here, then=then, there=there)
        with self._locked():
            self.known.add(copy)
        return Brought(
            copy.facts.place,
            copy.facts.made,
            done.paths,
            done.kept,
            commits="" if has_commits else _not_taken(here, there, session),
        )

    def _fetched(self, found: str, session: str, shared: SharedRepository) -> WorkspaceCopy:
        """Return the copy that is in the shared repository. The lock is not held while it is fetched."""
        with self._locked():  # which makes the shadow repository
            for one in self.known.all():
                if one.commit == found:
                    return one
        shared.fetch(session)
        return workspace_copy.read(self.repository, found)

    def _clean_tree(self, copy: WorkspaceCopy) -> str:
        """Return the present state if it is that of the commit that was checked out where the copy was made.

        Raises CheckpointError if it is not: whose files these are is not known.
        """
        head = head_of(self.repository, self.workspace)
        present = self._recorder().present()
        if head.commit and head.commit == copy.facts.head:
            printed = self.repository.run(
                *("diff-tree", "-r", "-z", "--name-only", "--no-renames", head.commit, present.tree),
                variables={"GIT_ALTERNATE_OBJECT_DIRECTORIES": head.objects},
            )
            omitted = left_out.left_out(present.omissions.values())
            names = [os.fsdecode(name) for name in printed.split(b"\0") if name]
            if all(omitted.covers(name) or omitted.covers(f"{name}/") for name in names):
                return present.tree
        raise CheckpointError(
            f"{self.workspace} exists here and is not known to have files of this session, whose files are from "
            f"{copy.facts.place}; move the directory away, or check out the same commit there without changes"
        )


def _not_taken(here: CheckedOut, there: CheckedOut, session: str) -> str:
    if not here.commit:
        return f"the commit {there.commit[:10]} was checked out there, and there is no git repository with commits here"
    return (
        f"the git repository here stays at {here.commit[:10]}, because it differs from what the session left, or has staged "
        f"changes; the commits up to {there.commit[:10]} are in it if `git log {TAKEN}/{session}` shows them"
    )
