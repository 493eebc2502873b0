"""Errors of checkpoints. Each message is one sentence for the user."""


class CheckpointError(Exception):
    """A checkpoint could not be recorded, read or restored."""


class UnrecordableError(CheckpointError):
    """The workspace cannot be recorded, and the next attempt would fail in the same way."""


class AbandonedError(CheckpointError):
    """The caller does not wait any more, so git was stopped."""
