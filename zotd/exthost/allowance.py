"""Rate limit for lines and bytes that an extension sends.

Without it, a program that prints without pause would occupy the event loop. The limit only delays reading: the pipe fills
up and the program blocks in its write, so nothing is lost.
"""


class Allowance:
    """A token bucket. The balance may become negative; the caller then waits until it is back at 0."""

    def __init__(self, *, per_s: float, burst: float, now: float) -> None:
        """Allow `burst` units at once and `per_s` units per second in the long run."""
        self._per_s = per_s
        self._burst = burst
        self._left = burst
        self._seen = now

    def spend(self, amount: float, now: float) -> float:
        """Spend `amount`; return how many seconds to wait before reading on (0 while the bucket is not empty)."""
        self._left = min(self._burst, self._left + (now - self._seen) * self._per_s) - amount
        self._seen = now
        # The debt is paid afterwards, not before: the line has already been read and must be handled in any case.
        return max(0.0, -self._left / self._per_s)
