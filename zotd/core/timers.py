"""Timers: prompts that are sent when they are due (`docs/timers.md`). The decisions, without a clock and without a journal.

    waits ──> due ──> claimed, with a number ──> its prompt is sent ──> the next due time, or the end
                 └──> passed over (`missed = "skip"`) ──────────────────────^

A claim is stored before the prompt is sent, and the prompt bears the number of the claim. After a crash the same claim is carried out
again, and the session knows the number: it takes the prompt once. Due times only grow, so none is claimed twice.
"""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from zotd.core.due_times import DueTimes, IntervalRule, MomentRule, TimerRule

GRACE_S = 120
"""A due time that is noticed within this time was not missed: the clock is looked at each minute."""

BACK_S = 24 * 3600
"""A clock that is so far before the last due time that was fired must have been wrong, then or now."""

MAX_FAILURES = 5
"""Firings that fail one after the other before the timer is paused."""

SENTENCE_CHARS = 300
"""Longest sentence that is kept about a firing."""

Origin = Literal["schedule", "loop", "wake"]


class NewTimerSession(Struct, frozen=True):
    """Each firing begins a session."""

    cwd: str
    provider: str | None = None
    model: str | None = None
    mode: str | None = None
    """None for these: as configured when it fires."""
    user: str = ""
    """The user whose sessions they are; empty: none."""


class Claim(Struct, frozen=True):
    """A firing that has begun, and is carried out until it has an outcome."""

    number: int
    """No other claim of the timer has it."""
    due: int
    by_hand: bool = False
    """A person wants it now; it is beside the due times."""


class Firing(Struct, frozen=True):
    """What a firing has begun."""

    session: str
    input: str
    after: int
    """Number of the last record of the session before it."""
    at: int


class Timer(Struct, frozen=True, kw_only=True):
    """A timer as it is stored. Moments are seconds since the epoch."""

    id: str
    rule: TimerRule
    prompt: str
    due: int
    made: int
    by: str = ""
    """Who has made it, for people."""
    origin: Origin = "schedule"
    session: str = ""
    """The session that is prompted; empty: a new one each time, as `new` says."""
    new: NewTimerSession | None = None
    missed: Literal["once", "skip"] = "once"
    """After due times that were missed: fire once for all of them, or not at all."""
    busy: Literal["queue", "skip"] = "queue"
    """While the session does something else: wait behind it, or leave this due time out."""
    unattended: str = "deny"
    """What becomes of approvals that no client can decide: `deny` or `park`."""
    limit_usd: float | None = None
    until: int | None = None
    times: int | None = None
    paused: str | None = None
    """Why it does not fire; empty: a person wants that. None: it fires."""
    last_due: int = 0
    """The last due time that was fired or passed over."""
    claims: int = 0
    """Number of the last claim."""
    claim: Claim | None = None
    fired: int = 0
    failures: int = 0
    """How many of the last firings failed, without one between them that did not."""
    spent_usd: float = 0.0
    """Cost of the firings before `latest`."""
    latest: Firing | None = None
    outcome: str = ""
    """What came of the last due time, as a sentence; empty: it was fired."""

    @property
    def is_single(self) -> bool:
        """Whether it is due once."""
        return isinstance(self.rule, MomentRule) or self.times == 1

    def request_of(self, claim: Claim) -> str:
        """Return the `request_id` of the claim's prompt."""
        return f"{self.id}/{claim.number}"

    def session_of(self, claim: Claim) -> str:
        """Return the id of the session that the claim prompts, or begins."""
        return self.session or f"s_{self.id.partition('_')[2]}{claim.number}"


class ClaimOutcome(Struct, frozen=True):
    """What came of a claim."""

    firing: Firing | None = None
    """None: no prompt was sent."""
    sentence: str = ""
    """Why not."""
    failed: bool = False
    """It should have been sent."""
    is_gone: bool = False
    """The timer's session is not there any more."""
    settled_usd: float = 0.0
    """What the firing before has cost, which has ended."""


# --- what follows from looking at the clock -------------------------------------------------------------------


class NotDue(Struct, frozen=True):
    """Nothing is due."""

    until: int | None
    """When something will be; None: not by itself."""


class ChangedTimer(Struct, frozen=True):
    """The timer is to be stored like this, and looked at again."""

    timer: Timer


class DueTimer(Struct, frozen=True):
    """The timer is to be stored like this, and its claim carried out."""

    timer: Timer


class EndedTimer(Struct, frozen=True):
    """The timer is to be removed."""

    why: str


Look = NotDue | ChangedTimer | DueTimer | EndedTimer


