"""Derives a short description of the current run from a session's events. Pure."""

from zotd.sanitize import one_line
from zotd.wire import events
from zotd.wire.content import ToolCall

DOING_CHARS = 200
"""Longest description."""


class Doings:
    """Tracks the current step and its calls."""

    def __init__(self) -> None:
        self.input: str | None = None
        """Input of the current run; None if nothing runs."""
        self._step = 0
        self._calls: dict[str, str] = {}
        """Descriptions of the current step's calls, by id."""

    def take(self, event: events.Event) -> str | None:
        """Process an event; return the new description if it has changed."""
        match event:
            case events.UserMessage(input=str(key)):
                self.input, self._calls = key, {}
            case events.TurnStart(step):
                self._step, self._calls = step, {}
                return f"Step {step}"
            case events.AssistantMessage(content):
                self._calls = {one.id: _about(one) for one in content if isinstance(one, ToolCall)}
            case events.ToolStart(key) if key in self._calls:
                return f"Step {self._step}: {self._calls[key]}"
            case events.Done():
                self.input = None
            case _:
                pass
        return None


def _about(call: ToolCall) -> str:
    """Describe a call by its tool and the first text among its arguments."""
    about = next((value for value in call.args.values() if isinstance(value, str)), "")
    return one_line(f"{call.name} {about[:DOING_CHARS]}".strip())[:DOING_CHARS]
