"""Asks for approvals in the plain chat.

`y` allows once, `s` for the rest of the session, `a` always, by a rule that is shown and confirmed first; `n` denies.
Wider offers of the daemon are listed with numbers.
"""

from collections.abc import Callable

from zotd.client import asking
from zotd.client.asking import SAME, SCOPES, Lasting
from zotd.client.blocking import Connection, Json
from zotd.client.errors import CallError
from zotd.client.fields import children, maybe_text, text
from zotd.sanitize import harmless, one_line

Ask = Callable[[str, Callable[[], bool]], str | None]
"""Shows a prompt and returns the next typed line; None as soon as the second argument returns True."""


class PendingCalls:
    """The pending approvals of one session."""

    def __init__(self, connection: Connection, *, ask: Ask, say: Callable[[str], None]) -> None:
        """`ask` prompts for a line; `say` prints one and sanitizes it."""
        self._connection = connection
        self._ask = ask
        self._say = say
        self._open: dict[str, Json] = {}

    @property
    def are_open(self) -> bool:
        """Whether there are approvals that this client has not asked about."""
        return bool(self._open)

    def load(self, session: str) -> None:
        """Replace all by the pending approvals of a session."""
        try:
            found = children(self._connection.call("approval.list", session=session), "approvals")
        except CallError:  # an older daemon without approvals
            found = []
        self._open = {text(one, "approval"): one for one in found}

    def see(self, event: Json) -> None:
        """Add or remove an approval by an event of the session."""
        match event.get("type"):
            case "approval_requested":
                self._open[text(event, "approval")] = event
            case "approval_resolved":
                self._open.pop(text(event, "approval"), None)
            case _:
                pass

    def settle(self) -> None:
        """Ask about all pending approvals in turn; skip those that another client decides meanwhile."""
        while self._open:
            key, event = next(iter(self._open.items()))
            self._say(harmless(asking.shown(event)))
            for name, one in _offers(event).items():
                if one.choice != SAME:
                    self._say(one_line(f"{name} {SCOPES[one.scope]}: {one.text}"))
            if expires := maybe_text(event, "expires"):
                self._say(f"(until {expires})")
            while not self._decide(key, event):  # ask again after an unknown answer
                pass
            self._open.pop(key, None)  # the event of another client's decision may have removed it already

    def _decide(self, key: str, event: Json) -> bool:
        """Take one line; return whether it decided the call."""
        offers = _offers(event)
        more = "".join(f"{name} {SCOPES[one.scope]}, " for name, one in offers.items() if one.choice == SAME)
        wider = [name for name, one in offers.items() if one.choice != SAME]
        more += f"{' or '.join(wider)} as listed, " if wider else ""
        line = self._ask(f"y once, {more}n no (n REASON): ", lambda: self._is_over(key))
        if line is None:
            return True  # another client decided first; the next event reports it
        word, _, reason = line.strip().partition(" ")
        match word.lower():
            case "y" | "yes" if not reason:
                return self._send(event, "allow", "once")
            case "n" | "no":
                return self._send(event, "deny", "once", reason.strip() or None)
            case name if name in offers and not reason:
                return self._from_now_on(key, event, offers[name])
            case _:
                return False

    def _from_now_on(self, key: str, event: Json, chosen: Lasting) -> bool:
        if chosen.scope == "always":
            self._say(f"this rule would be added to config.toml, for all sessions:\n{harmless(chosen.rules)}")
            line = self._ask("save it? [y/N] ", lambda: self._is_over(key))
            if line is None:
                return True
            if line.strip().lower() not in {"y", "yes"}:
                return False
        return self._send(event, "allow", chosen.scope, choice=chosen.choice)

    def _send(
        self, event: Json, decision: str, scope: str, reason: str | None = None, *, choice: str | None = None
    ) -> bool:
        try:
            asking.decide(self._connection, event, decision, scope=scope, choice=choice, reason=reason)
        except CallError as error:
            self._say(f"({error})")
            return error.code in asking.OVER
        return True

    def _is_over(self, key: str) -> bool:
        """Return whether another client has decided, or the call was aborted."""
        return any(
            event.get("type") == "approval_resolved" and text(event, "approval") == key
            for event in self._connection.waiting()
        )


def _offers(event: Json) -> dict[str, Lasting]:
    """Return the offers beyond this call by what to type: `s` and `a` for the same call, numbers for wider rules."""
    offered = asking.lasting_of(event)
    wider = [one for one in offered if one.choice != SAME]
    letters = {one.scope[0]: one for one in offered if one.choice == SAME}
    return {**dict(sorted(letters.items(), reverse=True)), **{str(at): one for at, one in enumerate(wider, 1)}}
