"""Times as people type them, in the time zone of this machine, as the daemon reads them."""

from datetime import UTC, datetime, timedelta

from zotd.client.errors import ClientError
from zotd.wire.intervals import read_interval

FORMS = '17:30, "2026-11-28 09:00", 2026-11-28T09:00:00Z or +30m'


def moment_of(text: str, now: datetime) -> str:
    """Return a time as RFC 3339 in UTC; `now` is the time of this machine, with its zone.

    Raises:
        ClientError: it is none.
    """
    try:
        return _found(text, now).astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError) as error:
        raise ClientError(f'"{text}" is no time; use a form such as {FORMS}') from error


def _found(text: str, now: datetime) -> datetime:
    if text.startswith("+"):
        seconds = read_interval(text[1:])
        if seconds is None:
            raise ValueError(text)
        return now + timedelta(seconds=seconds)
    if len(text) <= len("17:30") and ":" in text:
        # The day is one of the calendar, so that a change of the clock at night does not matter.
        clock = datetime.strptime(text, "%H:%M").time()  # noqa: DTZ007  (a time of day)
        today = datetime.combine(now.date(), clock).astimezone()
        return today if today > now else datetime.combine(now.date() + timedelta(days=1), clock).astimezone()
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.astimezone()
