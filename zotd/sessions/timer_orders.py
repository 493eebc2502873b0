"""Timers as people order them and see them: checks what a client asks for, and describes what is stored."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from msgspec.structs import replace

from zotd.clock import rfc3339
from zotd.core.due_times import BadRuleError, CronRule, IntervalRule, MomentRule, TimerRule
from zotd.core.timers import NewTimerSession, Timer, rescheduled
from zotd.runs.queue import content_of
from zotd.sessions.timer_prompts import check_prompt
from zotd.sessions.timers import times_of
from zotd.wire.errors import Code, CommandError
from zotd.wire.intervals import interval_words
from zotd.wire.timers import TimerAdd, TimerEdit, TimerInfo

PROMPT_CHARS = 20_000
"""Longest prompt of a timer: all of them are in memory, and in lists."""

RULE_CHARS = 200
"""Longest cron expression, and longest name of a time zone."""

LAST_MOMENT = 253_370_764_800
"""The year 9999, the last one of the calendar."""

MISSED = ("once", "skip")
BUSY = ("queue", "skip")
UNATTENDED = ("deny", "park")
LIMITS = ("limit_usd", "until", "times")

ONLY_CRON = "`tz` is for `cron` only; other times have their offset with them"

NEVER_DUE = "the timer would never be due: the time is over"


def ordered(order: TimerAdd, *, now: int, by: str, zone: str, user: str = "") -> Timer:
    """Return the timer that a client of `user` asks for, without an id; `zone` is for a cron expression without one.

    Raises:
        CommandError: something about it is not possible; the sentence says what.
    """
    if bool(order.session) == (order.cwd is not None):
        raise _bad("a timer has either `session`, or `cwd` for new sessions")
    if order.session and (order.provider or order.model or order.mode):
        raise _bad("`provider`, `model` and `mode` are for new sessions; change them in the session itself")
    _check_message(order.message)
    rule = _rule(order, zone)
    _check_limits(order)
    return Timer(
        id="",
        rule=rule,
        prompt=order.message,
        due=now if order.now else 0,
        made=now,
        by=by,
        origin="loop" if order.loop else "schedule",
        session=order.session,
        new=None if order.cwd is None else NewTimerSession(order.cwd, order.provider, order.model, order.mode, user),
        missed="skip" if _word("missed", order.missed, MISSED) == "skip" else "once",
        busy="skip" if _word("busy", order.busy, BUSY) == "skip" else "queue",
        unattended=_word("unattended", order.unattended, UNATTENDED),
        limit_usd=order.limit_usd,
        until=None if order.until is None else _moment("until", order.until),
        times=order.times,
    )


def edited(timer: Timer, order: TimerEdit, *, now: int, zone: str) -> Timer:
    """Return the timer as a client wants it; its claim stays. `zone` is as in `ordered`.

    With another rule it is due from now on, and nothing of the old one counts as missed.

    Raises:
        CommandError: something about it is not possible; the sentence says what. Nothing has changed then.
    """
    changes = _changes(order)
    changed = replace(timer, **changes)
    if (order.cron, order.every_s, order.at, order.tz) != (None, None, None, None):
        rule = _other_rule(timer.rule, order, zone)
        moved = rescheduled(changed, rule, now, times_of(rule))
        if moved is None:
            raise _bad(NEVER_DUE)
        changed = moved
    elif not changes:
        raise _bad("nothing about the timer is to change: give at least one of `message`, a time, a limit")
    if changed.until is not None and max(changed.due, now) > changed.until:
        raise _bad(NEVER_DUE)
    if changed.times is not None and changed.times <= timer.fired:
        raise _bad(f"it has fired {timer.fired} times already, so `times` must be more")
    return changed


def described(timer: Timer, spent_usd: float) -> TimerInfo:
    """Return a timer as clients see it."""
    state = "active" if timer.paused is None else "paused"
    return TimerInfo(
        id=timer.id,
        state="firing" if timer.claim is not None else state,
        rule=rule_words(timer.rule),
        message=timer.prompt,
        origin=timer.origin,
        by=timer.by,
        created=rfc3339(timer.made),
        session=timer.session,
        cwd=None if timer.new is None else timer.new.cwd,
        due=None if timer.paused is not None else rfc3339(timer.due),
        reason=timer.paused or "",
        fired=timer.fired,
        last_fired=None if timer.latest is None else rfc3339(timer.latest.at),
        last_session=None if timer.latest is None else timer.latest.session,
        outcome=timer.outcome,
        spent_usd=round(spent_usd, 6),
        limit_usd=timer.limit_usd,
        until=None if timer.until is None else rfc3339(timer.until),
        times=timer.times,
        missed=timer.missed,
        busy=timer.busy,
        unattended=timer.unattended,
    )


def problems(timers: Sequence[Timer]) -> list[str]:
    """Return why timers do not fire that nobody has paused, a sentence for each."""
    return [
        f"the timer {timer.id} is paused: {timer.paused}; see `zotctl schedule list`"
        for timer in timers
        if timer.paused
    ]


def rule_words(rule: TimerRule) -> str:
    """Return when the rule is due, in a few words."""
    match rule:
        case CronRule(text, zone):
            return f"{text} ({zone})"
        case IntervalRule(seconds):
            return f"every {interval_words(seconds)}"
        case MomentRule(at):
            return f"at {rfc3339(at)}"


def local_zone(env: Mapping[str, str]) -> str:
    """Return the name of this machine's time zone, or `UTC` if it has none that the IANA database knows. Looks at a link."""
    found = [env.get("TZ", "").removeprefix(":")]
    with suppress(OSError):
        found.append(os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2])
    for name in filter(None, found):
        try:
            times_of(CronRule("0 0 * * *", name))
        except BadRuleError:
            continue
        return name
    return "UTC"


