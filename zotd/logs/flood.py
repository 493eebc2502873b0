"""No place in the sources fills the log: of what it says again and again, some is written and the rest counted."""

import logging
from dataclasses import dataclass

BURST = 60
"""Records of one place that are written at once; all that one start or one stop has to say fits."""

PER_S = 2.0
"""Records of one place that are written in the long run: 25 MB a day, of the 50 MB that are kept."""


@dataclass(slots=True)
class _Place:
    """What a line of the sources may still say."""

    allowance: float
    seen: float
    left_out: int = 0


class Flood(logging.Filter):
    """A filter for all handlers of a process; how many records were left out is in `left_out` of the next one."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[tuple[str, int], _Place] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written; the same for each handler that asks."""
        known: bool | None = getattr(record, "is_admitted", None)
        if known is None:
            known = record.is_admitted = self._admits(record)
        return known

    def _admits(self, record: logging.LogRecord) -> bool:
        place = self._places.setdefault((record.pathname, record.lineno), _Place(BURST, record.created))
        passed = max(0.0, record.created - place.seen)  # a clock that is put back gives nothing
        place.allowance = min(BURST, place.allowance + passed * PER_S)
        place.seen = record.created
        if place.allowance < 1:
            place.left_out += 1
            return False
        place.allowance -= 1
        record.left_out, place.left_out = place.left_out, 0
        return True
