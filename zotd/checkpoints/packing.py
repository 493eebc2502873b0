"""Keeps a shadow repository small: packs new objects from time to time, and forgets the oldest checkpoints.

Recording writes each object into a file of its own, which takes at least 4 KiB on the disk; in a pack, a version of a
file with one more line takes about 100 bytes.
"""

import os
from contextlib import suppress
from pathlib import Path

from zotd import pid_lock
from zotd.checkpoints import left_out
from zotd.checkpoints.history import checkpoints
from zotd.checkpoints.shadow import ShadowRepository

PACK_EVERY = 100
"""Number of checkpoints between two packings."""

PACKED = "zot-packed"
"""File with the number of the last checkpoint that is packed."""


def is_due(repository: ShadowRepository, number: int) -> bool:
    """Return whether there is something to pack when `number` is the last checkpoint."""
    return number - _packed(repository) >= PACK_EVERY


def pack(repository: ShadowRepository, number: int) -> None:
    """Pack what was recorded up to checkpoint `number`. Others may record meanwhile; does nothing if another one packs."""
    try:
        lock = pid_lock.acquire(Path(repository.folder, "packing.lock"), wait_s=0)
    except pid_lock.LockedError:
        return
    try:
        repository.run("repack", "-d", "-q", "--geometric=2")
        repository.write(PACKED, f"{number}\n")
    finally:
        os.close(lock)


def forget_old(repository: ShadowRepository, keep: int) -> None:
    """Forget all but the newest `keep` checkpoints, once there are `PACK_EVERY` more. The caller holds the lock."""
    found = checkpoints(repository)
    if len(found) < keep + PACK_EVERY:
        return
    # git takes a commit that is named in `shallow` for one without a parent, so the ones before it are unreachable.
    repository.write("shallow", f"{found[keep - 1].commit}\n")
    repository.run("repack", "-a", "-d", "-q")
    repository.run("prune", "--expire=now")
    left_out.keep(repository.folder, (one.left_out for one in found[:keep]))


def _packed(repository: ShadowRepository) -> int:
    with suppress(OSError, ValueError), open(os.path.join(repository.folder, PACKED), encoding="ascii") as file:
        return int(file.read())
    return 0
