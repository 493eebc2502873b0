"""Which workspaces can be recorded at all, told before anything is read."""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache

from zotd.checkpoints.errors import UnrecordableError

NETWORK = frozenset(
    {
        "9p",
        "afs",
        "ceph",
        "cifs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "lustre",
        "nfs",
        "nfs4",
        "smb3",
    }
)
"""Types of file systems on which each look at a file is a request to another machine."""

LOCAL = frozenset({"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "reiserfs", "tmpfs", "xfs", "zfs"})
"""Types of file systems that only this kernel changes, so that it knows of each change."""

MOUNTS = "/proc/self/mountinfo"


def check(workspace: str, env: Mapping[str, str], mounts: str = MOUNTS) -> None:
    """Raise UnrecordableError if the workspace is none that can be recorded. Blocks.

    Args:
        workspace: its real path.
        env: of the user, for `HOME`.
        mounts: the kernel's table of mounts; a file that is missing says nothing.
    """
    user = os.path.realpath(env.get("HOME") or os.path.expanduser("~"))
    if workspace == "/":
        raise UnrecordableError("the root of the file system is not recorded; start zot in a project's directory")
    if user == workspace or user.startswith(workspace + os.sep):
        raise UnrecordableError(f"{workspace} contains your home directory; start zot in a project's directory")
    if not os.path.isdir(workspace):
        raise UnrecordableError(f"{workspace} is not a directory any more")
    kind = _file_system(workspace, mounts)
    if kind in NETWORK:
        raise UnrecordableError(f"{workspace} is on a network file system ({kind}), on which recording takes too long")


def why_unwatchable(workspace: str, mounts: str = MOUNTS) -> str:
    """Return why the kernel does not report each change in a workspace, for example for a network file system.

    Empty if it does. Blocks.
    """
    kind = _file_system(workspace, mounts)
    if kind not in LOCAL:
        return f"it is on a file system of the type {kind or 'unknown'}"
    if any(place.startswith(f"{workspace}/") for place, _ in _mounts(mounts)):
        return "another file system is mounted in it"
    return ""


def _file_system(path: str, mounts: str) -> str:
    """Return the type of the file system of a path; empty if it is not known."""
    found = _mounts(mounts)
    within = [one for one in found if one[0] in {"/", path} or path.startswith(f"{one[0]}/")]
    # Of two on one place, the later one hides the other.
    return max(enumerate(within), key=lambda one: (len(one[1][0]), one[0]))[1][1] if within else ""


def _mounts(mounts: str) -> Sequence[tuple[str, str]]:
    """Return place and type of each file system; none if they are not known."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            return _parsed(file.read())
    except (OSError, IndexError):
        return ()


@lru_cache(maxsize=1)
def _parsed(table: str) -> Sequence[tuple[str, str]]:
    # Kept, because each step of a run looks at it three times, and it hardly ever changes.
    return tuple(map(_mount, table.removesuffix("\n").split("\n")))


def _mount(line: str) -> tuple[str, str]:
    """Return place and type of the file system in a line of the table."""
    fields, _, rest = line.partition(" - ")
    return fields.split(" ")[4].replace("\\040", " "), rest.split(" ", 1)[0]
