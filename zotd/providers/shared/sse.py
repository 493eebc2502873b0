"""Server-sent events out of bytes, without I/O (WHATWG HTML, 9.2.6).

    Events.feed(bytes) -> [data, ...]      any cutting of the bytes gives the same result

Only `data` is kept: both vendors repeat the event's name inside it. A lone CR, which the specification also allows,
ends no line: no vendor sends one, and it would hold back every chunk that ends in CR.
"""

from zotd.providers.shared.limits import EVENT_BYTES


class Events:
    """Cuts a byte stream into the data of its events."""

    def __init__(self, limit: int = EVENT_BYTES) -> None:
        """`limit`: memory held never exceeds it by more than one feed."""
        self._limit = limit
        self._tail: list[bytes] = []
        """Pieces of a line that has no end yet."""
        self._data: list[bytes] = []
        """Lines of an event that has no end yet."""
        self._held = 0
        self.is_over = False
        """An event is longer than the limit: nothing more can be read from this stream."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of every event that `chunk` completes, oldest first; also of those before one that is too long."""
        if self.is_over:
            return []
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._tail:
            lines[0] = b"".join((*self._tail, lines[0]))
            self._tail.clear()
        events = self._events(lines)
        if rest and not self.is_over:
            self._tail.append(rest)
            self._count(len(rest))
        return events

    def end(self) -> list[bytes]:
        """What an event holds that the end of the stream left without its blank line.

        The specification drops it; some servers end so after a good last event, and JSON tells whether it is whole.
        """
        line = b"".join(self._tail)
        self._tail.clear()
        return self._events([line, b""])

    def _events(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                value = line[5:].removesuffix(b"\r").removeprefix(b" ")
                data.append(value)
                self._count(len(value))
                if self.is_over:
                    break
            elif data and (not line or line == b"\r"):
                events.append(data[0] if len(data) == 1 else b"\n".join(data))
                data.clear()
                self._held = 0
        return events

    def _count(self, size: int) -> None:
        self._held += size
        if self._held > self._limit:
            self.is_over = True
            self._tail.clear()
            self._data.clear()
