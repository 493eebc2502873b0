"""Changes of runs in files: shown; and their undo, redo and rewind, recorded, and told to people and to the model.

The model gets a message with the names of the files, since what it has read of them is no longer so. After a rewind it
gets none: the conversation goes back with the files.
"""

import os
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import TypeVar

from zotd.checkpoints.errors import ChangedSinceError, CheckpointError, UnclearRunError
from zotd.checkpoints.outcome import Kept, Restored, WhenChanged
from zotd.clock import rfc3339
from zotd.core import records
from zotd.ledger.ledger import Shown
from zotd.sanitize import escaped
from zotd.sessions.errands import run_alone
from zotd.sessions.session import Session
from zotd.wire import events
from zotd.wire.api import ChangedFile, ChangedFiles, FilesRestored, KeptFile
from zotd.wire.content import Block, Text
from zotd.wire.errors import Code, CommandError

LISTED = 1000
"""Most names of files in an answer."""

PATCH_BYTES = 256 * 1024
"""Longest patch in an answer."""

NAMED = 20
"""Most names of files in a sentence."""

FLAGS = {"": WhenChanged.REFUSE, "--keep": WhenChanged.KEEP, "--force": WhenChanged.OVERWRITE}
"""How people say in a slash command what happens to files that they have changed."""

UNDONE = (
    "[The user has undone what an earlier run changed in these files, which are as before that run now: {names}. "
    "Read them again before you rely on their content.]"
)
REDONE = (
    "[The user has made changes again that were undone before, in these files: {names}. "
    "Read them again before you rely on their content.]"
)
"""What the model is told."""

SUMMARIES = {
    "undo": "undone: {files} as before",
    "redo": "done again: {files} as before the undo",
    "rewind": "{files} as at that message",
}
"""What people are told, by action."""

Done = TypeVar("Done")


async def undo(
    session: Session,
    when_changed: WhenChanged,
    *,
    accepted: Callable[[FilesRestored], None],
    after: int | None = None,
) -> None:
    """Take back what runs have changed: the last one, or all that began after the event `after`.

    `accepted` is called when that is done and on record.

    Raises:
        CommandError: something runs, there is nothing to undo, or the user has changed files and `when_changed` refuses.
        StorageError: the files are restored, but the journal cannot be written.
    """

    async def work() -> None:
        if after is None:
            done: Sequence[Restored] = [await _carried_out(session.checkpoints.undo(when_changed))]
        else:
            done = await _carried_out(session.checkpoints.undo_after(after, when_changed))
        await _record(session, "undo", done, accepted)

    await run_alone(session, work)


async def redo(session: Session, when_changed: WhenChanged, *, accepted: Callable[[FilesRestored], None]) -> None:
    """Make the changes again that the last undo has taken back; otherwise as `undo`."""

    async def work() -> None:
        done = await _carried_out(session.checkpoints.redo(when_changed))
        await _record(session, "redo", [done], accepted)

    await run_alone(session, work)


async def undo_after(session: Session, seq: int, when_changed: WhenChanged) -> FilesRestored:
    """Take back what all runs behind the event `seq` have changed; call it in an errand. Raises as `undo`."""
    done = await _carried_out(session.checkpoints.undo_after(seq, when_changed))
    found: list[FilesRestored] = []
    await _record(session, "rewind", done, found.append)
    return found[0]


async def changes(session: Session, after: int, until: int | None) -> ChangedFiles:
    """Return what a run has changed in files; raises CommandError if there is no such run."""
    found = await _carried_out(session.checkpoints.changes(after, until))
    patch = found.patch[:PATCH_BYTES]
    if is_cut := len(patch) < len(found.patch):
        patch = patch[: patch.rfind(b"\n") + 1]
    files = [
        ChangedFile(_shown(path), *([] if lines is None else lines))
        for path, lines in islice(found.files.items(), LISTED)
    ]
    return ChangedFiles(found.run.run, files, len(found.files), patch.decode(errors="replace"), is_cut)


