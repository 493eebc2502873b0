"""Finds a line of an output: plain text in which `*` stands for any text and `|` separates alternatives.

No regular expressions: a model writes the pattern, and Python's could then run for ever (`(a+)+$`) on the thread that serves
everybody. This takes time in proportion to the output.
"""

from collections.abc import Sequence

LINE_BYTES = 64 * 1024
"""Longest part of a line that is searched."""


class PatternError(ValueError):
    """It is no pattern; the message is one sentence."""


def alternatives(pattern: str) -> Sequence[Sequence[bytes]]:
    """Return the texts that a line has to contain in this order, for each alternative; `.*` counts as `*`.

    Raises PatternError.
    """
    if "\\" in pattern:
        raise PatternError(
            "the pattern is plain text, where * stands for any text and | separates alternatives: it has no backslashes"
        )
    found = [
        [part.lower().encode(errors="replace") for part in one.replace(".*", "*").split("*") if part]
        for one in pattern.split("|")
    ]
    if not all(found):
        raise PatternError("the pattern, or an alternative of it, has no text")
    return found


class LineFinder:
    """Looks for the first line that fits, in chunks as they come. Case does not matter."""

    def __init__(self, pattern: str) -> None:
        """Raises PatternError."""
        self._alternatives = alternatives(pattern)
        self._rest = b""

    def feed(self, data: bytes) -> str | None:
        """Return the line that fits, or None. The last line counts although it may go on."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        line = next((line for line in (*whole, self._rest) if self._fits(line)), None)
        self._rest = self._rest[-LINE_BYTES:]
        return None if line is None else line[:LINE_BYTES].decode(errors="replace").strip()

    def _fits(self, line: bytes) -> bool:
        lowered = line[:LINE_BYTES].lower()
        return any(_contains(lowered, parts) for parts in self._alternatives)


def _contains(line: bytes, parts: Sequence[bytes]) -> bool:
    at = 0
    for part in parts:
        at = line.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True
