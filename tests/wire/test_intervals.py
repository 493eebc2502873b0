"""Lengths of time, as they are typed and shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.wire.intervals import interval_words, read_interval


@given(st.integers(1, 10**7))
def test_what_is_shown_can_be_typed(seconds):
    assert read_interval(interval_words(seconds)) == seconds


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("2d", 172_800), ("0m", 0)])
def test_a_number_stands_before_its_unit(text, seconds):
    assert read_interval(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "10 m", "-5m", "1.5h", "10M", "1h30", "٣m", "9" * 5000 + "s", "check"])
def test_anything_else_is_no_length_of_time(text):
    assert read_interval(text) is None


def test_no_time_is_said_as_well():
    assert interval_words(0) == "0s"
