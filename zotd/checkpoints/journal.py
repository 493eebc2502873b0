"""The journal of a restore: what it is about to change, on disk before it changes anything.

A restore that was interrupted is finished from it. A file that is then in neither of its two states was changed by the
user in between and stays as it is.
"""

import os
from collections.abc import Sequence

import msgspec

from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.folders import JOURNAL
from zotd.checkpoints.plan import PathChange
from zotd.checkpoints.trees import FileState


class _Row(msgspec.Struct, frozen=True, array_like=True):
    path: bytes
    before: tuple[int, str] | None
    after: tuple[int, str] | None


class _Content(msgspec.Struct, frozen=True):
    draft: str
    occasion: msgspec.Raw
    rows: list[_Row]


class RestoreJournal(msgspec.Struct, frozen=True):
    """What a restore changes.

    Attributes:
        draft: how the names of its temporary files begin.
        occasion: JSON of the checkpoint to be recorded after it.
        changes: in the order in which they are made.
    """

    draft: str
    occasion: bytes
    changes: Sequence[PathChange]


def write(folder: str, journal: RestoreJournal) -> None:
    """Put the journal on disk; it survives a power failure when this returns."""
    rows = [_Row(os.fsencode(one.path), _pair(one.before), _pair(one.after)) for one in journal.changes]
    content = msgspec.json.encode(_Content(journal.draft, msgspec.Raw(journal.occasion), rows))
    draft = os.path.join(folder, f"{JOURNAL}.draft")
    with open(draft, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, os.path.join(folder, JOURNAL))
    _sync(folder)


def read(folder: str) -> RestoreJournal | None:
    """Return the journal of an interrupted restore; None if there is none. Raises CheckpointError if it is damaged."""
    place = os.path.join(folder, JOURNAL)
    try:
        with open(place, "rb") as file:
            content = msgspec.json.decode(file.read(), type=_Content)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise CheckpointError(f"{place} cannot be read: {error}; remove it to leave the workspace as it is") from error
    changes = [PathChange(os.fsdecode(row.path), _state(row.before), _state(row.after)) for row in content.rows]
    return RestoreJournal(content.draft, bytes(content.occasion), changes)


def remove(folder: str) -> None:
    """The restore is complete."""
    os.unlink(os.path.join(folder, JOURNAL))
    _sync(folder)


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _pair(state: FileState | None) -> tuple[int, str] | None:
    return None if state is None else (state.mode, state.blob)


def _state(pair: tuple[int, str] | None) -> FileState | None:
    return None if pair is None else FileState(*pair)
