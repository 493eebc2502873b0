"""Errors of checkpoints. Each message is one sentence for the user."""

from collections.abc import Sequence


class CheckpointError(Exception):
    """A checkpoint could not be recorded, read or restored."""


class UnrecordableError(CheckpointError):
    """The workspace cannot be recorded, and the next attempt would fail in the same way."""


class AbandonedError(CheckpointError):
    """git was stopped: it took too long, or its caller does not wait any more."""


class DiskFullError(CheckpointError):
    """There is too little space to record; the next attempt may find more."""


class UnclearRunError(CheckpointError):
    """The end of a run was not recorded, so it is not known which changes are its own, and nothing was restored."""

    def __init__(self, paths: Sequence[str]) -> None:
        """`paths`: what has changed since the run began, relative to the workspace."""
        self.paths = paths
        super().__init__(f"the run was cut, so its changes cannot be told from later ones: {', '.join(paths)}")


class ChangedSinceError(CheckpointError):
    """The user has changed files since, and nothing was restored."""

    def __init__(self, paths: Sequence[str]) -> None:
        """`paths`: these files, relative to the workspace; at least one."""
        self.paths = paths
        super().__init__(f"{', '.join(paths)} changed since, so nothing was restored")