def flag_of(args: str) -> WhenChanged:
    """Return what the arguments of a slash command say; raises CommandError if they are not understood."""
    found = FLAGS.get(args)
    if found is None:
        raise CommandError(
            Code.BAD_REQUEST,
            "the only arguments are --keep, which leaves files that you have changed since, and --force, which restores "
            "them, too",
        )
    return found


def policy_of(word: str) -> WhenChanged:
    """Return what the field `when_changed` of a request says; raises CommandError for an unknown word."""
    try:
        return WhenChanged(word)
    except ValueError as error:
        known = ", ".join(WhenChanged)
        raise CommandError(Code.BAD_REQUEST, f'unknown when_changed "{word}"; there are {known}') from error


async def _carried_out(work: Awaitable[Done]) -> Done:
    try:
        return await work
    except ChangedSinceError as error:
        verb = "was" if len(error.paths) == 1 else "were"
        sentence = (
            f"{_names(error.paths)} {verb} changed since then, so nothing was restored; repeat it with --keep to leave "
            "what was changed as it is, or with --force to restore that, too"
        )
        raise CommandError(Code.CONFLICT, sentence) from error
    except UnclearRunError as error:
        sentence = (
            f"that run was cut, so what it has changed cannot be told from later changes: {_names(error.paths)}; nothing "
            "was restored; --force restores all of these files"
        )
        raise CommandError(Code.CONFLICT, sentence) from error
    except CheckpointError as error:
        raise CommandError(Code.CONFLICT, str(error)) from error


async def _record(
    session: Session, action: str, done: Sequence[Restored], accepted: Callable[[FilesRestored], None]
) -> None:
    answer = _answer(action, done)
    record = records.FileRestore(
        time=rfc3339(),
        action=action,
        files=answer.files,
        checkpoint=answer.checkpoint,
        content=_told_to_model(action, answer),
    )
    notice = events.Notice("info", answer.text)
    shown = Shown(record, [notice] if action != "rewind" or done else [])
    await session.ledger.write([shown], durable=True, accepted=lambda: accepted(answer))


def _answer(action: str, done: Sequence[Restored]) -> FilesRestored:
    paths = sorted({path for one in done for path in one.paths})
    kept = sorted({one.path: one for restored in done for one in restored.kept}.values(), key=lambda one: one.path)
    before = done[0].before.number if done else 0
    return FilesRestored(
        restored=[_shown(path) for path in paths[:LISTED]],
        kept=[KeptFile(_shown(one.path), str(one).removeprefix(f"{one.path}: ")) for one in kept[:LISTED]],
        files=len(paths),
        checkpoint=before,
        text=_sentence(action, paths, kept, before),
    )


def _sentence(action: str, paths: Sequence[str], kept: Sequence[Kept], before: int) -> str:
    parts = ["no file was changed"]
    if paths:
        files = f"{len(paths)} file{'s' if len(paths) > 1 else ''} ({_names(paths)})"
        parts = [SUMMARIES[action].format(files=files)]
    if kept:
        parts.append(f"left alone: {_names([str(one) for one in kept])}")
    if paths:
        parts.append(f"`zotctl checkpoints restore {before} --force` returns to the state before")
    return "; ".join(parts)


def _told_to_model(action: str, answer: FilesRestored) -> list[Block]:
    text = {"undo": UNDONE, "redo": REDONE}.get(action)
    if text is None or not answer.restored:
        return []
    more = f", and {answer.files - NAMED} more" if answer.files > NAMED else ""
    return [Text(text.format(names=", ".join(answer.restored[:NAMED]) + more))]


def _names(paths: Sequence[str]) -> str:
    named = ", ".join(escaped(_shown(path)) for path in paths[:NAMED])
    return named + (f" and {len(paths) - NAMED} more" if len(paths) > NAMED else "")


def _shown(path: str) -> str:
    """Return a path as text: names of files are bytes."""
    return os.fsencode(path).decode(errors="replace")
