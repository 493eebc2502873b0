"""Status segments of extensions as printed lines, since the plain chat has no status bar.

An extension may update a segment every second. So each segment is printed at most once for each line that the user
types: before the next prompt, or at the prompt if the update arrives later.
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
        """Take an `ext_status` event; an empty text removes the segment."""
        key, words = (text(event, "extension"), text(event, "key")), text(event, "text")
        if words:
            self._current[key] = words
        else:
            self._current.pop(key, None)

    def typed(self) -> None:
        """Allow each segment to be printed once more: the user has typed a line."""
        self._told.clear()

    def due(self) -> list[str]:
        """Return the lines to print now, and mark them as printed."""
        # Print a segment only if its text differs from the last printed one.
        news = [key for key, words in self._current.items() if key not in self._told and self._shown.get(key) != words]
        self._told.update(news)
        self._shown.update((key, self._current[key]) for key in news)
        return [f"[{extension}] {self._current[extension, key]}" for extension, key in news]
