"""How often the partial text of a running step is stored: a trade-off between lost text and writes."""

INTERVAL_S = 0.1
"""Least time between two writes (`docs/durability.md`). A crash loses about as much as a person reads at a glance."""

BYTES_PER_S = 512 * 1024
"""Average write rate per session. Each write contains the whole text so far, so long replies are stored less often."""

MAX_BYTES = 256 * 1024
"""Limit of the stored text of one step, from its beginning; longer than any model's reply. The rest is not stored."""


class Pacing:
    """Decides when to store the partial text of a run's current step. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._due = 0.0
        self._is_full = False

    def begin(self) -> None:
        """Note that another step, or a retry of it, begins with empty text."""
        self._is_full = False

    def is_due(self, now: float) -> bool:
        """Whether the text should be stored now; always False once the step has reached `MAX_BYTES`."""
        return now >= self._due and not self._is_full

    def take(self, text: str, now: float) -> str:
        """Return the part of `text` to store now, and schedule the next write according to its size."""
        # `replace`: a Python string may contain lone surrogates, which UTF-8 cannot encode.
        data = text.encode(errors="replace")
        self._is_full = len(data) >= MAX_BYTES
        kept = data[:MAX_BYTES]
        self._due = now + max(INTERVAL_S, len(kept) / BYTES_PER_S)
        return kept.decode(errors="ignore")  # the cut may have split a character