def look(timer: Timer, now: int, times: DueTimes) -> Look:
    """Return what is to be done with a timer at this moment."""
    if timer.claim is not None:
        return DueTimer(timer)
    if timer.paused is not None:
        return NotDue(None)
    if timer.until is not None and (timer.due > timer.until or now > timer.until + GRACE_S):
        return EndedTimer("the end that was set for it has come")
    if timer.due > now:
        return _waiting(timer, now)
    due = times.latest(timer.due, now if timer.until is None else min(now, timer.until))
    if timer.missed == "skip" and now - due > GRACE_S:
        return _passed(timer, due, times)
    return DueTimer(_claimed(timer, Claim(timer.claims + 1, due)))


def _waiting(timer: Timer, now: int) -> Look:
    if isinstance(timer.rule, IntervalRule):
        # An interval is not a time of day: when the clock has gone back, it begins anew.
        soonest = now + timer.rule.seconds
        return NotDue(timer.due) if timer.due <= soonest else ChangedTimer(replace(timer, due=soonest))
    if timer.last_due - now > BACK_S:
        days = (timer.last_due - now) // (24 * 3600)
        sentence = f"the clock is {days} days before the last time that it has fired for; resume it to begin from now"
        return ChangedTimer(replace(timer, paused=sentence))
    return NotDue(timer.due)


def _passed(timer: Timer, due: int, times: DueTimes) -> Look:
    following = times.after(due)
    if following is None or timer.times == 1:
        return EndedTimer("it was missed")
    return ChangedTimer(replace(timer, due=following, last_due=due, outcome="missed, and passed over"))


def _claimed(timer: Timer, claim: Claim) -> Timer:
    return replace(timer, claim=claim, claims=claim.number)


# --- what people and firings change ---------------------------------------------------------------------------


def claimed_by_hand(timer: Timer, now: int) -> Timer:
    """Return the timer with a claim that a person wants now; it has none."""
    return _claimed(timer, Claim(timer.claims + 1, now, by_hand=True))


def over_limit(timer: Timer, spent_usd: float) -> str | None:
    """Return why the timer may not fire after it has spent so much; None: it may."""
    if timer.limit_usd is None or spent_usd < timer.limit_usd:
        return None
    return f"it has spent ${spent_usd:,.4f} of its limit of ${timer.limit_usd:,.2f}"


def carried_out(timer: Timer, outcome: ClaimOutcome, times: DueTimes) -> Timer | None:
    """Return the timer after its claim has this outcome; None: it is to be removed."""
    claim = timer.claim
    assert claim is not None
    changed = replace(
        timer,
        claim=None,
        fired=timer.fired + (outcome.firing is not None),
        failures=timer.failures + 1 if outcome.failed else 0,
        latest=outcome.firing or timer.latest,
        spent_usd=timer.spent_usd + outcome.settled_usd,
        outcome=outcome.sentence[:SENTENCE_CHARS],
    )
    if outcome.is_gone:
        return None
    if outcome.failed and (changed.failures >= MAX_FAILURES or timer.is_single):
        count = "it failed" if timer.is_single else f"it failed {changed.failures} times"
        changed = replace(changed, paused=f"{count}: {changed.outcome}")
    if claim.by_hand:
        return None if _is_used_up(changed) else changed
    following = times.after(claim.due)
    if outcome.failed and following is None:  # it stays, so that somebody sees it
        return replace(changed, last_due=claim.due)
    if following is None or _is_used_up(changed):
        return None
    return replace(changed, last_due=claim.due, due=following)


def _is_used_up(timer: Timer) -> bool:
    return timer.times is not None and timer.fired >= timer.times


def paused(timer: Timer) -> Timer:
    """Return the timer as a person has paused it; what it fires at the moment goes on."""
    return timer if timer.paused is not None else replace(timer, paused="")


def rescheduled(timer: Timer, rule: TimerRule, now: int, times: DueTimes) -> Timer | None:
    """Return the timer with another rule, whose due times count from now on; None: there is none."""
    following = times.after(max(now, timer.last_due if timer.last_due - now <= BACK_S else 0))
    return None if following is None else replace(timer, rule=rule, due=following)


def resumed(timer: Timer, now: int, times: DueTimes) -> Timer:
    """Return the timer as it fires again: from now on, with nothing missed."""
    # A clock that has gone back a little must not fire for a time that it has fired for.
    last_due = timer.last_due if timer.last_due - now <= BACK_S else 0
    fresh = replace(timer, paused=None, failures=0, outcome="", last_due=last_due)
    following = times.after(max(now, last_due))
    return fresh if following is None else replace(fresh, due=following)
