"""What a timer does about the clock: a dialogue of looks and outcomes, with clocks that jump and daemons that die anywhere."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.core import timers
from zotd.core.due_times import CronRule, IntervalRule, MomentRule, due_times
from zotd.core.timers import ChangedTimer, ClaimOutcome, DueTimer, EndedTimer, Firing, NotDue, Timer

NOW = int(datetime(2026, 11, 27, 8, tzinfo=UTC).timestamp())
HOUR_S = 3600
DAY_S = 24 * HOUR_S

SENT = ClaimOutcome(Firing("s_1", "i_1", 1, NOW))
FAILED = ClaimOutcome(sentence="no key", failed=True)


class Clockwork:
    """One timer that is due now, as a daemon has it that stores each change; `fired` has its claims in order, also those that were repeated."""

    def __init__(self, rule, **fields):
        self.times = due_times(rule, ZoneInfo("Europe/Berlin"))
        self.timer = Timer(id="t_1", rule=rule, prompt="p", due=NOW, made=NOW, **fields)
        self.over = False
        self.fired = []
        self.sent = {}

    def look(self, now, *, dies=False, outcome=SENT):
        """Look until nothing is due; `dies`: after the prompt was sent, before its outcome was stored."""
        while not self.over:
            found = timers.look(self.timer, now, self.times)
            match found:
                case NotDue():
                    return found.until
                case EndedTimer():
                    self.over = True
                case ChangedTimer(timer):
                    self.timer = timer
                case DueTimer(timer):
                    self.timer = timer
                    self.fired.append(timer.claim)
                    self.sent.setdefault(timer.request_of(self.fired[-1]), now)  # as a session does
                    if dies:
                        return now
                    following = timers.carried_out(timer, outcome, self.times)
                    self.timer, self.over = following or timer, following is None
        return None


def every(seconds=600, **fields):
    return Clockwork(IntervalRule(seconds), **fields)


def at_nine(**fields):
    return Clockwork(CronRule("0 9 * * *", "Europe/Berlin"), **fields)


def test_it_fires_when_it_is_due_and_waits_for_the_next_time():
    case = at_nine()
    assert case.look(NOW - 1) == NOW
    assert case.look(NOW) == NOW + DAY_S
    assert [claim.due for claim in case.fired] == [NOW]


def test_a_year_of_missed_times_is_one_firing():
    case = every(60)
    case.look(NOW + 366 * DAY_S + 7)
    assert [claim.due for claim in case.fired] == [NOW + 366 * DAY_S]
    assert case.look(NOW + 366 * DAY_S + 8) == NOW + 366 * DAY_S + 60


def test_missed_times_can_be_passed_over():
    case = at_nine(missed="skip")
    assert case.look(NOW + 3 * DAY_S + timers.GRACE_S + 1) == NOW + 4 * DAY_S
    assert case.fired == []
    assert case.timer.outcome == "missed, and passed over"
    case.look(NOW + 4 * DAY_S + timers.GRACE_S)  # noticed late, and not missed
    assert [claim.due for claim in case.fired] == [NOW + 4 * DAY_S]


def test_a_claim_that_a_crash_has_cut_is_carried_out_again_with_its_number_however_late():
    case = at_nine(missed="skip")
    case.look(NOW, dies=True)
    case.look(NOW + 10 * DAY_S + HOUR_S, dies=True)
    case.look(NOW + 10 * DAY_S + HOUR_S)
    assert {claim.number for claim in case.fired} == {1}
    assert case.timer.fired == 1
    assert len(case.sent) == 1


def test_a_clock_that_goes_back_fires_for_no_time_again():
    case = at_nine()
    case.look(NOW + 300)
    assert case.look(NOW - 300) == NOW + DAY_S
    assert len(case.fired) == 1


def test_a_clock_that_was_years_ahead_pauses_a_cron_timer_with_a_sentence_until_somebody_resumes_it():
    case = at_nine()
    case.look(NOW + 1000 * DAY_S)
    assert case.look(NOW) is None
    assert case.timer.paused.startswith("the clock is 999 days before")
    case.timer = timers.resumed(case.timer, NOW, case.times)
    assert case.look(NOW) == NOW + DAY_S


def test_resuming_while_the_clock_is_a_little_back_fires_for_no_time_again():
    case = at_nine()
    case.look(NOW + 5)
    case.timer = timers.resumed(case.timer, NOW - HOUR_S, case.times)
    assert case.timer.due == NOW + DAY_S


def test_an_interval_begins_anew_when_the_clock_has_gone_back():
    case = every(600)
    case.look(NOW)
    assert case.look(NOW - 1000 * DAY_S) == NOW - 1000 * DAY_S + 600


def test_a_moment_is_fired_once_and_the_timer_is_over():
    case = Clockwork(MomentRule(NOW))
    case.look(NOW + DAY_S)
    assert case.over
    assert len(case.fired) == 1


def test_a_moment_that_was_missed_can_be_passed_over():
    case = Clockwork(MomentRule(NOW), missed="skip")
    case.look(NOW + DAY_S)
    assert case.over
    assert case.fired == []


def test_it_ends_after_so_many_firings_and_after_its_last_time():
    few, short = every(600, times=2), every(600, until=NOW + 1000)
    for now in range(NOW, NOW + 6000, 600):
        few.look(now)
        short.look(now)
    assert few.over
    assert short.over
    assert [len(few.fired), len(short.fired)] == [2, 2]


def test_nothing_fires_late_when_its_last_time_was_missed_as_well():
    case = every(600, until=NOW + 1000)
    case.look(NOW + DAY_S)
    assert case.over
    assert case.fired == []


def test_firings_that_fail_pause_it_and_one_between_them_that_does_not_counts_anew():
    case = every(600)
    outcomes = [FAILED] * 4 + [SENT] + [FAILED] * 5
    for number, outcome in enumerate(outcomes):
        assert case.timer.paused is None
        case.look(NOW + number * 600, outcome=outcome)
    assert case.timer.paused == "it failed 5 times: no key"
    assert case.look(NOW + DAY_S) is None
    assert case.timer.fired == 1


@pytest.mark.parametrize("rule", [MomentRule(NOW), IntervalRule(600)])
def test_a_single_firing_that_fails_stays_and_is_fired_when_it_is_resumed(rule):
    case = Clockwork(rule, times=1)
    case.look(NOW, outcome=FAILED)
    assert case.timer.paused == "it failed: no key"
    case.timer = timers.resumed(case.timer, NOW + 60, case.times)
    case.look(NOW + DAY_S)
    assert case.over
    assert len(case.sent) == 2


def test_a_firing_by_hand_changes_no_due_time():
    case = every(600)
    due = case.timer.due
    case.timer = timers.claimed_by_hand(case.timer, NOW - 30)
    case.look(NOW - 30)
    assert (case.timer.due, case.timer.fired) == (due, 1)
    case.look(NOW)
    assert [claim.number for claim in case.fired] == [1, 2]


def test_a_paused_timer_does_not_fire_and_resumed_has_missed_nothing():
    case = every(600)
    case.timer = msgspec.structs.replace(case.timer, paused="")
    assert case.look(NOW + DAY_S) is None
    case.timer = timers.resumed(case.timer, NOW + DAY_S + 1, case.times)
    assert case.look(NOW + DAY_S + 2) == NOW + DAY_S + 601
    assert case.fired == []


RULES = st.sampled_from(
    [CronRule(text, "Europe/Berlin") for text in ("*/5 * * * *", "0 9 * * 1-5", "30 2 * * *", "0 0 1 * *")]
)


@given(RULES, RULES, st.integers(-30 * DAY_S, 60 * DAY_S), st.booleans())
def test_with_another_rule_it_is_due_from_now_on_and_never_for_a_time_that_was_fired(first, second, passed, is_claimed):
    case = Clockwork(first)
    case.look(NOW)
    now, times = NOW + passed, Clockwork(second).times
    before = timers.claimed_by_hand(case.timer, now) if is_claimed else case.timer
    changed = timers.rescheduled(before, second, now, times)
    assert changed is not None
    assert changed.due > now
    assert changed.due > before.last_due or before.last_due - now > timers.BACK_S
    assert (changed.claim, changed.claims, changed.fired) == (before.claim, before.claims, before.fired)


def test_a_limit_holds_when_it_is_reached():
    case = every(600, limit_usd=0.5)
    assert timers.over_limit(case.timer, 0.49) is None
    assert timers.over_limit(case.timer, 0.5) == "it has spent $0.5000 of its limit of $0.50"
    assert timers.over_limit(every().timer, 1e6) is None


STEPS = st.lists(
    st.tuples(
        st.one_of(
            st.integers(0, 2 * HOUR_S),  # time passes
            st.integers(-2 * DAY_S, 60 * DAY_S),  # the clock jumps, or the machine was asleep
        ),
        st.booleans(),
    ),
    max_size=30,
)


@given(RULES, STEPS, st.sampled_from(["once", "skip"]))
def test_whatever_the_clock_does_and_wherever_a_daemon_dies_no_due_time_fires_twice(rule, steps, missed):
    case, now = Clockwork(rule, missed=missed), NOW
    for passed, dies in steps:
        now += passed
        before = len(case.sent)
        case.look(now, dies=dies)
        assert len(case.sent) - before <= 2, "a claim that was cut, and one for all that was missed since"
        if case.timer.paused is not None:
            case.timer = timers.resumed(case.timer, now, case.times)
            case.fired.clear()  # its user has said that the clock is right now
    numbers = [claim.number for claim in case.fired]
    dues = [claim.due for claim in case.fired]
    assert numbers == sorted(numbers)
    by_number = dict(zip(numbers, dues, strict=True))
    assert len(set(by_number.values())) == len(by_number)
    assert list(by_number.values()) == sorted(by_number.values())
    assert all(by_number[number] == due for number, due in zip(numbers, dues, strict=True))


@given(STEPS, st.integers(60, DAY_S))
def test_an_interval_never_waits_longer_than_it_is(steps, seconds):
    case, now = every(seconds), NOW
    for passed, dies in steps:
        now += passed
        until = case.look(now, dies=dies)
        assert until <= now + seconds


@given(STEPS)
def test_a_timer_is_the_same_after_it_was_stored(steps):
    case, now = at_nine(limit_usd=1.5), NOW
    for passed, dies in steps:
        now += passed
        case.look(now, dies=dies)
        assert msgspec.json.decode(msgspec.json.encode(case.timer), type=Timer) == case.timer
