"""How much an extension may say unasked before it is read more slowly.

A program that prints without pause would otherwise have the event loop for itself. It is not punished: its pipe fills
up, and it waits.
"""


class Allowance:
    """A bucket that fills with time; what is spent beyond it has to be waited for."""

    def __init__(self, *, per_s: float, burst: float, now: float) -> None:
        """`burst` may be spent at once, `per_s` in the long run."""
        self._per_s = per_s
        self._burst = burst
        self._left = burst
        self._seen = now

    def spend(self, amount: float, now: float) -> float:
        """Seconds to wait until this is paid for; 0 most of the time."""
        self._left = min(self._burst, self._left + (now - self._seen) * self._per_s) - amount
        self._seen = now
        return max(0.0, -self._left / self._per_s)
