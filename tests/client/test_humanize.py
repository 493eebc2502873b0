"""Formatting of values for people."""

import pytest

from zotd.client.humanize import age, count, counted, duration, money, size, took


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0s"), (12.9, "12s"), (60, "1m 00s"), (3599, "59m 59s"), (7800, "2h 10m"), (5 * 86400, "5d")],
)
def test_durations_have_their_two_largest_units(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0s"), (3.24, "3.2s"), (9.96, "10s"), (59.7, "1m 00s"), (3599, "59m 59s"), (3660, "1h 01m")],
)
def test_short_durations_have_tenths(seconds, words):
    assert took(seconds) == words


@pytest.mark.parametrize(("number", "words"), [(0, "0 lines"), (1, "1 line"), (1200, "1,200 lines")])
def test_a_count_of_one_is_singular(number, words):
    assert counted(number, "line") == words


@pytest.mark.parametrize(("seconds", "words"), [(59, "now"), (60, "1m"), (3600, "1h"), (86400, "1d")])
def test_ages_have_their_largest_unit(seconds, words):
    assert age(seconds) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0"), (999, "999"), (84_123, "84k"), (999_499, "999k"), (999_500, "1M"), (1_240_000, "1.2M")],
)
def test_token_counts_are_rounded(number, words):
    assert count(number) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (12_340_000, "12.3 MB"),
        (2_000_000_000, "2.0 GB"),
    ],
)
def test_sizes_have_the_largest_unit_that_fits(number, words):
    assert size(number) == words


@pytest.mark.parametrize(("usd", "words"), [(0, "$0.00"), (0.001, "<$0.01"), (0.005, "$0.01"), (3.1, "$3.10")])
def test_prices_are_in_cents(usd, words):
    assert money(usd) == words
