"""What people are asked in sessions that are not in memory: read without loading one, and let go of at once."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

from zotd.core import records
from zotd.core.ports import SessionRow
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger
from zotd.permissions.approvals import asked, is_over
from zotd.store.errors import UnreadableSessionError
from zotd.store.journal import StoredJournal
from zotd.wire import events

STATES = ("waiting", "running")
"""States, on disk, of sessions in which something may be pending; of those outside of memory the latter were cut."""

PAGE = 100
"""Rows that are in memory at once, beside one transcript."""


async def questions(
    journal: StoredJournal, is_loaded: Callable[[str], bool]
) -> AsyncGenerator[events.ApprovalRequested, None]:
    """What is pending there, a session after the other; without what should have been decided by now.

    `is_loaded`: whether the session with an id is in memory. A damaged session is left out, and one that changes
    meanwhile may be. Raises StorageError when nothing can be read.
    """
    for state in STATES:
        async for row in _rows(journal, state):
            for one in [] if is_loaded(row.id) else await _pending(journal, row):
                yield one


def lasting(transcript: Transcript) -> Mapping[str, records.ApprovalRow]:
    """Return the requests that are asked again after a restart, by id: not those of commands that run."""
    return {key: row for key, row in transcript.approvals.items() if not row.while_running}


async def _rows(journal: StoredJournal, state: str) -> AsyncIterator[SessionRow]:
    cursor: str | None = None
    while True:
        rows, cursor = await journal.list(state=state, before=cursor, limit=PAGE)
        for row in rows:
            yield row
        if cursor is None:
            return


async def _pending(journal: StoredJournal, row: SessionRow) -> list[events.ApprovalRequested]:
    ledger = Ledger(row, journal, Transcript(), addressed=True)
    try:
        ledger.load(await journal.records(row.id, row.base))
    except UnreadableSessionError:  # others have questions, too
        return []
    found = ledger.transcript
    waiting = (one for key, one in lasting(found).items() if key not in found.decisions)
    return [asked(one, row.id) for one in waiting if not is_over(one)]
