"""How often the text of a running step is kept: often enough to lose little, rarely enough to cost little."""

INTERVAL_S = 0.1
"""Between two writes (`docs/durability.md`): about what a person reads in a glance is lost to a crash."""

BYTES_PER_S = 512 * 1024
"""Written for one session, on average: each write holds the whole text, so a long reply is kept less often."""

MAX_BYTES = 256 * 1024
"""Of a step's text, from its beginning; no model writes more in one reply. What comes behind it is not kept."""


class Pacing:
    """Says when the text of one run's step is to be kept next. Times are seconds of a clock that never goes back."""

    def __init__(self) -> None:
        self._due = 0.0
        self._is_full = False

    def begin(self) -> None:
        """Another step, or another try of it, has begun: its text has nothing of the one before."""
        self._is_full = False

    def is_due(self, now: float) -> bool:
        """Whether the text may be kept now; False for ever when no more of this step will be."""
        return now >= self._due and not self._is_full

    def take(self, text: str, now: float) -> str:
        """The part of `text` to keep now, because it is due; the next is due when this one has cost its share."""
        data = text.encode(errors="replace")
        self._is_full = len(data) >= MAX_BYTES
        kept = data[:MAX_BYTES]
        self._due = now + max(INTERVAL_S, len(kept) / BYTES_PER_S)
        return kept.decode(errors="ignore")
