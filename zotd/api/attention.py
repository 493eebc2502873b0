"""Notifies one client when a session needs attention and no client has the focus.

    approval requested ───────────────> needs_you
    done, and the run took a while ───> done, or failed when it ended with an error
    done, because somebody aborted it ─> nothing: whoever did that knows

Which client it is, and whether there is one at all, says whoever keeps the list of them (`zotd.api.presence`).
"""

import asyncio
from collections.abc import Callable, Sequence

from zotd.sanitize import escaped
from zotd.sessions.session import Session
from zotd.wire import events

TEXT_CHARS = 300
"""Maximum length of the text of a notification."""


class AttentionWatcher:
    """Watches one session from its making on."""

    def __init__(
        self, session: Session, find: Callable[[], Callable[[events.Event], None] | None], after_s: float
    ) -> None:
        """`find` gives what sends an event to the client that is to call; None: nobody is to be called.

        `after_s`: the end of a run that was shorter is nobody's concern.
        """
        self._session = session
        self._find = find
        self._after_s = after_s
        session.ledger.observers.append(self._committed)

    def stop(self) -> None:
        """Stop watching the session; no further notification is sent."""
        self._session.ledger.observers.remove(self._committed)

    def _committed(self, shown: Sequence[events.Event]) -> None:
        found = self._what(shown)
        if found is None:
            return
        write = self._find()
        if write is not None:
            reason, text = found
            line = escaped(text)[:TEXT_CHARS]
            write(events.Attention(reason, line, session=self._session.id))

    def _what(self, shown: Sequence[events.Event]) -> tuple[str, str] | None:
        """Why a person should look, and the sentence that says so."""
        row = self._session.ledger.row
        name = row.name or row.id
        for event in shown:
            if isinstance(event, events.ApprovalRequested):
                return "needs_you", f"{name}: {event.tool} waits for your decision"
        if not any(isinstance(event, events.Done) for event in shown) or self._session.is_quieted:
            return None
        took_s = asyncio.get_running_loop().time() - self._session.work.began
        if took_s < self._after_s:
            return None
        errors = [event.message for event in shown if isinstance(event, events.Error)]
        return ("failed", f"{name}: failed: {errors[0]}") if errors else ("done", f"{name}: done after {took_s:.0f} s")
