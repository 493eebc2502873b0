"""A session that is put together from elsewhere: its records are numbered, and their events stamped."""

from collections.abc import Sequence

import msgspec

from zotd.core.ports import JournalEntry, SessionRow
from zotd.core.records import AnyRecord, UsageRow
from zotd.ledger.entries import entry_of
from zotd.wire import events
from zotd.wire.content import Tokens


class Draft:
    """The row of the session, and what was added to it since it was last asked."""

    def __init__(self, row: SessionRow) -> None:
        self.row = row
        """The row of the session with all records added so far."""
        self._entries: list[JournalEntry] = []

    def add(self, record: AnyRecord, shown: Sequence[events.Event] = ()) -> None:
        """Append a record and the events that it shows."""
        row = self.row
        stamped = [
            msgspec.structs.replace(event, session=row.id, seq=seq) for seq, event in enumerate(shown, row.seq + 1)
        ]
        self._entries.append(entry_of(row.records + 1, record, row.seq + 1, stamped))
        took = record.tokens if isinstance(record, UsageRow) else None
        self.row = msgspec.structs.replace(
            row,
            records=row.records + 1,
            seq=row.seq + len(stamped),
            usage=row.usage + (took or Tokens()),
            updated=max(row.updated, record.time),
        )

    def take(self) -> list[JournalEntry]:
        """The records that were added since."""
        entries, self._entries = self._entries, []
        return entries
