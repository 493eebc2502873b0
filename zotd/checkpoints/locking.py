"""The lock of a workspace: one process at a time works on its checkpoints."""

import threading
import time
from pathlib import Path

from zotd import pid_lock
from zotd.checkpoints.errors import AbandonedError, CheckpointError

LOCK_S = 60.0
"""Longest wait for another process that records or restores the same workspace, in seconds."""

POLL_S = 0.01


def acquire(folder: str, workspace: str, abandoned: threading.Event) -> int:
    """Return a descriptor that holds the lock until it is closed. Blocks.

    Args:
        folder: the shadow repository.
        workspace: whose it is.
        abandoned: set when the caller does not wait any more.

    Raises:
        CheckpointError: another process holds it for too long.
        AbandonedError: the caller does not wait any more.
    """
    give_up = time.monotonic() + LOCK_S
    while True:
        try:
            return pid_lock.acquire(Path(folder, "lock"), wait_s=0)
        except pid_lock.LockedError as error:
            if time.monotonic() > give_up:
                raise CheckpointError(
                    f"process {error.holder} has been working on the checkpoints of {workspace} for {LOCK_S:g} s"
                ) from error
        if abandoned.wait(POLL_S):
            raise AbandonedError("the checkpoint was given up, because its caller stopped waiting")
