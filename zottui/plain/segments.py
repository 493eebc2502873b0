"""The status bar of a chat in plain lines: what extensions would show there, as lines that stay.

An extension may change a segment every second. So each is shown at most once for each line that the user types: before
the next prompt, or while that waits when the segment comes later.
"""

from zotd.client.blocking import Json
from zotd.client.fields import text


class Segments:
    """The segments of one session."""

    def __init__(self) -> None:
        self._current: dict[tuple[str, str], str] = {}
        self._shown: dict[tuple[str, str], str] = {}
        self._told: set[tuple[str, str]] = set()

    def take(self, event: Json) -> None:
        """Another `ext_status`; empty text removes the segment."""
        key, words = (text(event, "extension"), text(event, "key")), text(event, "text")
        if words:
            self._current[key] = words
        else:
            self._current.pop(key, None)

    def typed(self) -> None:
        """The user has typed a line: everything may be shown once more."""
        self._told.clear()

    def due(self) -> list[str]:
        """The lines to show now; they count as shown."""
        news = [key for key, words in self._current.items() if key not in self._told and self._shown.get(key) != words]
        self._told.update(news)
        self._shown.update((key, self._current[key]) for key in news)
        return [f"[{extension}] {self._current[extension, key]}" for extension, key in news]
