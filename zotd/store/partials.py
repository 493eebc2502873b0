"""The text of running steps: at most one row per session, which the final message removes.

It is not a record, is not synced and may get lost. It lets people see what a long reply contained when a crash cut it.
Nothing waits for it, and at most one write per session is queued, however slow the disk is.
"""

import logging
from collections.abc import Callable
from functools import partial

from zotd.core.ports import JournalEntry, PartialText, StorageError
from zotd.core.records import Interrupted, Reply
from zotd.store.connection import SqlConnection, Write

_KEEP = """
INSERT INTO partials (session, run, step, text) SELECT key, ?, ?, ? FROM sessions WHERE id = ?
ON CONFLICT (session) DO UPDATE SET run = excluded.run, step = excluded.step, text = excluded.text
"""

_FIND = """
SELECT run, step, text FROM partials WHERE session = (SELECT key FROM sessions WHERE id = ?)
"""

SessionCheck = Callable[[SqlConnection, str], None]

log = logging.getLogger(__name__)


class _Slot:
    """A queued write and its text, which the event loop may replace until the writer's thread takes it."""

    def __init__(self, newest: PartialText) -> None:
        self.newest = newest
        self.written: PartialText | None = None

    def apply(self, connection: SqlConnection, check: SessionCheck, session: str) -> None:
        """Write the newest text; runs in the writer's thread, twice if the transaction fails."""
        check(connection, session)
        self.written = taken = self.newest  # one read of an attribute, which is atomic: no lock needed
        connection.execute(_KEEP, (taken.run, taken.step, taken.text.encode(), session))


class Partials:
    """Sends the newest partial text of each session to the writer."""

    def __init__(self, submit: Callable[[Write], None], check: SessionCheck) -> None:
        """`check` raises StorageError if the session is not this daemon's."""
        self._submit = submit
        self._check = check
        self._slots: dict[str, _Slot] = {}
        self._complained = False

    def keep(self, session: str, kept: PartialText) -> None:
        """Replace the session's queued text, or queue it."""
        slot = self._slots.get(session)
        if slot is not None:
            # The queued write reads `newest` when its turn comes, so no second write is needed.
            slot.newest = kept
            return
        slot = self._slots[session] = _Slot(kept)
        self._send(session, slot)

    def pass_by(self, session: str) -> None:
        """Call it before a commit of the session is queued: later texts must be written after that commit."""
        slot = self._slots.pop(session, None)
        # The thread has taken an older text: the newer one needs a write of its own, in front of the commit.
        if slot is not None and slot.written is not None and slot.newest is not slot.written:
            self._send(session, slot)

    def _send(self, session: str, slot: _Slot) -> None:
        done = partial(self._done, session, slot)
        self._submit(
            Write(partial(slot.apply, check=self._check, session=session), done, size_bytes=len(slot.newest.text))
        )

    def _done(self, session: str, slot: _Slot, error: StorageError | None) -> None:
        if error is not None and not self._complained:
            log.warning("the text of a running step could not be kept: %s", error)
        self._complained = error is not None
        # `pass_by` has detached this slot, and the session may have another one by now.
        if self._slots.get(session) is not slot:
            return
        if error is None and slot.newest is not slot.written:  # it was replaced while it was being written
            self._send(session, slot)
        else:
            del self._slots[session]


def find(connection: SqlConnection, session: str) -> PartialText | None:
    """Return the session's partial text, or None."""
    found = connection.execute(_FIND, (session,)).fetchone()
    if found is None:
        return None
    run, step, text = found
    # Text of a model may have null characters, which PostgreSQL does not store in a text. Older versions stored a text.
    return PartialText(run, step, text.decode(errors="replace") if isinstance(text, bytes) else text)


def is_replaced_by(entry: JournalEntry) -> bool:
    """Whether the record ends the step, so that its partial text is obsolete."""
    return isinstance(entry.record, Reply | Interrupted)


def remove(connection: SqlConnection, session: int) -> None:
    """Delete the partial text of the session with this key."""
    connection.execute("DELETE FROM partials WHERE session = ?", (session,))
