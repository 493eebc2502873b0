"""Reads a session from a file: one session or none, however long the file is.

    file -> lines -> records and events (original, exported) -> slices -> a hidden session -> published

The file is read twice: once for its digest, which tells a file that was imported before, once for its content. Both
happen in threads; memory holds a slice of the file and the outline of the transcript.
"""

import asyncio
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from typing import Protocol

import msgspec

from zotd import ids
from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.lineage import events_left
from zotd.core.plan import returned
from zotd.core.ports import SessionRow
from zotd.core.records import Settings
from zotd.history.draft import Draft
from zotd.history.import_go_zot import Original
from zotd.history.import_jsonl import ExportFile
from zotd.history.import_source import BadLineError, SourceSession
from zotd.history.past import past_at
from zotd.store.journal import StoredJournal
from zotd.store.session_limits import NO_LIMIT, SessionLimit
from zotd.store.staged import STATE
from zotd.store.staging import StagedSession, imported, staging
from zotd.wire import events
from zotd.wire.errors import Code, CommandError

SLICE_BYTES = 128 * 1024
"""Part of the file that is stored in one transaction: 2 to 4 ms, for which commits of other sessions may wait."""

LINE_BYTES = 64 * 1024 * 1024
"""Longest line, which holds one message: no vendor takes half of this in a request."""

NOTHING = Settings(provider="", model="")


@dataclass(frozen=True, slots=True)
class ImportSource:
    """What is to be imported."""

    path: str
    cwd: str
    """Where the session is to work; empty: where the file says."""
    mode: str
    """The approval mode of the session: a file does not choose one."""
    limit: SessionLimit = NO_LIMIT
    """The user that gets the session, whatever the file says, and how many that user may have."""


class LineReader(Protocol):
    """Understands the lines of one kind of file."""

    def take(self, line: bytes, draft: Draft) -> None:
        """Add what the line says; raises ValueError with what is wrong with it."""
        ...

    def end(self, draft: Draft) -> SourceSession:
        """Add what is missing at the end of the file; raises ValueError when it is not the end."""
        ...


async def import_file(journal: StoredJournal, source: ImportSource) -> tuple[str, bool]:
    """The id of the session that holds what is in the file, and whether it was imported before.

    Raises:
        CommandError: the file cannot be read, is no session, or the user has too many; nothing was imported.
        StorageError: the journal cannot be written; nothing was imported.
    """
    _check_paths(source)
    with _opened(source.path) as file:
        digest = await asyncio.to_thread(_digest, file)
        known = await imported(journal.database, digest)
        if known is not None:
            return known, True
        now = rfc3339()
        row = SessionRow(ids.new("s"), "", source.cwd, now, "", NOTHING, STATE, user=source.limit.user)
        async with staging(journal.database, row, source.limit) as staged:
            origin = await _store(staged, file, digest)
            await _publish(journal, staged, source, origin, digest=digest)
    return row.id, False


async def _store(staged: StagedSession, file: BufferedReader, digest: str) -> SourceSession:
    """Store everything that the file holds."""
    draft = Draft(staged.row)
    reading = _Reading(file, draft)
    while await asyncio.to_thread(reading.advance):
        await staged.store(draft.row, draft.take())
    if reading.digest != digest:
        raise CommandError(Code.CONFLICT, "the file has changed while it was read; import it again")
    assert reading.origin is not None
    await staged.store(draft.row, draft.take())
    return reading.origin


def _described(row: SessionRow, source: ImportSource, origin: SourceSession) -> SessionRow:
    """The row with what the file says of the session, as far as a file may say it.

    It neither chooses where requests go, nor what runs without being asked about, nor programs to start.
    """
    cwd = source.cwd or origin.cwd
    if not cwd.startswith("/"):
        raise CommandError(Code.BAD_REQUEST, f"{source.path} names no directory; give one with `cwd`")
    settings = msgspec.structs.replace(
        origin.settings, mode=source.mode, extensions=[], base_url=None, own_key=False, planning=""
    )
    created = origin.created or row.updated
    return msgspec.structs.replace(row, name=origin.name, cwd=cwd, created=created, settings=settings, state="idle")


async def _publish(
    journal: StoredJournal, staged: StagedSession, source: ImportSource, origin: SourceSession, *, digest: str
) -> None:
    """Let everybody see the session, with a last record that says where it comes from."""
    if not staged.row.seq:
        raise CommandError(Code.BAD_REQUEST, f"{source.path} has no messages; nothing was imported")
    past = await past_at(journal, staged.row, None, whole=False)
    row = msgspec.structs.replace(
        _described(staged.row, source, origin),
        messages=len(past.fold.transcript.messages),
        context=past.context,
        base=past.fold.base,
        abandoned=events_left(past.rewinds),
        plan=returned(past.plan, None),
    )
    draft = Draft(row)
    record = records.ForkRow(time=row.updated, session=origin.session, at=past.seq, file=source.path)
    draft.add(record, [events.Forked(origin.session, past.seq, file=source.path, text=origin.left_out)])
    await staged.publish(draft.row, draft.take(), digest=digest)


class _Reading:
    """Goes through the file; `advance` runs in a thread, while no other code uses the draft."""

    def __init__(self, file: BufferedReader, draft: Draft) -> None:
        self.origin: SourceSession | None = None
        """Known at the end."""
        self._file = file
        self._draft = draft
        self._reader: LineReader | None = None
        self._number = 0
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        """Digest of the bytes read so far."""
        return self._hash.hexdigest()

    def advance(self) -> bool:
        """Read the next slice of lines; False when that was the last."""
        size = 0
        while size < SLICE_BYTES:
            line = self._file.readline(LINE_BYTES + 1)
            size += len(line)
            self._hash.update(line)
            self._number += 1
            try:
                if not line:
                    self.origin = self._known().end(self._draft)
                    return False
                self._take(line)
            except ValueError as error:
                raise CommandError(Code.BAD_REQUEST, f"nothing was imported: line {self._number}: {error}") from error
        return True

    def _take(self, line: bytes) -> None:
        if len(line) > LINE_BYTES:
            raise BadLineError(f"it is longer than {LINE_BYTES >> 20} MiB")
        if self._reader is None:
            self._reader = ExportFile() if line.startswith(b'{"type":"session"') else Original()
        if not line.isspace():
            self._reader.take(line, self._draft)

    def _known(self) -> LineReader:
        if self._reader is None:
            raise BadLineError("the file is empty")
        return self._reader


def _check_paths(source: ImportSource) -> None:
    for name, path in (("path", source.path), ("cwd", source.cwd)):
        if path and not path.startswith("/"):
            raise CommandError(Code.BAD_REQUEST, f'{name} must be an absolute path, not "{path}"')


@contextmanager
def _opened(path: str) -> Iterator[BufferedReader]:
    """The file, which must be the user's own; nothing else is even waited for."""
    try:
        # A FIFO without a writer would keep the thread for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CommandError(Code.NOT_FOUND, f"{path} cannot be read: {reason}") from error
    try:
        _check_file(path, os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def _check_file(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise CommandError(Code.BAD_REQUEST, f"{path} is not a file")
    if status.st_uid != os.getuid():
        raise CommandError(Code.FORBIDDEN, f"{path} belongs to another user; import a copy of your own")


def _digest(file: BufferedReader) -> str:
    """SHA-256 of the whole file, which is then at its beginning again."""
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return digest
