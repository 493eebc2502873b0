"""Asks about calls that wait for a decision, in the plain chat.

`y`: once; `s`: for the rest of the session; `a`: always, by a rule that is shown and asked about; `n`: no.
"""

from collections.abc import Callable

from zotd.client import asking
from zotd.client.blocking import Connection, Json
from zotd.client.errors import CallError
from zotd.client.fields import children, maybe_text, text
from zotd.sanitize import harmless

Ask = Callable[[str, Callable[[], bool]], str | None]
"""Shows a prompt and gives the line that is typed next; None as soon as the second argument is true: it is too late."""


class Questions:
    """The calls of one session that wait for a decision."""

    def __init__(self, connection: Connection, *, ask: Ask, say: Callable[[str], None]) -> None:
        """`say` shows a line; it takes care of what could steer the terminal."""
        self._connection = connection
        self._ask = ask
        self._say = say
        self._open: dict[str, Json] = {}

    @property
    def are_open(self) -> bool:
        """Something waits that nobody has been asked about here."""
        return bool(self._open)

    def load(self, session: str) -> None:
        """Begin anew, with what waits in this session."""
        try:
            found = children(self._connection.call("approval.list", session=session), "approvals")
        except CallError:  # an older daemon, in which nothing ever waits
            found = []
        self._open = {text(one, "approval"): one for one in found}

    def see(self, event: Json) -> None:
        """Take the session's next event."""
        match event.get("type"):
            case "approval_requested":
                self._open[text(event, "approval")] = event
            case "approval_resolved":
                self._open.pop(text(event, "approval"), None)
            case _:
                pass

    def settle(self) -> None:
        """Ask about what waits, one after the other; what somebody else decides meanwhile is left."""
        while self._open:
            key, event = next(iter(self._open.items()))
            self._say(harmless(asking.shown(event)))
            if expires := maybe_text(event, "expires"):
                self._say(f"(until {expires})")
            while not self._decide(key, event):
                pass
            self._open.pop(key, None)

    def _decide(self, key: str, event: Json) -> bool:
        """Take one line; whether that settled it."""
        rule = maybe_text(event, "rule")
        more = "s for this session, a always, " if rule else ""
        line = self._ask(f"y once, {more}n no (n REASON): ", lambda: self._is_over(key))
        if line is None:
            return True  # the event that comes next says who was quicker
        word, _, reason = line.strip().partition(" ")
        match word.lower():
            case "y" | "yes" if not reason:
                return self._send(event, "allow", "once")
            case "n" | "no":
                return self._send(event, "deny", "once", reason.strip() or None)
            case "s" if rule and not reason:
                return self._send(event, "allow", "session")
            case "a" if rule and not reason:
                return self._always(key, event, rule)
            case _:
                return False

    def _always(self, key: str, event: Json, rule: str) -> bool:
        self._say(f"this would be written into config.toml, for all sessions:\n{harmless(rule)}")
        line = self._ask("save it? [y/N] ", lambda: self._is_over(key))
        if line is None:
            return True
        return line.strip().lower() in {"y", "yes"} and self._send(event, "allow", "always")

    def _send(self, event: Json, decision: str, scope: str, reason: str | None = None) -> bool:
        try:
            asking.decide(self._connection, event, decision, scope=scope, reason=reason)
        except CallError as error:
            self._say(f"({error})")
            return error.code in asking.OVER
        return True

    def _is_over(self, key: str) -> bool:
        """Somebody else has decided, or the call was aborted."""
        return any(
            event.get("type") == "approval_resolved" and text(event, "approval") == key
            for event in self._connection.waiting()
        )
