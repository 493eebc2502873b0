"""A copy of a session's files, as a commit without parents that other machines fetch.

tree of the commit:  files/ (a recorded state)  +  left-out (what that does not contain)
message:             `CopyFacts`, as JSON
"""

import time
from collections.abc import Mapping, Sequence

import msgspec

from zotd.checkpoints import commits, left_out, objects
from zotd.checkpoints.commits import AUTHOR
from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.objects import DIRECTORY, RecordedEntry, Trees
from zotd.checkpoints.shadow import EMPTY_TREE, ShadowRepository
from zotd.checkpoints.trees import REGULAR
from zotd.checkpoints.user_history import CheckedOut


class CopyFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a copy.

    Attributes:
        session: whose files it has.
        place: name of the machine or volume on which it was made.
        maker: random name of the directory and home of which it was made.
        versions: for each directory that took part, by its random name, the number of its last state that is part of this one.
        head: commit that was checked out; empty: none, or one that cannot be sent.
        branch: that was checked out; empty: none.
        made: seconds since the epoch.
    """

    session: str
    place: str
    maker: str
    versions: Mapping[str, int]
    head: str = ""
    branch: str = ""
    made: float = 0.0

    def contains(self, other: "CopyFacts") -> bool:
        """Return whether the state of the other copy is part of the history of this one."""
        return all(self.versions.get(name, 0) >= number for name, number in other.versions.items())

    @property
    def checked_out(self) -> CheckedOut:
        """What was checked out."""
        return CheckedOut(self.head, self.branch)


class WorkspaceCopy(msgspec.Struct, frozen=True):
    """A copy that is in a shadow repository."""

    commit: str
    tree: str
    """Name of the tree of the files."""
    listed: str
    """Name of the list of what it does not contain."""
    facts: CopyFacts


def make(
    repository: ShadowRepository, tree: str, omissions: Sequence[left_out.Omission], facts: CopyFacts
) -> WorkspaceCopy:
    """Store a copy of a recorded state. The caller holds the lock of the workspace."""
    if tree == EMPTY_TREE:
        objects.write(repository, "tree", b"")
    listed = _listed(repository, omissions)
    top = Trees().put(
        repository, {b"files": RecordedEntry(DIRECTORY, tree), b"left-out": RecordedEntry(REGULAR, listed)}
    )
    when = f"{AUTHOR} {int(time.time())} +0000"
    body = f"tree {top}\nauthor {when}\ncommitter {when}\n\n".encode() + msgspec.json.encode(facts)
    return WorkspaceCopy(objects.write(repository, "commit", body), tree, listed, facts)


def is_of(
    repository: ShadowRepository,
    copy: WorkspaceCopy,
    tree: str,
    *,
    omissions: Sequence[left_out.Omission],
    head: CheckedOut,
) -> bool:
    """Return whether a copy of this state would be the same one."""
    same_head = (copy.facts.head, copy.facts.branch) == (head.commit, head.branch)
    return same_head and copy.tree == tree and copy.listed == _listed(repository, omissions)


def read(repository: ShadowRepository, commit: str) -> WorkspaceCopy:
    """Return a copy; raises CheckpointError if the commit is none."""
    found = commits.read(repository, commit)  # without git, if it has a file of its own
    if found is None:
        top = repository.run("rev-parse", f"{commit}^{{tree}}").decode().strip()
        found = top, repository.run("cat-file", "commit", commit).partition(b"\n\n")[2]
    entries = Trees().get(repository, found[0])
    try:
        facts = msgspec.json.decode(found[1], type=CopyFacts)
        return WorkspaceCopy(commit, entries[b"files"].name, entries[b"left-out"].name, facts)
    except (msgspec.MsgspecError, KeyError) as error:
        raise CheckpointError(f"{commit} in the shared repository is no copy of files that zot has made") from error


def omissions_of(repository: ShadowRepository, copy: WorkspaceCopy) -> left_out.LeftOut:
    """Return what a copy does not contain; raises CheckpointError if the list is damaged."""
    try:
        return left_out.decoded(repository.run("cat-file", "blob", copy.listed))
    except ValueError as error:
        raise CheckpointError(f"the list of what {copy.commit} left out is damaged ({error})") from error


def _listed(repository: ShadowRepository, omissions: Sequence[left_out.Omission]) -> str:
    return objects.write(repository, "blob", left_out.encoded(left_out.left_out(omissions)))
