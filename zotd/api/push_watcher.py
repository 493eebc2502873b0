"""Tells subscribed browsers when a session needs attention and no client has the focus.

Which messages are sent, and when, is decided as for connected clients (`zotd.api.attention`). Those are told in addition: the
terminal that was used last may be on the desk while its user is out with the phone.
"""

from collections.abc import Callable
from weakref import WeakSet

from zotd.api.attention import AttentionWatcher
from zotd.api.presence import Presences
from zotd.core.timers import Timer
from zotd.push.service import PushMessage, PushService
from zotd.sessions.manager import Manager
from zotd.sessions.session import Session
from zotd.wire import events


class PushWatcher:
    """Watches the sessions of a daemon from the moment at which they first have something to do."""

    def __init__(
        self, manager: Manager, presences: Presences, push: PushService, attention_s: Callable[[], float]
    ) -> None:
        """`attention_s` returns the shortest run, in seconds, whose end is told; it is called once for each session."""
        self._manager = manager
        self._presences = presences
        self._push = push
        self._attention_s = attention_s
        self._watched: WeakSet[Session] = WeakSet()
        manager.listen(self._heard)

    def timer_paused(self, timer: Timer, sentence: str) -> None:
        """Tell of a timer that has paused itself, unless somebody is looking at its session, where that is told too."""
        if not timer.session or self._found(timer.session) is not None:
            key = timer.session or (timer.latest.session if timer.latest is not None else "")
            self._push.notify(PushMessage("failed", sentence, key))

    def _heard(self, event: events.Event) -> None:
        """Watch a session that has changed its state; what is told of it happens later."""
        if not isinstance(event, events.SessionUpdated) or event.session is None or not self._push.subscriptions:
            return
        session = next((one for one in self._manager.loaded if one.id == event.session), None)
        if session is None or session in self._watched or session.ledger.row.parent is not None:
            return  # what a subagent asks is told as a question of the session above it
        self._watched.add(session)
        AttentionWatcher(session, lambda: self._found(session.id), self._attention_s())

    def _found(self, session_id: str) -> Callable[[events.Event], None] | None:
        """Return what tells the browsers; None if somebody is looking at the session."""
        return None if any(client.focused for client in self._presences.of(session_id)) else self._tell

    def _tell(self, event: events.Event) -> None:
        if isinstance(event, events.Attention) and event.session is not None:
            self._push.notify(PushMessage(event.reason, event.text, event.session))