# --- inside -------------------------------------------------------------------------------------------------------


def _check_message(message: str) -> None:
    content_of(message, ())
    if len(message) > PROMPT_CHARS:
        raise _bad(f"the prompt of a timer has at most {PROMPT_CHARS:,} characters; put it into a file to be read")
    check_prompt(message)


def _changes(order: TimerEdit) -> dict[str, object]:
    """Return the fields that the client gives, except for the time."""
    if order.message is not None:
        _check_message(order.message)
    _check_limits(order)
    until = None if order.until is None else _moment("until", order.until)
    given: dict[str, object] = {
        "prompt": order.message,
        "missed": None if order.missed is None else _word("missed", order.missed, MISSED),
        "busy": None if order.busy is None else _word("busy", order.busy, BUSY),
        "unattended": None if order.unattended is None else _word("unattended", order.unattended, UNATTENDED),
        "limit_usd": order.limit_usd,
        "until": until,
        "times": order.times,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    for name in order.clear:
        if name not in LIMITS:
            raise _bad(f'unknown limit "{name[:40]}" to clear; there are {", ".join(LIMITS)}')
        if name in changes:
            raise _bad(f"`{name}` cannot be both set and cleared")
        changes[name] = None
    return changes


def _other_rule(rule: TimerRule, order: TimerEdit, zone: str) -> TimerRule:
    """Return the rule that a client wants in place of this one; a time zone alone moves the expression there."""
    if order.tz is not None and (order.cron, order.every_s, order.at) == (None, None, None):
        if not isinstance(rule, CronRule):
            raise _bad(ONLY_CRON)
        return _rule(replace(order, cron=rule.text), zone)
    if order.cron is not None and order.tz is None and isinstance(rule, CronRule):
        zone = rule.zone
    return _rule(order, zone)


def _rule(order: TimerAdd | TimerEdit, zone: str) -> TimerRule:
    match (order.cron, order.every_s, order.at):
        case (str(text), None, None):
            if max(len(text), len(order.tz or "")) > RULE_CHARS:
                raise _bad(f"a cron expression has at most {RULE_CHARS} characters, as has the name of a time zone")
            rule: TimerRule = CronRule(" ".join(text.split()), order.tz or zone)
        case (None, int(seconds), None):
            rule = IntervalRule(seconds)
        case (None, None, str(at)):
            rule = MomentRule(_moment("at", at))
        case _:
            raise _bad("a timer has exactly one of `cron`, `every_s` and `at`")
    if order.tz is not None and not isinstance(rule, CronRule):
        raise _bad(ONLY_CRON)
    try:
        times_of(rule)
    except BadRuleError as error:
        raise _bad(str(error)) from error
    return rule


def _check_limits(order: TimerAdd | TimerEdit) -> None:
    if order.limit_usd is not None and not 0 < order.limit_usd < float("inf"):
        raise _bad(f"limit_usd must be more than 0, not {order.limit_usd:g}")
    if order.times is not None and order.times < 1:
        raise _bad(f"times must be at least 1, not {order.times}")


def _moment(name: str, text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise _bad(f'`{name}` is no time as in RFC 3339: "{text[:40]}"; 2026-11-28T09:00:00Z is one') from error
    if found.tzinfo is None:
        raise _bad(f"`{name}` needs an offset from UTC, such as Z or +01:00")
    # Rounded up: what is due in this second must not be over already.
    seconds = -int(-found.astimezone(UTC).timestamp() // 1)
    if not 0 < seconds < LAST_MOMENT:
        raise _bad(f"`{name}` lies outside of the calendar")
    return seconds


def _word(name: str, value: str, words: tuple[str, str]) -> str:
    if value not in words:
        raise _bad(f'unknown {name} "{value[:40]}"; there are {" and ".join(words)}')
    return value


def _bad(sentence: str) -> CommandError:
    return CommandError(Code.BAD_REQUEST, sentence)
