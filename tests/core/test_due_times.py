"""When timers are due: intervals, moments, and cron expressions in time zones whose clocks change."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.core.due_times import BadRuleError, CronRule, IntervalRule, MomentRule, due_times

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")

BEGIN = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
YEAR_S = 366 * 24 * 3600

FIELDS = st.tuples(
    st.sampled_from(["*", "0", "30", "*/15", "5,50", "10-20/5"]),
    st.sampled_from(["*", "0", "2", "3", "*/6", "1-3", "9,17"]),
    st.sampled_from(["*", "1", "L", "29-31", "*/2"]),
    st.sampled_from(["*", "3", "10", "2-11/3"]),
    st.sampled_from(["*", "1-5", "SUN", "MON#1", "5L"]),
)


def cron(text, zone=BERLIN):
    return due_times(CronRule(text, "anywhere"), zone)


def days(text, year, month, day, *, zone=BERLIN, count=3):
    """The first due times from that day on, as local time and offset from UTC."""
    times, found = cron(text, zone), []
    moment = int(datetime(year, month, day, tzinfo=zone).timestamp()) - 1
    for _ in range(count):
        moment = times.after(moment)
        found.append(datetime.fromtimestamp(moment, zone).strftime("%d %H:%M %z"))
    return found


def test_a_time_that_daylight_saving_leaves_out_is_due_when_the_clock_is_beyond_it():
    assert days("30 2 * * *", 2026, 3, 28) == ["28 02:30 +0100", "29 03:00 +0200", "30 02:30 +0200"]
    assert days("30 2 * * *", 2026, 3, 8, zone=NEW_YORK, count=1) == ["08 03:00 -0400"]


def test_two_times_that_daylight_saving_leaves_out_are_due_once():
    assert days("0,30 2 * * *", 2026, 3, 29, count=2) == ["29 03:00 +0200", "30 02:00 +0200"]


def test_a_time_that_daylight_saving_repeats_is_due_once():
    assert days("30 2 * * *", 2026, 10, 25) == ["25 02:30 +0200", "26 02:30 +0100", "27 02:30 +0100"]


def test_a_time_that_is_over_is_not_due_again_in_the_hour_that_is_repeated():
    second_ten_past_two = int(datetime(2026, 10, 25, 1, 10, tzinfo=UTC).timestamp())
    due = cron("30 2 * * *").after(second_ten_past_two)
    assert due == int(datetime(2026, 10, 26, 2, 30, tzinfo=BERLIN).timestamp())


def test_what_is_due_every_hour_follows_the_real_time():
    assert days("0 * * * *", 2026, 10, 25, count=5)[1:] == [
        "25 01:00 +0200",
        "25 02:00 +0200",
        "25 02:00 +0100",
        "25 03:00 +0100",
    ]


def test_a_time_is_that_of_the_zone_in_summer_and_in_winter():
    assert days("0 9 * * *", 2026, 10, 24, count=2) == ["24 09:00 +0200", "25 09:00 +0100"]


@given(FIELDS, st.sampled_from([BERLIN, NEW_YORK, UTC]), st.integers(0, YEAR_S))
def test_due_times_only_grow(fields, zone, offset):
    times, moment = cron(" ".join(fields), zone), BEGIN + offset
    for _ in range(5):
        following = times.after(moment)
        assert following is None or following > moment
        moment = following or moment


@given(FIELDS, st.sampled_from([BERLIN, NEW_YORK]), st.integers(0, YEAR_S), st.integers(0, YEAR_S))
def test_the_latest_due_time_is_one_behind_which_the_next_one_is_still_to_come(fields, zone, offset, asleep):
    times = cron(" ".join(fields), zone)
    first = times.after(BEGIN + offset)
    if first is None:
        return
    now = first + asleep
    latest = times.latest(first, now)
    assert first <= latest <= now
    assert times.after(latest - 1) == latest
    following = times.after(latest)
    assert following is None or following > now


@given(st.integers(60, 10**6), st.integers(BEGIN, BEGIN + YEAR_S), st.integers(0, YEAR_S))
def test_an_interval_keeps_its_beat(seconds, first, asleep):
    times = due_times(IntervalRule(seconds), UTC)
    latest = times.latest(first, first + asleep)
    assert (latest - first) % seconds == 0
    assert latest <= first + asleep < times.after(latest)


def test_a_moment_is_due_once():
    times = due_times(MomentRule(1000), UTC)
    assert times.after(999) == times.latest(1000, 5000) == 1000
    assert times.after(1000) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("0 0 9 * * *", "five fields"),
        ("61 * * * *", "bad minute"),
        ("0 24 * * *", "bad hour"),
        ("0 9 * * moon", "bad day-of-week"),
        ("0 9 30 2 *", "bad day-of-month"),
        ("*/0 * * * *", "bad minute"),
        (f"*/{'9' * 5000} * * * *", "is never due"),
    ],
)
def test_a_bad_expression_is_refused_with_a_sentence(text, why):
    with pytest.raises(BadRuleError, match=why):
        cron(text)


@given(st.lists(st.text("0123456789*/-,#LWsunMON", min_size=1, max_size=6), min_size=5, max_size=5))
def test_any_expression_is_due_or_refused(fields):
    try:
        times = cron(" ".join(fields))
    except BadRuleError:
        return
    assert times.after(BEGIN) is None or times.after(BEGIN) > BEGIN


@pytest.mark.parametrize("seconds", [0, -5, 59, 367 * 24 * 3600])
def test_an_interval_is_neither_too_short_nor_too_long(seconds):
    with pytest.raises(BadRuleError, match="60 s to 366 days"):
        due_times(IntervalRule(seconds), UTC)
