"""Limits the rate of log records for each place in the source, and counts the records that are dropped."""

import logging

from msgspec import Struct

BURST = 60
"""Burst of records from one place that is written without a limit; enough for a start or a stop of the daemon."""

PER_S = 2.0
"""Sustained rate of records from one place: 25 MB a day, of the 50 MB that are kept."""


class _Place(Struct):
    """Remaining budget of one place in the source."""

    allowance: float
    seen: float
    left_out: int = 0


class Flood(logging.Filter):
    """A filter to share among all handlers of a process; sets `left_out` of the next record to the number dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[tuple[str, int], _Place] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is written, with the same result for each handler."""
        known: bool | None = getattr(record, "is_admitted", None)
        if known is None:
            known = record.is_admitted = self._admits(record)
        return known

    def _admits(self, record: logging.LogRecord) -> bool:
        place = self._places.setdefault((record.pathname, record.lineno), _Place(BURST, record.created))
        passed = max(0.0, record.created - place.seen)  # negative if the clock was set back
        place.allowance = min(BURST, place.allowance + passed * PER_S)
        place.seen = record.created
        if place.allowance < 1:
            place.left_out += 1
            return False
        place.allowance -= 1
        record.left_out, place.left_out = place.left_out, 0
        return True
