"""How a run has gone, for programs that only want its end: fed with its events, as dicts."""

from zotd.client.blocking import Json
from zotd.client.fields import spoken, text


class Outcome:
    """What a run has come to so far."""

    def __init__(self) -> None:
        self.text = ""
        """Of its last reply."""
        self.stop = ""
        """Of its last step: `end_turn`, `error`, `aborted`, …"""
        self._error = ""
        self._step_error = ""

    def see(self, event: Json) -> None:
        """Take the run's next event."""
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
        """The same, for whoever also has the line."""
        del line
        self.see(event)

    @property
    def failure(self) -> str | None:
        """Why the run failed: one sentence; None when it did not."""
        if self._error:
            return self._error
        if self.stop == "error":
            return self._step_error or "the model request failed"
        return "the run was aborted" if self.stop == "aborted" else None
