"""Collects the outcome of a run from its events (dicts), for programs that only need the result."""

from zotd.client.blocking import Json
from zotd.client.fields import spoken, text


class Outcome:
    """The outcome of a run so far."""

    def __init__(self) -> None:
        self.text = ""
        """Text of its last reply."""
        self.stop = ""
        """`stop` of its last step: `end_turn`, `error`, `aborted`, …"""
        self._error = ""
        self._step_error = ""

    def see(self, event: Json) -> None:
        """Process the run's next event."""
        match event.get("type"):
            case "assistant_message":
                self.text = spoken(event)
            case "turn_end":
                self.stop = text(event, "stop")
                self._step_error = text(event, "error")
            case "error":
                self._error = text(event, "message")
            case "blocked":
                self._error = text(event, "message")
            case _:
                pass

    def see_line(self, line: bytes, event: Json) -> None:
        """Like `add`, for callers that also have the line."""
        del line
        self.see(event)

    @property
    def failure(self) -> str | None:
        """Return why the run failed, as one sentence; None if it did not."""
        if self._error:
            return self._error
        if self.stop == "error":
            return self._step_error or "the model request failed"
        return "the run was aborted" if self.stop == "aborted" else None
