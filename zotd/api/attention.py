"""Notifies one client when a session needs attention and no client has the focus.

    approval requested ───────────────> needs_you
    done, and the run took a while ───> done, or failed if it ended with an error
    done, because a client aborted it ─> nothing: its user knows already

`zotd.api.presence` selects the client, if there is one to notify.
"""

import asyncio
from collections.abc import Callable, Sequence

from zotd.sanitize import escaped
from zotd.sessions.session import Session
from zotd.wire import events

NEEDS_YOU = "needs_you"

TEXT_CHARS = 300
"""Maximum length of the text of a notification."""


class AttentionWatcher:
    """Watches one session until `stop`."""

    def __init__(
        self, session: Session, find: Callable[[], Callable[[events.Event], None] | None], after_s: float
    ) -> None:
        """`find` returns a function that sends an event to the client to notify, or None if there is no such client.

        Runs shorter than `after_s` seconds are not reported.
        """
        self._session = session
        self._find = find
        self._after_s = after_s
        session.ledger.observers.append(self._committed)
        session.children.listeners.append(self._asked_below)

    def stop(self) -> None:
        """Stop watching the session; no further notification is sent."""
        self._session.ledger.observers.remove(self._committed)
        self._session.children.listeners.remove(self._asked_below)

    def _asked_below(self, question: events.ApprovalRequested) -> None:
        self._tell((NEEDS_YOU, f"{self._name}: {question.tool} of a subagent waits for your decision"))

    def _committed(self, shown: Sequence[events.Event]) -> None:
        self._tell(self._what(shown))

    @property
    def _name(self) -> str:
        row = self._session.ledger.row
        return row.name or row.id

    def _tell(self, found: tuple[str, str] | None) -> None:
        if found is None:
            return
        write = self._find()
        if write is not None:
            reason, text = found
            line = escaped(text)[:TEXT_CHARS]
            write(events.Attention(reason, line, session=self._session.id))

    def _what(self, shown: Sequence[events.Event]) -> tuple[str, str] | None:
        """Return the reason for a notification and its text; None if there is none."""
        name = self._name
        for event in shown:
            if isinstance(event, events.ApprovalRequested):
                return NEEDS_YOU, f"{name}: {event.tool} waits for your decision"
        if not any(isinstance(event, events.Done) for event in shown) or self._session.is_quieted:
            return None
        took_s = asyncio.get_running_loop().time() - self._session.work.began
        if took_s < self._after_s:
            return None
        errors = [event.message for event in shown if isinstance(event, events.Error)]
        return ("failed", f"{name}: failed: {errors[0]}") if errors else ("done", f"{name}: done after {took_s:.0f} s")
