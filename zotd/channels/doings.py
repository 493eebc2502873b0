"""Derives from a session's events what is shown of the current run: its step and call, or the reply so far. Pure."""

from zotd.sanitize import harmless, one_line
from zotd.wire import events
from zotd.wire.content import ToolCall

DOING_CHARS = 200
"""Longest description."""

REPLY_CHARS = 2_000
"""How much of the reply is shown, from its end: a message of Telegram has 4,096 UTF-16 code units."""

GROWN_CHARS = 200
"""The reply is shown again when it has grown by so much, and not with each of thousands of deltas."""


class Doings:
    """Tracks the current step and its calls."""

    def __init__(self) -> None:
        self.input: str | None = None
        """Input of the current run; None if nothing runs."""
        self._step = 0
        self._calls: dict[str, str] = {}
        """Descriptions of the current step's calls, by id."""
        self._reply = ""
        """The end of the reply as it is written."""
        self._grown = 0
        """Length of what was added to it since it was returned."""

    def take(self, event: events.Event) -> str | None:
        """Process an event; return the new description if it has changed."""
        match event:
            case events.UserMessage(input=str(key)):
                self.input, self._calls, self._reply = key, {}, ""
            case events.TurnStart(step):
                self._step, self._calls, self._reply, self._grown = step, {}, "", 0
                return f"Step {step}"
            case events.TextDelta(delta):
                return self._written(delta)
            case events.Retry():
                self._reply, self._grown = "", 0
            case events.AssistantMessage(content):
                self._calls = {one.id: _about(one) for one in content if isinstance(one, ToolCall)}
            case events.ToolStart(key) if key in self._calls:
                return f"Step {self._step}: {self._calls[key]}"
            case events.Done():
                self.input = None
            case _:
                pass
        return None

    def _written(self, delta: str) -> str | None:
        self._grown += len(delta)
        self._reply += delta
        if len(self._reply) > REPLY_CHARS:
            self._reply = f"…{self._reply[1 - REPLY_CHARS :]}"
        if self._grown < GROWN_CHARS:
            return None
        self._grown = 0
        return f"Step {self._step}\n\n{harmless(self._reply)}"


def _about(call: ToolCall) -> str:
    """Describe a call by its tool and the first text among its arguments."""
    about = next((value for value in call.args.values() if isinstance(value, str)), "")
    return one_line(f"{call.name} {about[:DOING_CHARS]}".strip())[:DOING_CHARS]
