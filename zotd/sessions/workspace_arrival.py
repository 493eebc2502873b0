"""Has the files of a session here before it uses them, tells people and the model what came; and copies them before it leaves."""

import os
from collections.abc import Sequence

from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.outcome import Brought
from zotd.clock import rfc3339
from zotd.core import records
from zotd.ledger.ledger import Shown
from zotd.sanitize import escaped
from zotd.sessions.session import Session
from zotd.wire import events
from zotd.wire.content import Block, Text
from zotd.wire.errors import Code, CommandError

NAMED = 20
"""Most names of files in a sentence."""

TOLD = (
    "[The session goes on on another machine, and its files were brought there as they were stored after its last step. "
    "Programs that ran, files that git ignores and what is installed may differ.{kept}{commits}]"
)
KEPT = " These files were changed there meanwhile, and are as they were there: {names}. Read them again."
COMMITS = " About git: {commits}."
"""What the model is told."""


async def arrive(session: Session) -> None:
    """Have the files of the session here; raises CommandError if that is not possible, StorageError from the journal."""
    sync = session.checkpoints.sync
    if sync is None:
        return
    if sync.has_arrived:
        sync.retry()
    else:
        try:
            brought = await sync.arrive()
        except CheckpointError as error:
            raise CommandError(Code.CONFLICT, f"the files of the session are not here: {error}") from error
        if brought.place:
            sync.tell_later(_for_the_model(brought))
            await _record(session, [events.Notice("info", _for_people(brought))], files=len(brought.paths))
    # Nothing may stand between a call and its result: then the model is told with a later run.
    if not session.ledger.transcript.has_open_calls and (message := sync.take_untold()):
        await _record(session, [], message=message)


async def store(session: Session) -> None:
    """Copy the files before another daemon gets the session; raises CommandError if they cannot be stored."""
    sync = session.checkpoints.sync
    if sync is None:
        return
    try:
        await sync.flush()
    except CheckpointError as error:
        raise CommandError(Code.CONFLICT, f"the files of the session cannot be stored: {error}") from error


async def _record(session: Session, shown: Sequence[events.Notice], *, files: int = 0, message: str = "") -> None:
    content: list[Block] = [Text(message)] if message else []
    record = records.FileRestore(time=rfc3339(), action="arrival", files=files, checkpoint=0, content=content)
    await session.ledger.write([Shown(record, shown)], durable=True)


def _for_people(brought: Brought) -> str:
    number = len(brought.paths)
    made = rfc3339(brought.made)
    text = f"brought {number} file{'' if number == 1 else 's'} from {escaped(brought.place)}, as they were stored there at {made}"
    if brought.kept:
        text += f"; left alone: {_names([str(one) for one in brought.kept])}"
    if brought.commits:
        text += f"; {escaped(brought.commits)}"
    return text


def _for_the_model(brought: Brought) -> str:
    return TOLD.format(
        kept=KEPT.format(names=_names([one.path for one in brought.kept])) if brought.kept else "",
        commits=COMMITS.format(commits=escaped(brought.commits)) if brought.commits else "",
    )


def _names(paths: Sequence[str]) -> str:
    named = ", ".join(escaped(os.fsencode(path).decode(errors="replace")) for path in paths[:NAMED])
    return named + (f" and {len(paths) - NAMED} more" if len(paths) > NAMED else "")
