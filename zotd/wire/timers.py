"""Commands about timers: prompts that the daemon sends when they are due (`docs/timers.md`). Times are RFC 3339."""

import msgspec

from zotd.wire.base import Frozen


class TimerAdd(Frozen, frozen=True, kw_only=True):
    """A new timer, with exactly one of `cron`, `every_s` and `at`, and either `session` or `cwd`."""

    message: str
    """The prompt."""
    session: str = ""
    """The session to prompt; empty: a new one each time, in `cwd`."""
    cwd: str | None = None
    """The directory of new sessions."""
    provider: str | None = None
    model: str | None = None
    mode: str | None = None
    """Of new sessions; absent: as configured when it fires."""
    cron: str | None = None
    """An expression of five fields: minute, hour, day of month, month, day of week."""
    tz: str | None = None
    """The time zone of `cron`, such as `Europe/Berlin`; absent: that of the daemon."""
    every_s: int | None = None
    """An interval in seconds, at least 60."""
    at: str | None = None
    """A time, to fire once."""
    now: bool = False
    """It is due at once, and then as its rule says."""
    missed: str = "once"
    """`once`: due times that were missed are made up for by one firing; `skip`: by none."""
    busy: str = "queue"
    """While the session is busy: `queue` the prompt, or `skip` the due time."""
    unattended: str = "deny"
    """What to do with an approval request that no attached client can decide: `deny` or `park`."""
    limit_usd: float | None = None
    """The timer is paused when what it has begun has cost so much."""
    until: str | None = None
    """The timer ends then."""
    times: int | None = None
    """The timer ends after so many firings."""
    loop: bool = False
    """It belongs to `/loop`, which lists and ends it."""
    request_id: str | None = None


class TimerQuery(Frozen, frozen=True):
    """The timers of one session, or all."""

    session: str = ""


class TimerName(Frozen, frozen=True, kw_only=True):
    """A timer, by its id or the beginning of that."""

    timer: str
    session: str = ""
    """Its session; empty: any. A token for some sessions has to name it."""
    request_id: str | None = None


class TimerEdit(Frozen, frozen=True, kw_only=True):
    """What is to be different about a timer; what is absent stays. At most one of `cron`, `every_s` and `at`."""

    timer: str
    """Its id, or the beginning of that."""
    session: str = ""
    """Its session; empty: any. A token for some sessions has to name it."""
    message: str | None = None
    """The prompt."""
    cron: str | None = None
    """As in `timer.add`; with another time, the timer is next due from now on."""
    tz: str | None = None
    """As in `timer.add`; alone, it is the time zone of the expression that the timer has."""
    every_s: int | None = None
    at: str | None = None
    missed: str | None = None
    busy: str | None = None
    unattended: str | None = None
    limit_usd: float | None = None
    until: str | None = None
    times: int | None = None
    clear: list[str] = msgspec.field(default_factory=list)
    """Limits that the timer is to have no more: `limit_usd`, `until`, `times`."""
    request_id: str | None = None


class TimerInfo(Frozen, frozen=True, kw_only=True):
    """A timer."""

    id: str
    state: str
    """`active`, `firing` or `paused`."""
    rule: str
    """When it is due, in words."""
    message: str
    origin: str
    """`schedule`, `loop` or `wake`: who uses it."""
    by: str
    """The client or model that has made it."""
    created: str
    session: str = ""
    """The session that it prompts; absent: a new one each time."""
    cwd: str | None = None
    """The directory of new sessions."""
    due: str | None = None
    """Its next due time; absent: it is paused."""
    reason: str = ""
    """Why it is paused; empty: a client has paused it."""
    fired: int = 0
    last_fired: str | None = None
    last_session: str | None = None
    """The session that it has prompted last."""
    outcome: str = ""
    """Why the last due time was not fired; empty: it was."""
    spent_usd: float = 0.0
    limit_usd: float | None = None
    until: str | None = None
    times: int | None = None
    missed: str = "once"
    busy: str = "queue"
    unattended: str = "deny"


class TimerList(Frozen, frozen=True):
    """Timers, oldest first."""

    timers: list[TimerInfo]


class TimerFired(Frozen, frozen=True):
    """What came of firing a timer by hand."""

    fired: bool
    session: str | None = None
    input: str | None = None
    outcome: str = ""
    """Why it was not fired."""
