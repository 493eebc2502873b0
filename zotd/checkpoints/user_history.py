"""The commit that is checked out in a user's repository, and how it follows a session to another machine.

No setting of the user's repository starts a program: hooks are off, and fetches are done by the shadow repository.
"""

import os
import shutil
from collections.abc import Sequence

from msgspec import Struct

from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.shadow import ShadowRepository
from zotd.checkpoints.shared_repository import SharedRepository

TAKEN = "refs/zot"
"""Where a user's repository has the commits of other places, by session."""

QUIET = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "user.name=zot", "-c", "user.email=zot@localhost"),
)
"""Options of git for the user's repository."""


class CheckedOut(Struct, frozen=True):
    """What is checked out."""

    commit: str = ""
    """Empty: nothing that can be sent."""
    branch: str = ""
    objects: str = ""
    """Directory of the objects of its repository."""


def head_of(repository: ShadowRepository, workspace: str) -> CheckedOut:
    """Return what is checked out in a directory that is the top of a git repository; nothing for a shallow clone."""
    git = os.path.join(workspace, ".git")
    if not os.path.exists(git):
        return CheckedOut()
    try:
        asked = ("--path-format=absolute", "--git-common-dir", "--is-shallow-repository", "--show-object-format")
        common, shallow, kind = _run(repository, git, "rev-parse", *asked).splitlines()
        commit = _run(repository, git, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        name = _run(repository, git, "rev-parse", "--symbolic-full-name", "HEAD")
    except (CheckpointError, ValueError):  # without a commit, or damaged
        return CheckedOut()
    if shallow != "false" or kind != "sha1":
        return CheckedOut()
    branch = name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else ""
    return CheckedOut(commit, branch, os.path.join(common, "objects"))


def make_repository(shadow: ShadowRepository, shared: SharedRepository, session: str, there: CheckedOut) -> bool:
    """Make a git repository in the working tree of `shadow`, with what is checked out at the other place.

    Returns False if its history was not pushed; then there is no git repository.
    """
    git = os.path.join(shadow.workspace, ".git")
    _run(shadow, git, "init", "--quiet", "--template=", "--initial-branch=main")
    commit = shared.fetch_history(session, "", {"GIT_DIR": git})
    if commit != there.commit:
        shutil.rmtree(git)
        return False
    if there.branch:
        _run(shadow, git, "update-ref", f"refs/heads/{there.branch}", commit)
        _run(shadow, git, "symbolic-ref", "HEAD", f"refs/heads/{there.branch}")
    else:
        _run(shadow, git, "update-ref", "--no-deref", "HEAD", commit)
    _run(shadow, git, "read-tree", "HEAD")
    return True


def advance(
    shadow: ShadowRepository,
    shared: SharedRepository,
    session: str,
    *,
    here: CheckedOut,
    then: CheckedOut,
    there: CheckedOut,
) -> bool:
    """Bring the commits of another place to the user's repository, and move its branch on to them.

    The commits are named `refs/zot/SESSION` there. The branch is moved only if the repository is as it was when the session left, without staged changes, and nothing of its
    branch would be lost.

    Args:
        shadow: of the workspace.
        shared: has the commits.
        session: its id.
        here: what is checked out.
        then: what was checked out here when the session left.
        there: what is checked out at the other place.

    Returns:
        Whether what was checked out there is checked out here.
    """
    if not there.commit or there.commit == here.commit:
        return there.commit == here.commit and there.branch == here.branch
    if not here.commit:
        return False
    git = os.path.join(shadow.workspace, ".git")
    try:
        # By way of the shadow repository, which does not read the settings of the user's.
        both = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": here.objects}
        shared.fetch_history(session, here.commit, both)
        wanted = f"{there.commit}\n^{here.commit}\n".encode()
        pack = shadow.run("pack-objects", "--revs", "--stdout", "--quiet", stdin=wanted, variables=both)
        shadow.run(*QUIET, "unpack-objects", "-q", stdin=pack, variables={"GIT_DIR": git})
        # The next push replaces them in the shared repository.
        _run(shadow, git, "update-ref", f"{TAKEN}/{session}", there.commit)
        if (here.commit, here.branch) != (then.commit, then.branch):
            return False
        if _run(shadow, git, "write-tree") != _run(shadow, git, "rev-parse", "HEAD^{tree}"):
            return False
        _run(shadow, git, "merge-base", "--is-ancestor", here.commit, there.commit)  # fails if it is none
        for order in _orders(here, there):
            _run(shadow, git, *order)
    except CheckpointError:
        return False
    return True


def _orders(here: CheckedOut, there: CheckedOut) -> Sequence[Sequence[str]]:
    """Return the commands that check out what is checked out there, but its files. The first one checks what is here."""
    read = ("read-tree", there.commit)
    if here.branch == there.branch:
        return ("update-ref", "-m", "zot: brought", "HEAD", there.commit, here.commit), read
    if not there.branch:
        return ("update-ref", "-m", "zot: brought", "--no-deref", "HEAD", there.commit, here.commit), read
    name = f"refs/heads/{there.branch}"
    # An existing branch of that name stays as it is: the command fails.
    return ("update-ref", name, there.commit, "0" * 40), ("symbolic-ref", "-m", "zot: brought", "HEAD", name), read


def _run(shadow: ShadowRepository, git: str, *args: str) -> str:
    return shadow.run(*QUIET, *args, variables={"GIT_DIR": git}).decode(errors="surrogateescape").strip()
