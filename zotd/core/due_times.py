"""When a timer is due: by a cron expression in a time zone, at an interval, or once. Moments are whole seconds since the epoch."""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Protocol

from msgspec import Struct

MIN_INTERVAL_S = 60
"""Shortest time between two due times: cron has minutes, too, and a run takes about as long."""

MAX_INTERVAL_S = 366 * 24 * 3600

WINDOW_S = 3 * 3600
"""How far back the newest due time is looked for at first; twice as far each time that there was none."""

FIELDS = "minute hour day-of-month month day-of-week"


class CronRule(Struct, frozen=True, tag="cron"):
    """Due whenever the clock of a time zone matches an expression of five fields."""

    text: str
    zone: str
    """A name of the IANA database, such as `Europe/Berlin`."""


class IntervalRule(Struct, frozen=True, tag="every"):
    """Due again and again after the same time."""

    seconds: int


class MomentRule(Struct, frozen=True, tag="at"):
    """Due once."""

    at: int


TimerRule = CronRule | IntervalRule | MomentRule


class BadRuleError(Exception):
    """A rule that cannot be used; the message is one sentence for people."""


class DueTimes(Protocol):
    """The due times of a rule, which are always the same."""

    def after(self, moment: int) -> int | None:
        """Return the first one after `moment`; None: there is none."""
        ...

    def latest(self, first: int, now: int) -> int:
        """Return the last one up to `now`; `first` is a due time that is not later than that."""
        ...


def due_times(rule: TimerRule, zone: tzinfo) -> DueTimes:
    """Return the due times of a rule; `zone` is that of a cron rule.

    Raises:
        BadRuleError: there are none, or they would be closer than `MIN_INTERVAL_S`.
    """
    match rule:
        case CronRule(text):
            return _CronTimes(text, zone)
        case IntervalRule(seconds):
            if not MIN_INTERVAL_S <= seconds <= MAX_INTERVAL_S:
                raise BadRuleError(f"an interval has {MIN_INTERVAL_S} s to 366 days, not {seconds} s")
            return _IntervalTimes(seconds)
        case MomentRule(at):
            return _OneTime(at)


class _IntervalTimes:
    def __init__(self, seconds: int) -> None:
        self._seconds = seconds

    def after(self, moment: int) -> int:
        return moment + self._seconds

    def latest(self, first: int, now: int) -> int:
        return now - (now - first) % self._seconds


class _OneTime:
    def __init__(self, at: int) -> None:
        self._at = at

    def after(self, moment: int) -> int | None:
        return self._at if moment < self._at else None

    def latest(self, first: int, now: int) -> int:
        del now
        return first


class _CronTimes:
    """As cron of Debian has them.

    A time that daylight saving leaves out is due when the clock is beyond it, and one that it repeats is due once. Expressions whose
    minute or hour begins with `*` follow the real time.
    """

    def __init__(self, text: str, zone: tzinfo) -> None:
        if len(text.split()) != len(FIELDS.split()):
            raise BadRuleError(f'"{text}" is no cron expression, which has five fields: {FIELDS}')
        self._text = text
        self._zone = zone
        if self.after(0) is None:
            raise BadRuleError(f'"{text}" is never due')

    def after(self, moment: int) -> int | None:
        # Two times of a night in which the clock changes may become one, and one may be found that is over.
        return next((found for found in self._from(moment) if found > moment), None)

    def latest(self, first: int, now: int) -> int:
        # Only forwards, so that these are the times that `after` finds; it must not go through a year of minutes.
        window = WINDOW_S
        while window < now - first:
            found = self._last_of(now - window, now)
            if found is not None:
                return found
            window *= 2
        return self._last_of(first, now) or first

    def _last_of(self, moment: int, now: int) -> int | None:
        last = None
        for found in self._from(moment):
            if found > now:
                break
            if found > moment:
                last = found
        return last

    def _from(self, moment: int) -> Iterator[int]:
        from cronsim import CronSim, CronSimError  # noqa: PLC0415  (few daemons have a cron expression)

        try:
            local = datetime.fromtimestamp(moment, UTC).astimezone(self._zone)
            for found in CronSim(self._text, local):
                yield int(found.timestamp())
        except CronSimError as error:
            sentence = f'"{self._text}" is no cron expression: {str(error).lower()} (fields: {FIELDS})'
            raise BadRuleError(sentence) from error
        except (OverflowError, ValueError):  # the end of the calendar, or a moment beyond it
            return
