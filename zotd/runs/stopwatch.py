"""Times one model request."""

import time


class Stopwatch:
    """Seconds from when a request was sent; None before that.

    Not the clock of the event loop, so that a request may be billed where no loop runs.
    """

    def __init__(self) -> None:
        self._sent: float | None = None
        self._first: float | None = None

    def send(self) -> None:
        """The request is sent now."""
        self._sent = time.monotonic()

    def first_token(self) -> None:
        """The first text, thought or call of the reply is here."""
        self._first = time.monotonic()

    @property
    def took_s(self) -> float | None:
        """Seconds until now."""
        return self._until(time.monotonic())

    @property
    def first_s(self) -> float | None:
        """Seconds to the first token; None if there was none."""
        return self._until(self._first)

    def _until(self, moment: float | None) -> float | None:
        return None if moment is None or self._sent is None else round(moment - self._sent, 4)
